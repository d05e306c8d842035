"""The error of a write whose query has other columns than its table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError, ValueNotCastableError
from dbt.adapters.silt.materializations.changed_columns import ChangedColumns

STORED = {"id": "bigint", "name": "string", "note": "string"}
MISSING = ChangedColumns("silt.main.orders", {"ID": "bigint"}, STORED)
RETYPED = ChangedColumns("silt.main.orders", {**STORED, "id": "string"}, STORED, ("`ID`",))
CAST = 'The value \'a1\' of the type "STRING" cannot be cast to "BIGINT" because it is malformed.'


def test_columns_that_the_query_lacks_are_named_with_all_remedies() -> None:
    failure = "[SILT_COLUMN_NOT_FOUND] [UNRESOLVED_COLUMN.WITH_SUGGESTION] `DBT_INTERNAL_SOURCE`.`name` ..."
    said = str(MISSING.explained(failure, None))
    assert said == (
        "[SILT_COLUMN_NOT_FOUND] silt.main.orders: the query no longer returns the columns `name` (string), `note` "
        "(string), which the table has. Nothing was written: add the column to the query again, or configure "
        "`on_schema_change`: `append_new_columns` leaves it null in new rows, and `sync_all_columns` drops it. "
        "`--full-refresh` rebuilds the table from the query."
    )


def test_a_key_of_another_type_is_named_with_the_value_that_cannot_be_compared() -> None:
    cause = ValueNotCastableError(f"[CAST_INVALID_INPUT] {CAST}")
    explained = RETYPED.explained(str(cause), cause)
    assert isinstance(explained, ValueNotCastableError)
    assert str(explained).startswith(
        "[SILT_VALUE_NOT_CASTABLE] silt.main.orders: the query returns `id` of the `unique_key` as string, but the "
        "table has it as bigint: the value 'a1' cannot be compared with the table's. Nothing was written: "
        "correct the data"
    )
    assert "on_schema_change" in str(explained)
    assert "--full-refresh" in str(explained)


@pytest.mark.parametrize("kind", [TypeMismatchError, ValueNotCastableError])
def test_the_engines_message_about_a_value_is_kept_and_gets_remedies(kind: type[TypeMismatchError]) -> None:
    cause = kind("3 rows have a value of type string", table="silt.main.orders")
    said = str(RETYPED.explained(str(cause), cause))
    assert said.startswith(f"[{kind.code}] silt.main.orders: 3 rows have a value of type string. Nothing was written")
    assert "`--full-refresh` rebuilds the table with the query's type" in said


def test_a_snapshot_which_is_never_rebuilt_gets_other_advice() -> None:
    failure = "[SILT_INVALID_STATEMENT] [DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve"
    said = str(replace(RETYPED, is_snapshot=True).explained(failure, None))
    assert said.startswith(
        "[SILT_TYPE_MISMATCH] silt.main.orders: the query returns `id` of the `unique_key` as string"
    )
    assert said.endswith("to start a new history, set an `alias`.")


@pytest.mark.parametrize(
    ("columns", "failure"),
    [
        (MISSING, "[SILT_CONCURRENT_APPEND] another writer"),
        (MISSING, f"[SILT_VALUE_NOT_CASTABLE] [CAST_INVALID_INPUT] {CAST}"),
        (replace(MISSING, query=STORED), "[SILT_COLUMN_NOT_FOUND] `nmae`"),
        (replace(RETYPED, query=STORED), f"[SILT_VALUE_NOT_CASTABLE] [CAST_INVALID_INPUT] {CAST}"),
        (RETYPED, "[SILT_CHECK_VIOLATION] a row"),
    ],
)
def test_a_write_that_failed_for_another_reason_gets_no_explanation(columns: ChangedColumns, failure: str) -> None:
    assert columns.explained(failure, None) is None
