"""Typed statistics and partition values contain the facts of their JSON or fewer, never others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.files.bounded_parquet import stats_texts
from dbt.adapters.silt.engine.kernel.files.bounds import column_bounds
from dbt.adapters.silt.engine.kernel.files.stats_json import Statistic
from dbt.adapters.silt.engine.kernel.files.stats_parsed_write import partition_values_parsed, stats_parsed
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DecimalType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.value_order import ValueOrder
from tests.examples import examples

PHYSICAL = "delta.columnMapping.physicalName"
NUMBERS = ("byte", "short", "integer", "long", "float", "double")
OTHERS = ("boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")
TYPES = {name: PrimitiveType(name) for name in (*NUMBERS, *OTHERS)} | {"decimal": DecimalType(20, 3)}
SCHEMA = StructType(
    (
        *(StructField(name, kind, metadata={PHYSICAL: f"c-{name}"}) for name, kind in TYPES.items()),
        StructField("inner", StructType((StructField("long", PrimitiveType("long")),))),
        StructField("tags", ArrayType(PrimitiveType("string"))),
        StructField("widened", PrimitiveType("long"), metadata={"delta.typeChanges": [{"fromType": "integer"}]}),
    )
)
METADATA = Metadata("t", SCHEMA.to_json())

MOMENTS = ["2024-01-01T10:00:00.123Z", "1883-11-18T00:00:00.000-07:52:58", "9999-12-31T23:59:59.999Z"]
JUNK: st.SearchStrategy[Any] = st.sampled_from([None, "x", True, [], {}, 1.5, 2**70])
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "byte": st.integers(-128, 127),
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(st.characters(codec="utf-8"), max_size=5),
    "date": st.dates().map(date.isoformat),
    "timestamp": st.sampled_from(MOMENTS),
    "timestamp_ntz": st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds")),
    "decimal": st.integers(1 - 10**17, 10**17 - 1),
}


@st.composite
def documents(draw: st.DrawFn, junk: bool) -> dict[str, Any]:
    def some(strategy: st.SearchStrategy[Any]) -> Any:
        return draw(st.one_of(strategy, JUNK) if junk else strategy)

    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True))
    return {
        "numRecords": some(st.integers(0, 9)),
        "minValues": {**{f"c-{name}": some(VALUES[name]) for name in names}, "inner": {"long": some(VALUES["long"])}},
        "maxValues": {f"c-{name}": some(VALUES[name]) for name in names},
        "nullCount": {**{f"c-{name}": some(st.integers(0, 9)) for name in names}, "tags": some(st.integers(0, 9))},
    }


def bounds(texts: Sequence[str | None]) -> dict[str, list[Any]]:
    """Returns the facts that the JSON proves of each column."""
    files = active_files.files_table([AddFile(f"f{n}", {}, 1, 1, stats=text) for n, text in enumerate(texts)])
    names = [Column.of(name) for name in TYPES] + [Column.of("inner", "long"), Column.of("tags"), Column.of("widened")]
    found = column_bounds(files, METADATA, names)
    return {
        str(column): [each.minimum.to_pylist(), each.maximum.to_pylist(), each.may_be_null, each.may_be_value]
        for column, each in found.items()
    }


def through_columns(texts: Sequence[str | None]) -> list[str | None]:
    parsed = stats_parsed(pa.array(texts, pa.string()), METADATA)
    parsed.validate(full=True)
    found: list[str | None] = stats_texts(parsed).to_pylist()
    return found


@given(st.lists(st.one_of(st.none(), documents(junk=False).map(json.dumps)), min_size=1, max_size=4))
@settings(max_examples=examples(30), deadline=None)
def test_typed_statistics_prove_the_same_as_their_json(texts: list[str | None]) -> None:
    assert bounds(through_columns(texts)) == bounds(texts)


@given(st.lists(st.one_of(st.sampled_from([None, "", "{", "[]"]), documents(junk=True).map(json.dumps)), max_size=4))
@settings(max_examples=examples(25), deadline=None)
def test_invalid_statistics_prove_nothing_more_as_a_column(texts: list[str | None]) -> None:
    before, after = bounds(texts), bounds(through_columns(texts))
    for name, (lows, highs, *_) in after.items():
        for got, known in zip([*lows, *highs], [*before[name][0], *before[name][1]], strict=True):
            assert got is None or got == known


def test_statistics_whose_type_or_zone_is_uncertain_are_left_as_json() -> None:
    text = json.dumps(
        {
            "numRecords": 1,
            "tightBounds": False,
            "minValues": {"c-timestamp": "2024-01-01 10:00:00", "widened": 1},
            "nullCount": {"widened": 0},
        }
    )
    (found,) = stats_parsed(pa.array([text]), METADATA).to_pylist()
    assert found["minValues"]["c-timestamp"] is None
    assert "widened" not in found["minValues"] and found["nullCount"]["widened"] == 0
    assert found["tightBounds"] is False
    assert "c-boolean" not in found["minValues"] and "tags" not in found["minValues"]


def test_typed_statistics_have_the_types_of_the_tables_columns() -> None:
    kind = stats_parsed(pa.array([None], pa.string()), METADATA).type
    bound = {member.name: member.type for member in kind.field("maxValues").type}
    assert bound["c-decimal"] == pa.decimal128(20, 3)
    assert bound["c-timestamp"] == pa.timestamp("us", tz="UTC")
    assert (bound["c-byte"], bound["c-float"], bound["c-date"]) == (pa.int8(), pa.float32(), pa.date32())
    assert bound["inner"] == pa.struct([("long", pa.int64())])


def test_only_indexed_columns_have_statistics() -> None:
    few = Metadata("t", SCHEMA.to_json(), configuration={"delta.dataSkippingNumIndexedCols": "2"})
    kind = stats_parsed(pa.array([None], pa.string()), few).type
    assert [member.name for member in kind.field("nullCount").type] == ["c-byte", "c-short"]
    none = Metadata("t", SCHEMA.to_json(), configuration={"delta.dataSkippingNumIndexedCols": "0"})
    assert [member.name for member in stats_parsed(pa.array([None], pa.string()), none).type] == [
        "numRecords",
        "tightBounds",
    ]


def partitions(texts: Mapping[str, str | None]) -> dict[str, Any] | None:
    metadata = Metadata("t", SCHEMA.to_json(), partition_columns=tuple(texts))
    values = pa.array([[(f"c-{name}", text) for name, text in texts.items()]], active_files.STRING_MAP)
    found = partition_values_parsed(values, metadata)
    return None if found is None else found.to_pylist()[0]


def test_typed_partition_values_have_the_types_of_the_tables_columns() -> None:
    assert partitions(
        {
            "integer": "-7",
            "string": "a b",
            "boolean": "true",
            "double": "1.0E20",
            "decimal": "12.340",
            "date": "2024-02-29",
            "timestamp": "2024-01-01T10:00:00.000001Z",
            "binary": "\x01é",
            "long": None,
            "short": "",
        }
    ) == {
        "c-integer": -7,
        "c-string": "a b",
        "c-boolean": True,
        "c-double": 1e20,
        "c-decimal": Decimal("12.340"),
        "c-date": date(2024, 2, 29),
        "c-timestamp": datetime(2024, 1, 1, 10, 0, 0, 1, timezone.utc),
        "c-binary": "\x01é".encode(),
        "c-long": None,
        "c-short": None,
    }


@pytest.mark.parametrize(("name", "text"), [("integer", "x"), ("byte", "1000"), ("double", "NaN"), ("date", "soon")])
def test_a_partition_value_without_a_typed_form_omits_the_column(name: str, text: str) -> None:
    assert partitions({name: text}) is None


def test_an_unpartitioned_table_has_no_partition_values() -> None:
    assert partitions({}) is None


@pytest.mark.parametrize(("name", "zone"), [("timestamp", "UTC"), ("timestamp_ntz", None)])
def test_the_bounds_of_sparks_first_and_last_moments_contain_them(name: str, zone: str | None) -> None:
    first, last = -(2**63), 2**63 - 1
    kept = {"minValues": [first], "maxValues": [last], "nullCount": [0], "numRecords": [2]}

    def read(wanted: Mapping[Statistic, ValueOrder | None]) -> dict[Statistic, pa.Array]:
        moments = pa.timestamp("us", zone)
        return {each: pa.array(kept[each[0]], moments if each[0].endswith("Values") else None) for each in wanted}

    files = active_files.files_table([AddFile("f", {}, 1, 1)])
    found = column_bounds(files, METADATA, [Column.of(name)], read)[Column.of(name)]
    assert (found.minimum.to_pylist(), found.maximum.to_pylist()) == ([first], [last])
