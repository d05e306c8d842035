"""The names in a snapshot's configuration."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.snapshots import compared_columns, expression, plain_names, quoted_names

COLUMNS = ["id", "c`d", "unnamed: 0", "/test/column", "a.b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID", "`id`"),
        ('"id"', "`id`"),
        ("c`d", "`c``d`"),
        ("`c``d`", "`c``d`"),
        ("/test/column", "`/test/column`"),
        ("a.b", "`a.b`"),
        ("lower(id) || '-'", "(lower(id) || '-')"),
    ],
)
def test_a_string_is_a_column_of_any_name_or_an_expression(text: str, expected: str) -> None:
    assert expression(text, COLUMNS, "unique_key") == expected


@pytest.mark.parametrize("text", ["idd", "/other/column", "''"])
def test_a_string_that_names_no_column_is_refused(text: str) -> None:
    with pytest.raises(CompilationError, match=r"`updated_at` names .*, which is not one of the columns id, "):
        expression(text, COLUMNS, "updated_at")


def test_compared_columns_are_quoted_and_must_exist() -> None:
    assert compared_columns(["c`d", "UNNAMED: 0", "* except (id)"], COLUMNS) == [
        "`c``d`",
        "`unnamed: 0`",
        "* except (id)",
    ]
    with pytest.raises(CompilationError, match="`check_cols` names d, which is not one of the columns"):
        compared_columns(["d"], COLUMNS)


def test_dbts_columns_may_have_any_distinct_names() -> None:
    given = {"dbt_valid_from": "valid from", "dbt_valid_to": "`valid``to`", "dbt_scd_id": "dbt_scd_id"}
    assert plain_names(given)["dbt_valid_to"] == "valid`to"
    assert list(quoted_names(given).values()) == ["`valid from`", "`valid``to`", "`dbt_scd_id`"]
    with pytest.raises(CompilationError, match="gives the name At to dbt_valid_from and to another column"):
        plain_names({"dbt_valid_from": "At", "dbt_updated_at": "at"})
