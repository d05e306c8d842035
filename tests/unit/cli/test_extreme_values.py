"""Values that SQL supports and Python's arithmetic does not: long decimals, dates and times outside the years 1 to
9999.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footers
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.min_max import Extreme, extreme
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DecimalType, PrimitiveType, StructField, StructType
from tests.examples import examples
from tests.unit.cli.house import House

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

each_table = settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def exact(unscaled: int, scale: int) -> Decimal:
    return Decimal(f"{unscaled}E-{scale}")


def table_of(folder: Path, rows: list[dict[str, int | None]], committed_ms: int) -> DeltaLog:
    """Creates a table of one file and one commit with that time."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / LOG_FOLDER).mkdir(parents=True)
    columns = {name: _column([row[name] for row in rows], arrow) for name, (_, arrow, _) in _TYPES.items()}
    inside = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    pq.write_table(pa.table({**columns, "inside": inside}), folder / "part-0.parquet")
    store = LocalStore(folder)
    metadata = Metadata("4f0c1a2e-0000-4000-8000-000000000000", SCHEMA.to_json(), created_time=committed_ms)
    stats = from_footers(store, ["part-0.parquet"], SCHEMA, TableProperties({}))["part-0.parquet"].json
    size = (folder / "part-0.parquet").stat().st_size
    add = AddFile("part-0.parquet", {}, size, committed_ms, stats=stats, tags=TRUSTED)
    actions = (CommitInfo(operation="WRITE", timestamp=committed_ms), Protocol(1, 2), metadata, add)
    store.put_if_absent(commit_path(0), serialize(actions))
    return DeltaLog(store, "t")


def _column(values: list[int | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else exact(value, kind.scale) for value in values], kind)
    return pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)


def silt(*arguments: str) -> tuple[int, str]:
    """Runs a subcommand; returns its exit code and output."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        code = main(list(arguments))
    out.seek(0)
    return code, out.read()


@each_table
@given(rows=ROWS, committed_ms=TIMES)
def test_tables_with_extreme_values_are_shown_and_checked_without_loss_of_digits(
    tmp_path: Path, rows: list[dict[str, int | None]], committed_ms: int
) -> None:
    log = table_of(tmp_path / "t", rows, committed_ms)
    where = ("--warehouse", str(tmp_path))
    code, printed = silt("show", str(tmp_path / "t"), "--json", *where)
    assert code == 0
    columns = {column["name"]: column for column in json.loads(printed)["columns"]}
    for name in ("whole", "tiny", "mixed"):
        known = [exact(value, SCHEMA.require(name).type.scale) for row in rows if (value := row[name]) is not None]  # type: ignore[union-attr]
        for end, function in (("min", min), ("max", max)):
            expected = function(known, default=None)
            found = columns[name][end]
            assert found == columns[f"inside.{name}"][end] == (None if expected is None else f"{expected:f}")
            assert extreme(log.store, log.snapshot(), log.snapshot().files, name, end) == Extreme(expected)  # type: ignore[arg-type]
    assert silt("show", str(tmp_path / "t"), *where)[0] == 0
    assert silt("history", str(tmp_path / "t"), *where)[0] == 0
    assert silt("check", str(tmp_path / "t"), *where)[0] == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=3,
)
COUNTS = st.integers(0, 2**63 - 1)
ROW_METRICS = ("numOutputRows", "numCopiedRows", "numTargetRowsInserted", "numUpdatedRows", "numDeletedRows")
INFOS = st.fixed_dictionaries(
    {"dbt": st.fixed_dictionaries({"runId": st.just("r"), "invocationId": st.text(max_size=9)})},
    optional={
        "timestamp": TIMES | JSON,
        "inCommitTimestamp": TIMES | JSON,
        "operation": st.sampled_from(("WRITE", "MERGE", "UPDATE", "DELETE", "RESTORE")) | st.text(max_size=9) | JSON,
        "operationParameters": st.dictionaries(st.sampled_from(("version", "timestamp")), JSON | TIMES.map(str)) | JSON,
        "operationMetrics": st.dictionaries(st.sampled_from(ROW_METRICS), COUNTS.map(str) | st.text(max_size=4) | JSON)
        | st.just({"numOutputRows": "9" * 5_000})
        | JSON,
        "readVersions": st.dictionaries(st.text(max_size=5), JSON, max_size=2) | JSON,
        "commitAttempts": st.integers() | JSON,
        "statementAttempts": st.integers() | JSON,
        "userMetadata": st.text(max_size=9) | st.just("\ud800") | JSON,
        "engineInfo": JSON,
    },
)


@each_table
@given(infos=st.lists(INFOS, min_size=1, max_size=3))
def test_every_run_is_shown_whatever_its_commits_contain(tmp_path: Path, infos: list[dict[str, Any]]) -> None:
    committed(tmp_path, infos)
    where = ("--warehouse", str(tmp_path))
    for arguments in (("runs",), ("run", "r"), ("history", "main.orders")):
        assert silt(*arguments, *where)[0] == 0
        assert silt(*arguments, "--json", *where)[0] == 0
    (run,) = json.loads(silt("runs", "--json", *where)[1])["runs"]
    assert (run["run_id"], run["commits"], run["tables"]) == ("r", len(infos), ["silt.main.orders"])


@each_table
@given(counts=st.lists(st.none() | COUNTS, min_size=1, max_size=4))
def test_the_rows_of_a_run_are_the_sum_of_its_commits_metrics(tmp_path: Path, counts: list[int | None]) -> None:
    metrics = [{} if number is None else {"numOutputRows": str(number)} for number in counts]
    committed(tmp_path, [{"operationMetrics": each, "dbt": {"runId": "r"}} for each in metrics])
    (run,) = json.loads(silt("runs", "--json", "--warehouse", str(tmp_path))[1])["runs"]
    known = [number for number in counts if number is not None]
    assert run["rows_inserted"] == (sum(known) if known else None)


def committed(folder: Path, infos: Sequence[Mapping[str, Any]]) -> None:
    """Creates a warehouse with one table, whose commits have these `commitInfo`s."""
    shutil.rmtree(folder)
    folder.mkdir()
    log = House(folder).create()
    first = Path(log.store.root) / commit_path(0)
    others = [line for line in first.read_text().splitlines() if "commitInfo" not in line]
    for version, info in enumerate(infos):
        lines = [json.dumps({"commitInfo": info}), *(others if version == 0 else ())]
        (Path(log.store.root) / commit_path(version)).write_text("".join(f"{line}\n" for line in lines))
