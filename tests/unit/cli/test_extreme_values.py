"""Values that SQL has and Python's arithmetic has not: long decimals, days and times outside the years 1 to 9999."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED_TAG, from_footers
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.min_max import Extreme, extreme
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DecimalType, PrimitiveType, StructField, StructType

_TYPES: dict[str, tuple[Any, pa.DataType, st.SearchStrategy[int]]] = {
    "whole": (DecimalType(38, 0), pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1)),
    "tiny": (DecimalType(38, 38), pa.decimal128(38, 38), st.integers(-(10**38) + 1, 10**38 - 1)),
    "mixed": (DecimalType(38, 12), pa.decimal128(38, 12), st.integers(-(10**38) + 1, 10**38 - 1)),
    "day": (PrimitiveType("date"), pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    "at": (PrimitiveType("timestamp"), pa.timestamp("us", "UTC"), st.integers(-(2**63), 2**63 - 1)),
    "wall": (PrimitiveType("timestamp_ntz"), pa.timestamp("us"), st.integers(-(2**63), 2**63 - 1)),
}
_MEMBERS = tuple(StructField(name, kind) for name, (kind, _, _) in _TYPES.items())
SCHEMA = StructType((*_MEMBERS, StructField("inside", StructType(_MEMBERS))))
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, _, values) in _TYPES.items()}), min_size=1, max_size=3
)
TIMES = st.integers(-(2**63), 2**63 - 1)

each_table = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def exact(unscaled: int, scale: int) -> Decimal:
    return Decimal(f"{unscaled}E-{scale}")


def table_of(folder: Path, rows: list[dict[str, int | None]], committed_ms: int) -> DeltaLog:
    """A table of one file and one commit, which says that time."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / LOG_FOLDER).mkdir(parents=True)
    columns = {name: _column([row[name] for row in rows], arrow) for name, (_, arrow, _) in _TYPES.items()}
    inside = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    pq.write_table(pa.table({**columns, "inside": inside}), folder / "part-0.parquet")
    store = LocalStore(folder)
    metadata = Metadata("4f0c1a2e-0000-4000-8000-000000000000", SCHEMA.to_json(), created_time=committed_ms)
    stats = from_footers(store, ["part-0.parquet"], SCHEMA, TableProperties({}))["part-0.parquet"].json
    size = (folder / "part-0.parquet").stat().st_size
    add = AddFile("part-0.parquet", {}, size, committed_ms, stats=stats, tags={TRUSTED_TAG: "true"})
    actions = (CommitInfo(operation="WRITE", timestamp=committed_ms), Protocol(1, 2), metadata, add)
    store.put_if_absent(commit_path(0), serialize(actions))
    return DeltaLog(store, "t")


def _column(values: list[int | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else exact(value, kind.scale) for value in values], kind)
    return pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)


def silt(*arguments: str) -> tuple[int, str]:
    """The exit code, and what a subcommand printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        return main(list(arguments)), out.getvalue()


@each_table
@given(rows=ROWS, committed_ms=TIMES)
def test_every_table_is_shown_checked_and_its_decimals_are_whole(
    tmp_path: Path, rows: list[dict[str, int | None]], committed_ms: int
) -> None:
    log = table_of(tmp_path / "t", rows, committed_ms)
    where = ("--warehouse", str(tmp_path))
    code, printed = silt("show", str(tmp_path / "t"), "--json", *where)
    assert code == 0
    columns = {column["name"]: column for column in json.loads(printed)["columns"]}
    for name in ("whole", "tiny", "mixed"):
        known = [exact(value, SCHEMA.require(name).type.scale) for row in rows if (value := row[name]) is not None]
        for end, function in (("min", min), ("max", max)):
            expected = function(known, default=None)
            found = columns[name][end]
            assert found == columns[f"inside.{name}"][end] == (None if expected is None else f"{expected:f}")
            assert extreme(log.store, log.snapshot(), log.snapshot().files, name, end) == Extreme(expected)
    assert silt("show", str(tmp_path / "t"), *where)[0] == 0
    assert silt("history", str(tmp_path / "t"), *where)[0] == 0
    assert silt("check", str(tmp_path / "t"), *where)[0] == 0
