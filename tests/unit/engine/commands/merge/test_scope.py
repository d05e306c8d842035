"""Names in the clauses of a MERGE are qualified by the side that has them."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.merge.scope import Scope
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError

SCOPE = Scope("s", ("id", "Name", "s", "struct col", "xs"), "t", "WHEN NOT MATCHED")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", "`s`.id"),
        ("NAME", "`s`.NAME"),
        ("`struct col`.a", "`s`.`struct col`.a"),
        ("s.id", "s.id"),
        ("`S`.`id`", "`S`.`id`"),
        ("s", "`s`.s"),
        ("coalesce(id, s.id, 0) + length(name)", "coalesce(`s`.id, s.id, 0) + length(`s`.name)"),
        ("transform(xs, id -> id + s.id)", "transform(`s`.xs, id -> id + s.id)"),
        ("transform(xs, x -> x + id)", "transform(`s`.xs, x -> x + `s`.id)"),
        ("id in (select id from names)", "`s`.id in (select id from names)"),
        ("'id' || other /* id */", "'id' || other /* id */"),
        ("not sql at all (", "not sql at all ("),
    ],
)
def test_bare_names_of_the_sides_columns_get_its_alias(text: str, expected: str) -> None:
    assert SCOPE.qualify(text) == expected


def test_the_other_sides_columns_cannot_be_named() -> None:
    with pytest.raises(ColumnNotFoundError, match="WHEN NOT MATCHED cannot refer to"):
        SCOPE.qualify("t.id + 1")
