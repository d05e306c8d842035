"""Statistics from the footers of small Parquet files."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files.statistics import FileStatistics, from_footers, indexed_columns
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore

LONG = PrimitiveType("long")
STRING = PrimitiveType("string")


def struct(**members: DataType) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in members.items()))


def statistics(
    table: pa.Table,
    schema: StructType,
    configuration: Mapping[str, str] | None = None,
    partition_columns: tuple[str, ...] = (),
    **options: Any,
) -> FileStatistics:
    store, sink = MemoryStore(), io.BytesIO()
    pq.write_table(table, sink, **options)
    store.put("a b.parquet", sink.getvalue())
    properties = TableProperties(configuration or {})
    return from_footers(store, ["a b.parquet"], schema, properties, partition_columns)["a b.parquet"]


def document(*args: Any, **kwargs: Any) -> Any:
    return json.loads(statistics(*args, **kwargs).json, parse_float=Decimal)


def one(kind: DataType, values: list[Any], arrow: pa.DataType, **options: Any) -> Any:
    return document(pa.table({"c": pa.array(values, arrow)}), struct(c=kind), **options)


UTC = timezone.utc
TYPES: list[tuple[str, DataType, pa.DataType, list[Any], Any, Any]] = [
    ("byte", PrimitiveType("byte"), pa.int8(), [3, -4], -4, 3),
    ("short", PrimitiveType("short"), pa.int16(), [3, -4], -4, 3),
    ("long", LONG, pa.int64(), [2**63 - 1, -(2**63)], -(2**63), 2**63 - 1),
    ("decimal in int32", DecimalType(9, 2), pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-2.00")], "-2.00", "1.10"),
    (
        "decimal in int64",
        DecimalType(18, 1),
        pa.decimal128(18, 1),
        [Decimal("12345678901234567.1")] * 2,
        *["12345678901234567.1"] * 2,
    ),
    (
        "decimal in bytes",
        DecimalType(38, 2),
        pa.decimal128(38, 2),
        [Decimal("-12345678901234567890.10"), Decimal(7)],
        "-12345678901234567890.10",
        "7.00",
    ),
    ("date", PrimitiveType("date"), pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], "0001-01-01", "9999-12-31"),
    (
        "timestamp",
        PrimitiveType("timestamp"),
        pa.timestamp("us", "UTC"),
        [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2024, 1, 1, 0, 0, 0, 1_999, UTC)],
        "1969-12-31T23:59:59.999Z",
        "2024-01-01T00:00:00.001Z",
    ),
    (
        "timestamp in milliseconds",
        PrimitiveType("timestamp"),
        pa.timestamp("ms", "UTC"),
        [datetime(2024, 1, 1, 0, 0, 0, 1_000, UTC)],
        *["2024-01-01T00:00:00.001Z"] * 2,
    ),
    (
        "timestamp_ntz",
        PrimitiveType("timestamp_ntz"),
        pa.timestamp("us"),
        [datetime(1960, 1, 1, 0, 0, 0, 123_456)],
        *["1960-01-01T00:00:00.123"] * 2,
    ),
    ("string", STRING, pa.string(), ["\uffff", "\U0001f680", ""], "", "\U0001f680"),
    ("unsigned byte", PrimitiveType("short"), pa.uint8(), [200, 1], 1, 200),
    ("unsigned short", PrimitiveType("integer"), pa.uint16(), [60_000, 1], 1, 60_000),
    ("unsigned integer", LONG, pa.uint32(), [3_000_000_000, 1], 1, 3_000_000_000),
    ("unsigned long", DecimalType(20, 0), pa.uint64(), [2**64 - 1, 1], "1", str(2**64 - 1)),
    ("256-bit decimal", DecimalType(38, 1), pa.decimal256(38, 1), [Decimal("1.1"), Decimal("-2.0")], "-2.0", "1.1"),
]
if hasattr(pa, "decimal32"):  # pyarrow writes these since version 19
    TYPES += [
        ("string in a view", STRING, pa.string_view(), ["b", "a"], "a", "b"),
        ("half float", PrimitiveType("float"), pa.float16(), [-2.5, float("nan")], -2.5, None),
        ("32-bit decimal", DecimalType(9, 2), pa.decimal32(9, 2), [Decimal("1.10"), Decimal("-2.00")], "-2.00", "1.10"),
        ("64-bit decimal", DecimalType(18, 1), pa.decimal64(18, 1), [Decimal("1.1"), Decimal("-2.0")], "-2.0", "1.1"),
    ]


@pytest.mark.parametrize(("name", "kind", "arrow", "values", "low", "high"), TYPES, ids=[case[0] for case in TYPES])
def test_each_type_has_its_bounds(
    name: str, kind: DataType, arrow: pa.DataType, values: list[Any], low: Any, high: Any
) -> None:
    for as_integer in (False, True):
        text = statistics(
            pa.table({"c": pa.array([*values, None], arrow)}), struct(c=kind), store_decimal_as_integer=as_integer
        ).json
        expected = [json.dumps(low, ensure_ascii=False), json.dumps(high, ensure_ascii=False)]
        if isinstance(kind, DecimalType):
            expected = [low, high]
        greatest = "" if high is None else f',"maxValues":{{"c":{expected[1]}}}'
        assert f'"minValues":{{"c":{expected[0]}}}{greatest},"nullCount"' in text
        assert json.loads(text)["nullCount"] == {"c": 1}
        assert json.loads(text)["numRecords"] == len(values) + 1


def test_the_bounds_of_a_dictionary_are_the_bounds_of_its_values() -> None:
    found = document(pa.table({"c": pa.array(["b", "a"]).dictionary_encode()}), struct(c=STRING))
    assert (found["minValues"], found["maxValues"]) == ({"c": "a"}, {"c": "b"})


def test_an_unsigned_struct_field_has_bounds_over_all_row_groups() -> None:
    values = pa.array([{"u": 3_000_000_000}, {"u": 7}, {"u": 4_000_000_000}], pa.struct([("u", pa.uint32())]))
    found = document(pa.table({"s": values}), struct(s=struct(u=LONG)), row_group_size=1)
    assert (found["minValues"], found["maxValues"]) == ({"s": {"u": 7}}, {"s": {"u": 4_000_000_000}})


def test_bounds_span_row_groups_and_all_null_groups_add_nothing() -> None:
    found = one(LONG, [None, None, 7, 3, 5, None], pa.int64(), row_group_size=2)
    assert found == {"numRecords": 6, "minValues": {"c": 3}, "maxValues": {"c": 7}, "nullCount": {"c": 3}}


def test_a_column_of_nulls_has_only_a_null_count() -> None:
    assert one(LONG, [None, None], pa.int64()) == {"numRecords": 2, "nullCount": {"c": 2}}


def test_a_file_without_rows_has_a_row_count_of_zero() -> None:
    assert one(LONG, [], pa.int64())["numRecords"] == 0


@pytest.mark.parametrize(
    ("kind", "arrow"), [(PrimitiveType("boolean"), pa.bool_()), (PrimitiveType("binary"), pa.binary())]
)
def test_booleans_and_binaries_have_only_null_counts(kind: DataType, arrow: pa.DataType) -> None:
    value = True if arrow == pa.bool_() else b"x"
    assert one(kind, [value, None], arrow) == {"numRecords": 2, "nullCount": {"c": 1}}


def test_a_writer_that_ignores_nan_provides_no_maximum() -> None:
    found = one(PrimitiveType("double"), [1.5, float("nan"), None], pa.float64())
    assert found == {"numRecords": 3, "minValues": {"c": Decimal("1.5")}, "nullCount": {"c": 1}}


def test_long_strings_are_truncated_to_the_tables_prefix_length() -> None:
    values = pa.table({"c": ["a" * 40, "b" * 40]})
    assert document(values, struct(c=STRING))["minValues"] == {"c": "a" * 32}
    assert document(values, struct(c=STRING))["maxValues"] == {"c": "b" * 32 + "\x7f"}
    short = document(values, struct(c=STRING), {"delta.dataSkippingStringPrefixLength": "3"})
    assert (short["minValues"], short["maxValues"]) == ({"c": "aaa"}, {"c": "bbb\x7f"})
    none = document(values, struct(c=STRING), {"delta.dataSkippingStringPrefixLength": "0"})
    assert none == {"numRecords": 2, "nullCount": {"c": 0}}


def test_a_column_chunk_without_statistics_yields_none_and_is_named() -> None:
    table = pa.table({"a": ["x", None], "b": [1, 2]})
    found = statistics(table, struct(a=STRING, b=LONG), write_statistics=["b"])
    assert json.loads(found.json) == {
        "numRecords": 2,
        "minValues": {"b": 1},
        "maxValues": {"b": 2},
        "nullCount": {"b": 0},
    }
    assert found.missing == (("a",),)
    assert statistics(table, struct(a=STRING, b=LONG)).missing == ()


def test_timestamps_as_int96_have_no_bounds_and_are_named() -> None:
    table = pa.table({"c": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
    found = statistics(table, struct(c=PrimitiveType("timestamp")), use_deprecated_int96_timestamps=True)
    assert "minValues" not in json.loads(found.json)
    assert found.missing == (("c",),)


def test_structs_are_nested_and_a_null_struct_counts_as_null_for_its_fields() -> None:
    table = pa.table({"s": [{"x": 1, "t": {"y": "a"}}, None, {"x": None, "t": None}]})
    assert document(table, struct(s=struct(x=LONG, t=struct(y=STRING)))) == {
        "numRecords": 3,
        "minValues": {"s": {"x": 1, "t": {"y": "a"}}},
        "maxValues": {"s": {"x": 1, "t": {"y": "a"}}},
        "nullCount": {"s": {"x": 2, "t": {"y": 2}}},
    }


def test_a_dot_in_a_name_does_not_nest() -> None:
    table = pa.table({"a": [{"b": 1}], "a.b": [9]})
    found = document(table, StructType((StructField("a", struct(b=LONG)), StructField("a.b", LONG))))
    assert found["minValues"] == {"a": {"b": 1}, "a.b": 9}


@pytest.mark.parametrize(
    ("values", "nulls"),
    [([[1], [2]], 0), ([[1], []], None), ([[1], None], None), ([[1], [None]], None)],
)
def test_arrays_have_a_null_count_only_if_the_footer_proves_it(values: list[Any], nulls: int | None) -> None:
    found = one(ArrayType(LONG), values, pa.list_(pa.int64()))
    assert found.get("nullCount", {}).get("c") == nulls
    mapped = [None if each is None else [(str(key), key) for key in each] for each in values]
    found = one(MapType(STRING, LONG), mapped, pa.map_(pa.string(), pa.int64()))
    assert found.get("nullCount", {}).get("c") == (0 if all(values) else None)


def test_a_column_that_the_file_lacks_is_null_in_every_row() -> None:
    assert document(pa.table({"a": [1, 2]}), struct(a=LONG, b=LONG))["nullCount"] == {"a": 0, "b": 2}


def test_a_column_of_another_type_than_the_tables_has_no_bounds() -> None:
    assert "minValues" not in document(pa.table({"c": ["1"]}), struct(c=LONG))


def names(schema: StructType, configuration: Mapping[str, str], partition_columns: tuple[str, ...] = ()) -> list[str]:
    found = indexed_columns(schema, TableProperties(configuration), partition_columns)
    return [".".join(column.path) for column in found]


WIDE = struct(p=LONG, s=struct(x=LONG, y=ArrayType(LONG)), **{f"c{number}": LONG for number in range(40)})


def test_the_first_leaf_columns_have_statistics_and_partition_columns_do_not_count() -> None:
    assert names(WIDE, {}, ("P",)) == ["s.x", "s.y", *(f"c{number}" for number in range(30))]
    assert names(WIDE, {"delta.dataSkippingNumIndexedCols": "2"}) == ["p", "s.x"]
    assert names(WIDE, {"delta.dataSkippingNumIndexedCols": "0"}) == []
    assert len(names(WIDE, {"delta.dataSkippingNumIndexedCols": "-1"})) == 43


def test_named_columns_have_statistics_instead_of_the_first_columns() -> None:
    chosen = {"delta.dataSkippingStatsColumns": "C39, S.X, nothing", "delta.dataSkippingNumIndexedCols": "1"}
    assert names(WIDE, chosen) == ["s.x", "c39"]
    assert names(WIDE, {"delta.dataSkippingStatsColumns": "s"}) == ["s.x", "s.y"]
    quoted = StructType((StructField("a.b", LONG), StructField("c`d", LONG), StructField("e,f", LONG)))
    assert names(quoted, {"delta.dataSkippingStatsColumns": "`a.b`,`c``d`,`e,f`"}) == ["a.b", "c`d", "e,f"]


def test_statistics_use_physical_names() -> None:
    mapped = StructField("c", LONG, metadata={"delta.columnMapping.physicalName": "col-1"})
    assert document(pa.table({"col-1": [1]}), StructType((mapped,)))["minValues"] == {"col-1": 1}


def test_many_files_are_read_in_one_call() -> None:
    store, paths = MemoryStore(), [f"{number}.parquet" for number in range(50)]
    for number, path in enumerate(paths):
        sink = io.BytesIO()
        pq.write_table(pa.table({"c": [number]}), sink)
        store.put(path, sink.getvalue())
    found = from_footers(store, paths, struct(c=LONG), TableProperties({}))
    assert [json.loads(found[path].json)["minValues"]["c"] for path in paths] == list(range(50))


def test_a_missing_file_and_a_truncated_file_raise_different_errors() -> None:
    store = MemoryStore()
    store.put("cut.parquet", b"PAR1")
    with pytest.raises(DataFileMissingError, match=r"gone\.parquet"):
        from_footers(store, ["gone.parquet"], struct(c=LONG), TableProperties({}))
    with pytest.raises(TableDamagedError, match=r"cut\.parquet"):
        from_footers(store, ["cut.parquet"], struct(c=LONG), TableProperties({}))


def test_as_many_footers_are_read_concurrently_as_the_store_allows() -> None:
    together = threading.Barrier(64)

    class Service(MemoryObjectStore):
        """Answers when 64 requests are waiting."""

        @property
        def files_at_once(self) -> int:
            return 64

        def open_input(self, path: str) -> IO[bytes]:
            together.wait(timeout=60)
            return super().open_input(path)

    store, sink = Service(), io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), sink)
    names = [f"part-{number}.parquet" for number in range(64)]
    for name in names:
        store.put(name, sink.getvalue())
    found = from_footers(store, names, struct(id=LONG), TableProperties({}))
    assert {each.num_records for each in found.values()} == {2}
