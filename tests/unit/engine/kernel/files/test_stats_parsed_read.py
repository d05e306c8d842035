"""`stats_parsed` of a checkpoint, converted to the JSON of `add.stats`."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.files.bounded_parquet import INT96_UNIT, READS_INT96, stats_texts
from tests.examples import examples

UTC = datetime.timezone.utc
VALUES = pa.struct(
    [
        ("i", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.decimal128(20, 3)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("flag", pa.bool_()),
        ("n", pa.struct([("x y", pa.int64())])),
    ]
)
STATS = pa.struct([("numRecords", pa.int64()), ("minValues", VALUES), ("nullCount", pa.struct([("i", pa.int64())]))])


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))
ROWS = optional(
    st.fixed_dictionaries(
        {
            "numRecords": optional(st.integers(0, 2**62)),
            "minValues": optional(
                st.fixed_dictionaries(
                    {
                        "i": optional(st.integers(-(2**31), 2**31 - 1)),
                        "s": optional(st.text(st.characters(exclude_categories=["Cs"]), max_size=6)),
                        "f": optional(st.floats()),
                        "d": optional(st.decimals(-(10**16), 10**16, allow_nan=False, places=3)),
                        "day": optional(st.dates()),
                        "at": optional(TIMES.map(lambda moment: moment.replace(tzinfo=UTC))),
                        "wall": optional(TIMES),
                        "flag": optional(st.booleans()),
                        "n": optional(st.fixed_dictionaries({"x y": optional(st.integers(0, 5))})),
                    }
                )
            ),
            "nullCount": optional(st.fixed_dictionaries({"i": optional(st.integers(0, 5))})),
        }
    )
)


def expected(value: Any) -> Any:
    """Returns the statistics, field by field; absent if they contain nothing."""
    if isinstance(value, dict):
        return {key: expected(member) for key, member in value.items() if member is not None}
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text if value.tzinfo is None else text + "Z"
    return value.isoformat() if isinstance(value, datetime.date) else value


@given(st.lists(ROWS, max_size=5))
@settings(max_examples=examples(60), deadline=None)
def test_the_json_has_the_values_of_the_columns(rows: list[Any]) -> None:
    texts = stats_texts(pa.array(rows, STATS)).to_pylist()
    for row, text in zip(rows, texts, strict=True):
        if row is None:
            assert text is None
            continue
        read = json.loads(text)
        decimal = (row["minValues"] or {}).get("d")
        if decimal is not None:
            exact = json.loads(text, parse_float=Decimal, parse_int=Decimal)["minValues"]["d"]
            assert exact == decimal
            read["minValues"].pop("d")
            row["minValues"].pop("d")
        assert read == expected(row)


def test_an_int96_timestamp_is_utc_and_rounded_down_or_omitted_if_pyarrow_misreads_it() -> None:
    moments = [
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    ]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    read = pq.read_table(io.BytesIO(sink.getvalue()), coerce_int96_timestamp_unit=INT96_UNIT)["at"].combine_chunks()
    texts = stats_texts(pa.StructArray.from_arrays([read], names=["at"])).to_pylist()
    assert texts == (
        ['{"at":"9999-12-31T23:59:59.999Z"}', '{"at":"1969-12-31T23:59:59.999Z"}'] if READS_INT96 else ["{}", "{}"]
    )


def test_types_without_minimum_and_structs_without_fields_are_omitted() -> None:
    kind = pa.struct([("b", pa.binary()), ("l", pa.list_(pa.int32())), ("e", pa.struct([]))])
    assert stats_texts(pa.array([{"b": b"x", "l": [1], "e": {}}, None], kind)).to_pylist() == ['{"e":{}}', None]
