"""Columns, and the conversion of values between Arrow and agate."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import agate
import pyarrow as pa
import pytest
from dbt_common.clients import agate_helper
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, DecimalType, LongType, MapType, StringType, StructField, StructType

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError
from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.runs.agate_tables import rows_of, to_agate, to_arrow, unique_names

DAY = datetime.date(2026, 3, 1)
NOON = datetime.datetime(2026, 3, 1, 12, 30, 15, 123456)


def seed(tmp_path: Path, text: str, *text_columns: str) -> agate.Table:
    """Reads a CSV file as dbt does."""
    path = tmp_path / "seed.csv"
    path.write_text(text, encoding="utf-8")
    return agate_helper.from_csv(path, text_columns=text_columns)


def test_columns_have_spark_types_and_comments() -> None:
    schema = StructType(
        [
            StructField("id", LongType(), False, {"comment": "the key"}),
            StructField("price", DecimalType(10, 2)),
            StructField("tags", ArrayType(StringType())),
        ]
    )
    columns = SiltColumn.of_schema(schema)
    assert [(each.name, each.data_type, each.comment) for each in columns] == [
        ("id", "bigint", "the key"),
        ("price", "decimal(10,2)", None),
        ("tags", "array<string>", None),
    ]
    assert columns[0].is_integer()
    assert columns[1].is_numeric()


@pytest.mark.parametrize(
    ("text", "literal"), [("it's", r"'it\'s'"), ("a\\b", r"'a\\b'"), ("", "''"), ("two\nlines", "'two\nlines'")]
)
def test_a_string_becomes_a_spark_literal(text: str, literal: str) -> None:
    assert string_literal(text) == literal


def test_repeated_names_are_numbered() -> None:
    assert unique_names(["a", "b", "a", "a"]) == ["a", "b", "a_2", "a_3"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 2**53 + 1, -(2**63)], pa.int64()),
        ([Decimal("12345678901234567890.123456789"), None], pa.decimal128(38, 9)),
        ([True, None, False], pa.bool_()),
        ([DAY, None], pa.date32()),
        ([NOON, None], pa.timestamp("us")),
        (["", "null", "n/a", "None", "007", None], pa.string()),
    ],
)
def test_fetched_values_keep_their_types(values: list[Any], kind: pa.DataType) -> None:
    table = to_agate(pa.table({"a": pa.array(values, kind)}))
    assert list(table.columns["a"].values()) == values


def test_an_instant_is_fetched_as_local_time_of_the_sessions_zone() -> None:
    instant = datetime.datetime(2026, 3, 1, 20, 0, tzinfo=datetime.timezone.utc)
    table = pa.table({"a": pa.array([instant], pa.timestamp("us", tz="America/Los_Angeles"))})
    assert rows_of(table) == [(datetime.datetime(2026, 3, 1, 12, 0),)]


def test_nested_values_are_fetched_as_json() -> None:
    table = pa.table({"a": [[1, 2]], "b": [{"x": "é"}], "c": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})
    assert list(to_agate(table).rows[0].values()) == ["[1, 2]", '{"x": "\\u00e9"}', '{"k": 1}']


def test_a_map_is_an_object_even_if_it_is_empty() -> None:
    kinds = {
        "empty": (pa.map_(pa.string(), pa.int64()), []),
        "inside": (pa.list_(pa.map_(pa.string(), pa.int64())), [[], None]),
        "by_number": (pa.map_(pa.int64(), pa.bool_()), [(1, True)]),
        "by_day": (pa.map_(pa.date32(), pa.string()), [(DAY, None)]),
        "by_struct": (pa.map_(pa.struct([("x", pa.string())]), pa.int64()), [({"x": "a"}, 1)]),
        "no_map": (pa.list_(pa.int64()), []),
    }
    table = pa.table({name: pa.array([value], kind) for name, (kind, value) in kinds.items()})
    assert list(to_agate(table).rows[0].values()) == [
        "{}",
        "[{}, null]",
        '{"1": true}',
        '{"2026-03-01": null}',
        '{"{\\"x\\": \\"a\\"}": 1}',
        "[]",
    ]


def test_decimals_inside_of_other_values_keep_their_digits() -> None:
    kind = pa.struct([("n", pa.decimal128(38, 12)), ("by_key", pa.map_(pa.string(), pa.list_(pa.decimal128(38, 0))))])
    value = {"n": Decimal("12345678901234567890123456.123456789012"), "by_key": [("k", [Decimal("1" * 38), None])]}
    (text,) = to_agate(pa.table({"a": pa.array([value], kind)})).columns["a"].values()
    assert text == f'{{"n": 12345678901234567890123456.123456789012, "by_key": {{"k": [{"1" * 38}, null]}}}}'


FAR_DAY, FAR_MICROSECOND = 2_932_897, 253_402_300_800_000_000


def test_dates_and_times_beyond_pythons_range_are_fetched_as_strings() -> None:
    days = pa.array([FAR_DAY, None, 0], pa.int32()).cast(pa.date32())
    times = pa.array([FAR_MICROSECOND, None, 0], pa.int64()).cast(pa.timestamp("us"))
    inside = pa.StructArray.from_arrays([days, pa.array([Decimal("1.50")] * 3)], ["day", "n"])
    found = to_agate(pa.table({"day": days, "at": times, "inside": inside}))
    assert [list(row.values()) for row in found.rows] == [
        ["10000-01-01", "10000-01-01 00:00:00.000000", '{"day": "10000-01-01", "n": 1.50}'],
        [None, None, '{"day": null, "n": 1.50}'],
        ["1970-01-01", "1970-01-01 00:00:00.000000", '{"day": "1970-01-01", "n": 1.50}'],
    ]


ARROW_VALUES = st.one_of(
    st.tuples(st.just(pa.date32()), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(pa.timestamp("us")), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(pa.timestamp("us", "America/Los_Angeles")), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(pa.duration("us")), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(pa.float64()), st.floats()),
)


@given(st.tuples(ARROW_VALUES, st.booleans()))
def test_every_value_of_arrow_is_fetched(drawn: tuple[tuple[pa.DataType, Any], bool]) -> None:
    (kind, raw), is_nested = drawn
    stored = pa.float64() if kind == pa.float64() else pa.int32() if kind == pa.date32() else pa.int64()
    values = pa.array([raw, None], stored).cast(kind)
    column = pa.ListArray.from_arrays(pa.array([0, 1, 2]), values) if is_nested else values
    first, second = to_agate(pa.table({"a": column})).columns["a"].values()
    assert first is not None
    assert second == ("[null]" if is_nested else None)


def test_a_column_with_only_nulls_is_kept() -> None:
    table = to_agate(pa.table({"a": pa.array([None, None], pa.int64())}))
    assert list(table.columns["a"].values()) == [None, None]


def test_a_seed_keeps_quotes_unicode_and_long_numbers(tmp_path: Path) -> None:
    table = to_arrow(seed(tmp_path, 'id,name\n9007199254740993,"it\'s a ""q"""\n2,日本\n'))
    assert table.to_pylist() == [{"id": 9007199254740993, "name": 'it\'s a "q"'}, {"id": 2, "name": "日本"}]
    assert table.schema.types == [pa.int64(), pa.string()]


def test_a_seeds_empty_field_is_null_as_in_dbt(tmp_path: Path) -> None:
    table = to_arrow(seed(tmp_path, "id,name,day,ok\n1,,,\n2,null,2026-03-01,true\n"))
    assert table.to_pylist() == [
        {"id": 1, "name": None, "day": None, "ok": None},
        {"id": 2, "name": None, "day": DAY, "ok": True},
    ]


def test_a_seeds_numbers_get_the_narrowest_sufficient_type(tmp_path: Path) -> None:
    table = to_arrow(seed(tmp_path, "a,b,c\n1,1.5,99999999999999999999\n2,2,1\n"))
    assert table.schema.types == [pa.int64(), pa.float64(), pa.decimal128(38)]
    assert table["c"].to_pylist()[0] == Decimal("99999999999999999999")


def test_a_column_with_a_configured_type_is_read_as_strings(tmp_path: Path) -> None:
    table = to_arrow(seed(tmp_path, "zip\n00501\n", "zip"))
    assert table.to_pylist() == [{"zip": "00501"}]


def test_a_seeds_times_are_local_times_unless_the_file_contains_zones(tmp_path: Path) -> None:
    plain = to_arrow(seed(tmp_path, "at\n2026-03-01 12:30:15\n"))
    zoned = to_arrow(seed(tmp_path, "at\n2026-03-01T12:30:15+02:00\n"))
    assert plain.schema.types == [pa.timestamp("us")]
    assert zoned.schema.types == [pa.timestamp("us", tz="UTC")]
    assert zoned["at"][0].as_py() == datetime.datetime(2026, 3, 1, 10, 30, 15, tzinfo=datetime.timezone.utc)


def test_a_seed_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    assert to_arrow(seed(tmp_path, "a,b\n")).column_names == ["a", "b"]


@given(st.lists(st.one_of(st.none(), st.integers(-(10**30), 10**30)), min_size=1))
def test_integers_of_any_size_keep_their_value(values: list[int | None]) -> None:
    table = agate.Table([[value] for value in values], ["a"], [agate_helper.Number()])
    assert to_arrow(table)["a"].to_pylist() == values


def test_a_seeds_integer_of_too_many_digits_is_refused_and_a_large_double_is_not(tmp_path: Path) -> None:
    with pytest.raises(TypeMismatchError, match=r"`id` has a number of 39 digits.*column_types: {id: string}"):
        to_arrow(seed(tmp_path, f"id\n{'1' * 39}\n"))
    assert to_arrow(seed(tmp_path, "x\n1E300\n")).column("x").to_pylist() == [1e300]


@given(st.lists(st.none() | st.decimals(), min_size=1))
def test_every_number_of_a_seed_keeps_its_value_or_is_refused(values: list[Decimal | None]) -> None:
    table = agate.Table([[value] for value in values], ["a"], [agate_helper.Number()])
    try:
        found = to_arrow(table)["a"].to_pylist()
    except TypeMismatchError:
        return
    for value, stored in zip(values, found, strict=True):
        assert (stored is None) == (value is None)
        assert value is None or value.is_nan() or stored in (value, float(value))


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("TEXT", "string"),
        ("varchar", "string"),
        ("Bool", "boolean"),
        ("varchar(10)", "varchar(10)"),
        ("character  varying (10)", "varchar(10)"),
        ("int", "int"),
        ("int64", "bigint"),
        ("number", "decimal(38, 0)"),
        ("NUMBER(10, 2)", "decimal(10, 2)"),
        ("timestamptz(6)", "timestamp"),
        ("timestamp(3) without time zone", "timestamp_ntz"),
        ("TIMESTAMP (6) WITH TIME ZONE", "timestamp"),
        ("timestamp(6)", "timestamp"),
        ("ubigint", "decimal(20, 0)"),
        ("double precision", "double"),
        ("numeric(10,2)", "numeric(10,2)"),
        ("array<varchar(3)>", "array<varchar(3)>"),
        ("array<text>", "array<string>"),
        ("text[]", "array<string>"),
        ("map(varchar, int64)", "map<string, bigint>"),
        ("struct<text: text, `b c` int8 not null>", "struct<text: string, `b c`: bigint not null>"),
        ("row(a varchar(3), b decimal(18,3)[])", "struct<a: varchar(3), b: array<decimal(18, 3)>>"),
        ("varchar(max)", "string"),
        ("int(11)", "int"),
        ("float(53)", "double"),
        ("jsonb", "jsonb"),
        ("geography", "geography"),
        ("array<", "array<"),
        ("'", "'"),
        ("array<" * 100 + "text" + ">" * 100, "array<" * 100 + "text" + ">" * 100),
    ],
)
def test_names_of_types_in_other_databases_are_translated(written: str, known: str) -> None:
    assert SiltColumn.translate_type(written) == known


def test_fields_inside_of_columns_have_paths_and_comments() -> None:
    price = StructType([StructField("price", LongType(), metadata={"comment": "in euros"})])
    schema = StructType(
        [
            StructField("plain", LongType()),
            StructField("items", ArrayType(price)),
            StructField("by_key", MapType(LongType(), price)),
        ]
    )
    found = [
        [(each.quoted, each.dtype, each.comment) for each in column.fields] for column in SiltColumn.of_schema(schema)
    ]
    assert found == [
        [],
        [("`items`.`element`.`price`", "bigint", "in euros")],
        [("`by_key`.`value`.`price`", "bigint", "in euros")],
    ]
