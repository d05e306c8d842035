"""Compares rows with published Parquet files: names, types and values; not the order of the rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.interop.rows import as_rows

MANY = 20_000
"""The number of rows from which Arrow compares them, as columns."""


def published(folder: Path) -> pa.Table:
    """Returns the rows of all Parquet files in a folder; times of the type INT96 in microseconds."""
    files = sorted(file for file in folder.rglob("*.parquet") if not file.name.startswith((".", "_")))
    read = [pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read() for file in files]
    return pa.concat_tables(read, promote_options="permissive")


def assert_same_rows(ours: pa.Table, expected: pa.Table) -> None:
    """Checks that two tables have the same columns and the same rows in any order."""
    assert ours.column_names == expected.column_names
    assert [plain_type(each) for each in ours.schema.types] == [plain_type(each) for each in expected.schema.types]
    # An INT96 has no zone, and is an instant nevertheless.
    expected = expected.cast(ours.schema)
    if ours.num_rows < MANY or any(pa.types.is_nested(each) for each in ours.schema.types):
        # Texts, as NaN does not equal itself.
        assert list(map(repr, as_rows(ours))) == list(map(repr, as_rows(expected)))
    else:
        assert _in_order(ours).equals(_in_order(expected))


def _in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def plain_type(data_type: pa.DataType) -> str:
    """Returns the text of a type; without what Parquet files of the same type differ in: zones, nullability and the
    names of elements.
    """
    if pa.types.is_timestamp(data_type):
        return "timestamp"
    if pa.types.is_struct(data_type):
        return "struct<" + ", ".join(f"{each.name}: {plain_type(each.type)}" for each in data_type) + ">"
    if pa.types.is_map(data_type):
        return f"map<{plain_type(data_type.key_type)}, {plain_type(data_type.item_type)}>"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_list_view(data_type):
        return f"list<{plain_type(data_type.value_type)}>"
    return str(data_type).removeprefix("large_").removesuffix("_view")
