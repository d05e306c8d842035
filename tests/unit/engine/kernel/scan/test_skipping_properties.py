"""Random tables and random predicates: skipping compared with the predicate's outcome row by row."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footers
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.expressions import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    StartsWith,
    evaluate,
)
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType, StructField, StructType
from tests.examples import examples
from tests.memory_store import MemoryStore

OPERATORS = ("=", "<=>", "!=", "<", "<=", ">", ">=")
EPOCH = datetime(1970, 1, 1)
EDGES = ["", "a", "b", "\x7f", "\x80", "\ufffd", "\uffff", "\U00010000", "\U0001f680", "\U0010ffff"]
LONG_STRINGS = st.builds(
    lambda stem, times, tail: stem * times + tail,
    st.sampled_from(EDGES[1:]),
    st.sampled_from([1, 15, 16, 31, 32, 33, 64, 65]),
    st.sampled_from(EDGES),
)
NEAR = st.integers(-2_000_000, 2_000_000).map(lambda us: timedelta(microseconds=us))
MOMENTS = st.builds(lambda start, off: start + off, st.sampled_from([EPOCH, datetime(2024, 2, 29, 23, 59, 59)]), NEAR)


@dataclass(frozen=True)
class Kind:
    """A column type, its Arrow type, and values worth testing."""

    type: DataType
    arrow: pa.DataType
    values: st.SearchStrategy[Any]


KINDS = {
    "boolean": Kind(PrimitiveType("boolean"), pa.bool_(), st.booleans()),
    "byte": Kind(PrimitiveType("byte"), pa.int8(), st.integers(-128, 127)),
    "integer": Kind(PrimitiveType("integer"), pa.int32(), st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1)),
    "long": Kind(
        PrimitiveType("long"), pa.int64(), st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**53, 2**53 + 1])
    ),
    "float": Kind(
        PrimitiveType("float"), pa.float32(), st.sampled_from([0.0, -0.0, float("nan")]) | st.floats(width=32)
    ),
    "double": Kind(
        PrimitiveType("double"), pa.float64(), st.sampled_from([0.0, -0.0, 0.1, float("nan")]) | st.floats()
    ),
    "decimal": Kind(
        DecimalType(38, 2),
        pa.decimal128(38, 2),
        st.decimals(-9, 9, places=2) | st.sampled_from([Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".98")]),
    ),
    "string": Kind(PrimitiveType("string"), pa.string(), st.text(max_size=3) | st.sampled_from(EDGES) | LONG_STRINGS),
    "date": Kind(
        PrimitiveType("date"),
        pa.date32(),
        st.dates(date(1969, 12, 30), date(1970, 1, 2)) | st.sampled_from([date.min, date.max]),
    ),
    "timestamp": Kind(
        PrimitiveType("timestamp"),
        pa.timestamp("us", "UTC"),
        MOMENTS.map(lambda moment: moment.replace(tzinfo=timezone.utc)),
    ),
    "timestamp_ntz": Kind(PrimitiveType("timestamp_ntz"), pa.timestamp("us"), MOMENTS),
}


def predicates(kind: Kind, rows: Sequence[Any]) -> st.SearchStrategy[Expression]:
    column = st.sampled_from([Column.of("c"), Column.of("C")])
    held = [value for value in rows if value is not None]
    values = kind.values | st.sampled_from(held) if held else kind.values
    values = values | st.none()
    leaves: list[st.SearchStrategy[Expression]] = [
        st.builds(Comparison, st.sampled_from(OPERATORS), column, values),
        st.builds(In, column, st.lists(values, max_size=4).map(tuple)),
        st.builds(IsNull, column),
        st.builds(IsNotNull, column),
    ]
    if kind.arrow == pa.string():
        prefixes = values.filter(lambda value: value is not None).map(lambda value: value[:33])
        leaves.append(st.builds(StartsWith, column, prefixes))
    return st.recursive(
        st.one_of(leaves),
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
            | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
        ),
        max_leaves=6,
    )


def snapshot_of(kind: Kind, adds: Sequence[AddFile], partitioned: bool = False) -> Snapshot:
    schema = StructType((StructField("c", kind.type),))
    metadata = Metadata("id", schema.to_json(), ("c",) if partitioned else ())
    return Snapshot("t", 0, 0, metadata, Protocol(), TableFiles(active_files.files_table(adds)), {}, {})


def check(snapshot: Snapshot, predicate: Expression, files: Sequence[Sequence[Any]]) -> None:
    """Checks that each file with a matching row is kept, and is fully matched only if all rows match."""
    not_skipped = set(skipping.prune(snapshot, predicate)["path"].to_pylist())
    full = skipping.fully_matched(snapshot, predicate).to_pylist()
    for number, rows in enumerate(files):
        outcomes = [evaluate(predicate, {"C": value}) for value in rows]
        assert str(number) in not_skipped or True not in outcomes, (predicate, rows, snapshot.files["stats"][number])
        assert not full[number] or all(outcomes), (predicate, rows, snapshot.files["stats"][number])


def parquet_stats(kind: Kind, files: Sequence[Sequence[Any]]) -> list[str]:
    """Returns the statistics of real Parquet files with these values."""
    store = MemoryStore()
    names = [f"{number}.parquet" for number in range(len(files))]
    for name, rows in zip(names, files, strict=True):
        sink = io.BytesIO()
        pq.write_table(pa.table({"c": pa.array(rows, kind.arrow)}), sink, row_group_size=2)
        store.put(name, sink.getvalue())
    found = from_footers(store, names, StructType((StructField("c", kind.type),)), TableProperties({}))
    return [found[name].json for name in names]


def spark_stats(rows: Sequence[Any]) -> str:
    """Returns the statistics of numbers as an aggregate in Spark computes them: NaN is the greatest."""
    values = [value for value in rows if value is not None]
    document: dict[str, Any] = {"numRecords": len(rows), "nullCount": {"c": len(rows) - len(values)}}
    if values:
        ordered = sorted(values, key=lambda value: (math.isnan(value), value))
        texts = [value if math.isfinite(value) else _spelled(value) for value in (ordered[0], ordered[-1])]
        document |= {"minValues": {"c": texts[0]}, "maxValues": {"c": texts[1]}}
    return json.dumps(document)


def _spelled(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_a_file_with_a_matching_row_is_kept_by_its_footer_statistics(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    files = data.draw(st.lists(st.lists(kind.values | st.none(), max_size=4), min_size=1, max_size=3))
    predicate = data.draw(predicates(kind, [value for rows in files for value in rows]))
    texts = parquet_stats(kind, files)
    tags = data.draw(st.sampled_from([None, TRUSTED]))
    adds = [AddFile(str(number), {}, 1, 0, stats=text, tags=tags) for number, text in enumerate(texts)]
    check(snapshot_of(kind, adds), predicate, files)


@pytest.mark.parametrize("name", ["float", "double"])
@settings(max_examples=examples(50), deadline=None)
@given(data=st.data())
def test_maxima_that_consider_nan_are_trusted_and_never_lose_a_row(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    files = data.draw(st.lists(st.lists(kind.values | st.none(), max_size=4), min_size=1, max_size=3))
    predicate = data.draw(predicates(kind, [value for rows in files for value in rows]))
    many = files * data.draw(st.sampled_from([1, 40]))
    adds = [AddFile(str(number), {}, 1, 0, stats=spark_stats(rows), tags=TRUSTED) for number, rows in enumerate(many)]
    check(snapshot_of(kind, adds), predicate, many)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_a_partition_with_matching_rows_is_kept(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    values = data.draw(st.lists(kind.values | st.none(), min_size=1, max_size=3))
    values = [None if value == "" else value for value in values]
    predicate = data.draw(predicates(kind, values))
    adds = [
        AddFile(str(number), {"c": partition_text(value)}, 1, 0, stats='{"numRecords":1}')
        for number, value in enumerate(values)
    ]
    check(snapshot_of(kind, adds, partitioned=True), predicate, [[value] for value in values])


def partition_text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + "Z" if value.tzinfo else text.replace("T", " ")
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else _spelled(value)
    return str(value)


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_statistics_are_still_true_after_a_deletion_vector_deletes_rows(data: st.DataObject) -> None:
    kind = KINDS["long"]
    rows = data.draw(st.lists(kind.values | st.none(), min_size=1, max_size=5))
    left = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True))
    predicate = data.draw(predicates(kind, rows))
    document = json.loads(parquet_stats(kind, [rows])[0])
    nulls = document["nullCount"]["c"]
    if 0 < nulls < len(rows):
        document["nullCount"]["c"] = data.draw(st.integers(1, len(rows) - 1))
    vector = DeletionVector("u", "x", 1, len(rows) - len(left))
    add = AddFile("0", {}, 1, 0, stats=json.dumps(document | {"tightBounds": False}), deletion_vector=vector)
    check(snapshot_of(kind, [add]), predicate, [[rows[position] for position in left]])
