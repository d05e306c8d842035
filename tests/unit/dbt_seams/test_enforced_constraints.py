"""`enforced: true` of a constraint reaches the adapter: dbt 1.11 and 1.12 read constraints by `from_dict`."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.parser import common, schemas
from dbt_common.contracts.constraints import ColumnLevelConstraint, ConstraintType, ModelLevelConstraint

from dbt.adapters.silt.dbt_seams.project_values import keep_enforced, with_enforced


def test_the_parsers_of_dbt_read_constraints_by_these_classes() -> None:
    assert common.ColumnLevelConstraint is ColumnLevelConstraint  # type: ignore[attr-defined]
    assert schemas.ModelLevelConstraint is ModelLevelConstraint  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [ColumnLevelConstraint, ModelLevelConstraint])
def test_the_word_becomes_a_part_of_the_expression_and_is_kept_by_the_manifest(kind: Any) -> None:
    keep_enforced()
    keep_enforced()
    for _ in range(2):
        found = kind.from_dict({"type": "primary_key", "enforced": True, "expression": "rely"})
        assert (found.type, found.expression) == (ConstraintType.primary_key, "rely enforced")
    again = kind.from_dict(found.to_dict())
    assert again == found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "unique", "enforced": "true"}, "enforced"),
        ({"type": "unique", "enforced": False}, "not enforced"),
        ({"type": "foreign_key", "enforced": True}, "enforced"),
        ({"type": "check", "enforced": True, "expression": "a > 0"}, "a > 0"),
        ({"type": "unique"}, None),
    ],
)
def test_only_a_key_takes_the_word(given: dict[str, Any], expected: str | None) -> None:
    assert with_enforced(given).get("expression") == expected
    assert "enforced" not in with_enforced(given)
