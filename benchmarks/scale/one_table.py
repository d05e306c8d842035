"""Measures steps on one large table, in a separate process so that its peak memory is that of the step.

Usage: `python -m benchmarks.scale.one_table CASE FOLDER`.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.long_logs.contestant import _peak_mib as peak_mib
from benchmarks.scale.meter import Meter, metered
from benchmarks.scale.tables import commit_of_others, many_commits, new_file
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.skipping import prune
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

OTHERS = (1, 10, 100)
KEY = 333_007


@dataclass(frozen=True)
class Step:
    """A line of the report.

    Attributes:
        requests: by kind.
        depth: the number of sequential requests.
        busy: seconds of this machine.
        peak_mib: of the process so far.
    """

    name: str
    requests: dict[str, int]
    depth: int
    sent: int
    received: int
    busy: float
    peak_mib: float


class Steps:
    """Measures successive steps."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.found: list[Step] = []

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        self._meter.reset()
        began = time.perf_counter()
        result = work()
        busy, cost = time.perf_counter() - began, self._meter.cost()
        self.found.append(Step(name, dict(cost.kinds), cost.depth, cost.sent, cost.received, busy, peak_mib()))
        return result


def files(store: ObjectStore, steps: Steps) -> None:
    """A table of many files."""
    steps.run("the process, before", lambda: None)
    log = DeltaLog(store, "t")
    snapshot = steps.run("open", log.snapshot)
    condition = Comparison("=", Column(("id",)), KEY)
    pruned = steps.run("prune to one file", lambda: prune(snapshot, condition))
    assert pruned.num_rows == 1
    _changes(store, log, steps)
    newest = log.snapshot()
    steps.run("write a checkpoint", lambda: log.checkpoint(newest))


def commits(store: ObjectStore, steps: Steps) -> None:
    """A table with a long log."""
    log = DeltaLog(store, "t")
    newest = steps.run("open", log.snapshot).version
    _changes(store, log, steps)
    while log.snapshot().version % 10 != 9:
        _append(log)
    assert log.snapshot().version > newest
    steps.run("append with checkpoint and clean-up", lambda: _append(log))


def _changes(store: ObjectStore, log: DeltaLog, steps: Steps) -> None:
    steps.run("refresh, nothing new", log.snapshot)
    for count in OTHERS:
        commit_of_others(store, log.snapshot().version + 1, count)
        steps.run(f"refresh, {count} new", log.snapshot)
    while log.snapshot().version % 10 == 9:
        _append(log)
    steps.run("append", lambda: _append(log))
    for count in OTHERS:
        base = log.snapshot()
        commit_of_others(store, base.version + 1, count)
        while (base.version + count + 1) % 10 == 0:
            commit_of_others(store, base.version + count + 1, 1)
            count += 1
        steps.run(f"append after {count} other commits", functools.partial(_commit, log, base))


def _append(log: DeltaLog) -> None:
    _commit(log, log.snapshot())


def _commit(log: DeltaLog, base: Any) -> None:
    version = base.version + 1
    txn = SetTransaction(f"silt/shop/model.shop.orders/{version:032x}/main", 1)
    changes = Changes(Operation("WRITE"), (new_file(20_000_000 + version),), transactions=(txn,))
    commit(log, base, changes, ReadSet(), CommitSettings())


def measure(case: str, folder: Path) -> Iterator[Step]:
    """Measures the steps of a case: `files` in the folder, and `commits`, `units` and `sidecars` in memory."""
    store = ObjectStore(f"file://{folder}").never_reused() if case == "files" else _in_memory(case)
    with metered() as meter:
        steps = Steps(meter)
        (files if case == "files" else commits)(store, steps)
    yield from steps.found


def _in_memory(case: str) -> ObjectStore:
    count = 100_001
    return many_commits(count, count if case == "units" else 0, 200_000 if case == "sidecars" else 0)


if __name__ == "__main__":
    print(json.dumps([asdict(step) for step in measure(sys.argv[1], Path(sys.argv[2]))]))
