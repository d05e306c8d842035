"""Exact answers from the log: row counts and extremes, compared with the rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footers
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.min_max import Extreme, extreme, extremes
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DecimalType, PrimitiveType, StructField, StructType
from tests.examples import examples

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("day", PrimitiveType("date")),
        StructField("at", PrimitiveType("timestamp")),
        StructField("wall", PrimitiveType("timestamp_ntz")),
        StructField("price", DecimalType(12, 2)),
        StructField("name", PrimitiveType("string")),
        StructField("share", PrimitiveType("double")),
    )
)
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("wall", pa.timestamp("us")),
        ("price", pa.decimal128(12, 2)),
        ("name", pa.string()),
        ("share", pa.float64()),
    ]
)
Row = dict[str, Any]


def snapshot_of(folder: Path, files: list[list[Row]], **changes: Any) -> tuple[LocalStore, Snapshot]:
    """Creates a table of these files, as this engine writes them; `changes` are applied to each of their actions."""
    store = LocalStore(str(folder))
    adds = []
    for number, rows in enumerate(files):
        path = f"part-{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, schema=ARROW), folder / path)
        stats = from_footers(store, [path], SCHEMA, TableProperties({}))[path].json
        add = AddFile(path, {}, 1_000, 0, stats=stats, tags=TRUSTED)
        adds.append(replace(add, **changes))
    metadata = Metadata("id", SCHEMA.to_json())
    return store, Snapshot("t", 0, 0, metadata, Protocol(), TableFiles(files_table(adds)), {}, {})


def ends(store: LocalStore, snapshot: Snapshot, name: str) -> tuple[Extreme | None, Extreme | None]:
    files = snapshot.files
    return extreme(store, snapshot, files, name, "min"), extreme(store, snapshot, files, name, "max")


values = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "day": st.none() | st.dates(),
        "at": st.none() | st.datetimes(datetime(1900, 1, 1), timezones=st.just(timezone.utc)),
        "wall": st.none() | st.datetimes(datetime(1900, 1, 1)),
        "price": st.none() | st.decimals(-(10**9), 10**9, places=2),
        "name": st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    }
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(values, min_size=1, max_size=4), max_size=4))
def test_an_extreme_equals_that_of_the_rows(tmp_path: Path, files: list[list[Row]]) -> None:
    store, snapshot = snapshot_of(tmp_path, files)
    rows = [row for file in files for row in file]
    assert row_count(snapshot.files) == len(rows)
    for name in ("id", "day", "at", "wall", "price", "name"):
        present = [row[name] for row in rows if row[name] is not None]
        if name == "name":
            present.sort(key=lambda text: text.encode())
        low, high = (present[0], present[-1]) if name == "name" and present else (None, None)
        if name != "name" and present:
            low, high = min(present), max(present)
        assert ends(store, snapshot, name) == (Extreme(low), Extreme(high)), name
    of_log = extremes(snapshot, snapshot.files, SCHEMA.names)
    assert {name for name, _ in of_log} == {"id", "day", "price", "name"}
    assert all(extreme(store, snapshot, snapshot.files, *each) == found for each, found in of_log.items())


def test_a_timestamp_is_exact_to_the_microsecond_though_the_log_is_not(tmp_path: Path) -> None:
    moments = [datetime(2024, 5, 1, 12, 0, 0, micro, timezone.utc) for micro in (123_001, 123_999, 123_500)]
    store, snapshot = snapshot_of(tmp_path, [[{"at": moment}] for moment in moments])
    assert ends(store, snapshot, "at") == (Extreme(moments[0]), Extreme(moments[1]))


def test_a_string_bound_that_may_be_truncated_is_not_used(tmp_path: Path) -> None:
    store, snapshot = snapshot_of(tmp_path, [[{"name": "a"}, {"name": "b" * 40}]])
    assert ends(store, snapshot, "name") == (Extreme("a"), None)


def test_extremes_of_a_floating_point_column_are_never_answered(tmp_path: Path) -> None:
    store, snapshot = snapshot_of(tmp_path, [[{"share": 1.0}]])
    assert ends(store, snapshot, "share") == (None, None)


@pytest.mark.parametrize(
    ("least", "greatest"), [("\U0001f600" * 16, "\U0001f600" * 20), ("a" + "\U0001f600" * 16, "日" * 33)]
)
def test_the_length_of_a_string_is_counted_in_utf16_units(tmp_path: Path, least: str, greatest: str) -> None:
    store, snapshot = snapshot_of(tmp_path, [[{"name": least + "x"}, {"name": greatest + "x"}]])
    low, high = ends(store, snapshot, "name")
    assert (low, high) == (None, None)
    store, snapshot = snapshot_of(tmp_path, [[{"name": "\U0001f600" * 15}]])
    assert ends(store, snapshot, "name") == (Extreme("\U0001f600" * 15),) * 2


@pytest.mark.parametrize(
    "change",
    [
        {"tags": None},
        {"tags": {"SILT_STATISTICS": "true"}},
        {"stats": json.dumps({"numRecords": 1, "tightBounds": False, "minValues": {"id": 1}, "maxValues": {"id": 1}})},
        {"stats": None},
        {"stats": json.dumps({"numRecords": 1})},
        {"deletion_vector": DeletionVector("i", "x", 1, 1)},
    ],
    ids=["another writer", "an earlier version", "wide bounds", "no statistics", "no bounds", "a deletion vector"],
)
def test_a_file_whose_bounds_may_be_wide_leaves_the_extreme_unknown(tmp_path: Path, change: dict[str, Any]) -> None:
    store, snapshot = snapshot_of(tmp_path, [[{"id": 1, "day": date(2024, 1, 1), "price": Decimal(1)}]], **change)
    assert ends(store, snapshot, "id") == (None, None)


def test_rows_deleted_by_a_deletion_vector_are_not_counted(tmp_path: Path) -> None:
    vector = DeletionVector("i", "x", 1, 2)
    _, snapshot = snapshot_of(tmp_path, [[{"id": number} for number in range(5)]], deletion_vector=vector)
    assert row_count(snapshot.files) == 3


def test_a_file_without_a_row_count_leaves_the_count_unknown(tmp_path: Path) -> None:
    _, snapshot = snapshot_of(tmp_path, [[{"id": 1}]], stats=None)
    assert row_count(snapshot.files) is None


def test_a_missing_data_file_leaves_the_extreme_to_the_scan_that_reports_it(tmp_path: Path) -> None:
    store, snapshot = snapshot_of(tmp_path, [[{"at": datetime(2024, 1, 1, tzinfo=timezone.utc)}]])
    (tmp_path / "part-0.parquet").unlink()
    assert ends(store, snapshot, "at") == (None, None)
    assert row_count(snapshot.files) == 1
