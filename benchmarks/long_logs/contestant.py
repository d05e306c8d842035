"""Runs one contestant on one table, in its own process; prints times, peak memory and answers as JSON.

Usage: `python -m benchmarks.long_logs.contestant NAME FOLDER KEY`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.files.statistics import from_footers
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.skipping import prune
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

NEW_ROWS = pa.table(
    {
        "id": pa.array([-1], pa.int64()),
        "customer": ["nobody"],
        "at": pa.array([1_700_000_000_000_000], pa.timestamp("us", tz="UTC")),
    }
)


class Contestant(Protocol):
    """The timed steps, each of which continues from the previous step."""

    def open(self) -> int:
        """Opens the table; returns its number of files."""

    def prune(self, key: int) -> list[str]:
        """Returns the files that may have the key."""

    def append(self) -> int:
        """Appends a row; returns its version."""

    def refresh(self) -> int:
        """Reads the table after another writer's commit; returns the version."""


class Silt:
    """The kernel of this project."""

    def __init__(self, folder: Path) -> None:
        self._log = DeltaLog(LocalStore(str(folder)), "table")

    def open(self) -> int:
        return self._log.snapshot().num_files

    def prune(self, key: int) -> list[str]:
        paths: list[str] = prune(self._log.snapshot(), Comparison("=", Column(("id",)), key))["path"].to_pylist()
        return paths

    def append(self) -> int:
        base, store, path = self._log.snapshot(), self._log.store, f"{uuid.uuid4()}.parquet"
        pq.write_table(NEW_ROWS, f"{store.root}/{path}")
        found = from_footers(store, [path], base.schema, base.properties)[path]
        status = store.status(path)
        assert status is not None
        add = AddFile(path, {}, status.size, status.modified_ms, stats=found.json)
        changes = Changes(Operation("WRITE", {"mode": "Append"}), adds=(add,))
        return commit(self._log, base, changes, ReadSet(), CommitSettings()).version

    def refresh(self) -> int:
        return self._log.snapshot().version


class DeltaRs:
    """The deltalake package."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def open(self) -> int:
        self._table = deltalake.DeltaTable(self._folder)
        return int(self._files().num_rows)

    def prune(self, key: int) -> list[str]:
        # Its dataset creates an object per file, which takes minutes for a million files.
        may_hold = (pc.field("min.id") <= key) & (pc.field("max.id") >= key)
        paths: list[str] = self._files().filter(may_hold)["path"].to_pylist()
        return paths

    def append(self) -> int:
        deltalake.write_deltalake(self._table, NEW_ROWS, mode="append")
        return self._table.version()

    def refresh(self) -> int:
        self._table.update_incremental()
        return self._table.version()

    def _files(self) -> pa.Table:
        return pa.table(self._table.get_add_actions(flatten=True))


CONTESTANTS: dict[str, Callable[[Path], Contestant]] = {"dbt-silt": Silt, "deltalake": DeltaRs}


def run(name: str, folder: Path, key: int) -> dict[str, Any]:
    """Runs all steps; returns the seconds, processor seconds and answer of each, and the process' peak memory after it,
    in MiB.
    """
    contestant = CONTESTANTS[name](folder)
    steps: dict[str, Callable[[], Any]] = {
        "open": contestant.open,
        "prune": lambda: contestant.prune(key),
        "append": contestant.append,
        "refresh": contestant.refresh,
    }
    seconds, processor, answers = {}, {}, {}
    for step, work in steps.items():
        if step == "refresh":
            _commit_of_somebody(folder)
        started, used = time.perf_counter(), time.process_time()
        answers[step] = work()
        seconds[step], processor[step] = time.perf_counter() - started, time.process_time() - used
    return {"seconds": seconds, "processor": processor, "answers": answers, "peak_mib": _peak_mib()}


def _commit_of_somebody(folder: Path) -> None:
    newest = max((folder / "_delta_log").glob("*.json"))
    body = {"commitInfo": {"timestamp": 0, "operation": "WRITE", "isBlindAppend": True}}
    (newest.parent / f"{int(newest.stem) + 1:020}.json").write_text(json.dumps(body) + "\n", encoding="utf-8")


def _peak_mib() -> float:
    """Returns the peak of this process only; `getrusage` would include the peak of its parent process."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
