"""Every fault at every step of writing and reading a log, on each kind of store.

A scenario runs once without faults to record its steps, which are its operations on the store. Then it runs
again with a fault at one step only, or at that step and all later steps.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    ConcurrentTransactionError,
    SiltError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add

WRITE = Operation("WRITE")
BASE_VERSION = 5
INTERVAL = 3
PROPERTIES = {
    "delta.checkpointInterval": str(INTERVAL),
    "delta.logRetentionDuration": "interval 1 day",
    "delta.setTransactionRetentionDuration": "interval 3650 days",
}
# Files in the other stores have the present time.
NOW_MS = time.time_ns() // 1_000_000
# At this time, everything written before the scenario has expired.
LATER_MS = NOW_MS + 10 * 86_400_000
MINE = SetTransaction("app", 1)


@dataclass
class World:
    """A table on a store with faults, and access to the store without faults."""

    store: FaultyStore
    clock: FixedClock

    def log(self) -> DeltaLog:
        """Returns a handle that has read nothing yet, on the store with faults."""
        return DeltaLog(self.store, "t", self.clock)

    def truth(self) -> DeltaLog:
        return DeltaLog(self.store.inner, "t", self.clock)


Scenario = Callable[[World], None]


def prepare(world: World) -> None:
    """Creates a table whose version n adds the file fn, with a checkpoint due at the next version."""
    store = world.store
    for path, data in history().items():
        store.inner.make_folder(path.rpartition("/")[0])
        store.inner.put(path, data)


@cache
def history() -> Mapping[str, bytes]:
    store = MemoryStore(FixedClock())
    store.make_folder(LOG_FOLDER)
    log = DeltaLog(store, "t", FixedClock())
    metadata = replace(METADATA, configuration=PROPERTIES)
    commit(log, None, Changes(Operation("CREATE TABLE"), (), (), metadata, PROTOCOL), ReadSet(), CommitSettings())
    for version in range(1, BASE_VERSION + 1):
        append(log, f"f{version}")
    files = store.list_from(LOG_FOLDER)
    return {file.path: store.read(file.path) for file in files if not file.name.endswith(".crc")}


def append(log: DeltaLog, path: str, *transactions: SetTransaction, base: Snapshot | None = None) -> int:
    log.store.put(path, b"data")
    changes = Changes(WRITE, (add(path),), transactions=transactions)
    return commit(log, base or log.snapshot(), changes, ReadSet(), CommitSettings()).version


def files_of(snapshot: Snapshot) -> set[str]:
    return set(snapshot.files["path"].to_pylist())


def expected(version: int) -> set[str]:
    return {f"f{number}" for number in range(1, version + 1)}


# The scenarios run while the store fails, until the end or an error, and check results; `settle` checks the table.


def commits(world: World) -> None:
    """Commits a version after which a checksum and a checkpoint are due, and with a later clock a clean-up."""
    log = world.log()
    write(world, log, log.snapshot(), BASE_VERSION + 1)


def commits_after_another(world: World) -> None:
    """Commits after another writer has committed."""
    log = world.log()
    base = log.snapshot()
    append(world.truth(), f"f{BASE_VERSION + 1}")
    write(world, log, base, BASE_VERSION + 2)


def write(world: World, log: DeltaLog, base: Snapshot, version: int) -> None:
    try:
        assert append(log, f"f{version}", MINE, base=base) == version
    except CommitStateUnknownError:
        raise
    except SiltError:
        # The caller deletes its data files after this error.
        assert world.truth().snapshot().transaction_version(MINE.app_id) is None
        raise
    snapshot = world.truth().snapshot_at(version)
    assert files_of(snapshot) == expected(version)
    assert snapshot.transaction_version(MINE.app_id) == MINE.version


def reads_anew(world: World) -> None:
    """Opens the table, its history and an old version, just after another commit."""
    append(world.log(), f"f{BASE_VERSION + 1}")
    log = world.log()
    look(log.snapshot, least=BASE_VERSION + 1)
    look(lambda: log.snapshot_at(BASE_VERSION - 1))
    found = [commit.version for commit in log.commits()]
    assert found == list(range(found[0], found[-1] + 1)) and found[-1] >= BASE_VERSION


def refreshes(world: World) -> None:
    """Reads the table after each commit of another writer."""
    log = world.log()
    seen = look(log.snapshot, least=0)
    for version in range(BASE_VERSION + 1, BASE_VERSION + 3):
        append(DeltaLog(world.store, "t", world.clock), f"f{version}")
        seen = max(seen, look(log.snapshot, least=seen))


def look(read: Callable[[], Snapshot], least: int = 0) -> int:
    """Checks the files of the version that was read and returns the version, or -1 after an error."""
    try:
        snapshot = read()
    except SiltError as error:
        assert not isinstance(error, VersionNotFoundError), "a version that is there is said not to be"
        return -1
    assert files_of(snapshot) == expected(snapshot.version)
    assert snapshot.version >= least, "a version that was there is not seen"
    return snapshot.version


SCENARIOS: Mapping[str, Scenario] = {
    "commit": commits,
    "commit and clean-up": commits,
    "commit after another": commits_after_another,
    "open": reads_anew,
    "refresh": refreshes,
}


def settle(world: World) -> None:
    """Checks without faults that the log is complete, contains each commit once, and accepts a rerun of the work."""
    world.store.faults.clear()
    log = world.truth()
    snapshot = log.snapshot()
    assert files_of(snapshot) == expected(snapshot.version)
    earliest = list_log(world.store.inner, "t").earliest
    assert earliest == 0 or world.clock.at_ms >= LATER_MS
    for version in {earliest or 0, max(earliest or 0, BASE_VERSION), snapshot.version}:
        assert files_of(log.snapshot_at(version)) == expected(version)
    if snapshot.transaction_version(MINE.app_id) is None:
        append(log, f"f{snapshot.version + 1}", MINE)
    else:
        with pytest.raises(ConcurrentTransactionError):
            append(log, f"f{snapshot.version + 1}", MINE)
    names = Counter(path for each in log.commits() for path in added(each))
    assert set(names.values()) <= {1}
    check_checkpoints(world)


def added(each: Any) -> Iterator[str]:
    return (action.path for action in each.actions if type(action).__name__ == "AddFile")


def check_checkpoints(world: World) -> None:
    """Checks that each version can be read from its checkpoint alone."""
    store, names = world.store.inner, [file.name for file in world.store.inner.list_from(LOG_FOLDER)]
    for version in (int(name[:20]) for name in names if name.endswith(".checkpoint.parquet")):
        alone = MemoryStore()
        alone.make_folder(LOG_FOLDER)
        for name in (f"{version:020d}.json", f"{version:020d}.checkpoint.parquet"):
            alone.put(f"{LOG_FOLDER}/{name}", store.read(f"{LOG_FOLDER}/{name}"))
        assert files_of(DeltaLog(alone, "t").snapshot()) == expected(version)


# Faults and steps.


@dataclass(frozen=True)
class Step:
    """An operation on a path, and its occurrence, counted from 0."""

    operation: str
    path: str
    occurrence: int


class Watched(FaultyStore):
    """Records the steps."""

    def __init__(self, inner: Store, clock: FixedClock) -> None:
        super().__init__(inner, clock=clock)
        self.steps: list[Step] = []
        self.counts: Counter[tuple[str, str]] = Counter()

    def around(self, operation: str, path: str, run: Callable[[], Any]) -> Any:
        self.steps.append(Step(operation, path, self.counts[operation, path]))
        self.counts[operation, path] += 1
        return super().around(operation, path, run)


@cache
def steps(name: str) -> tuple[Step, ...]:
    clock = new_clock(name)
    world = World(Watched(MemoryStore(FixedClock(NOW_MS)), clock), clock)
    prepare(world)
    SCENARIOS[name](world)
    assert isinstance(world.store, Watched)
    return tuple(world.store.steps)


FAULTS: Mapping[str, Fault] = {
    "fail before": Fault("", FaultKind.FAIL_BEFORE),
    "fail after": Fault("", FaultKind.FAIL_AFTER),
    "late": Fault("", FaultKind.LATE),
    "very late": Fault("", FaultKind.LATE, count=3),
    "twice": Fault("", FaultKind.TWICE),
    "torn": Fault("", FaultKind.TORN, share=0.5),
    "torn at the end of a line": Fault("", FaultKind.TORN, share=-1),
    "empty": Fault("", FaultKind.TORN, share=0.0),
    "wrong": Fault("", FaultKind.WRONG),
    "delay": Fault("", FaultKind.DELAY, seconds=3.0),
}
# The number of steps tried for each fault and scenario, chosen by a seed; set the variable to try more, or all.
STEPS = {kind: int(os.environ.get("SILT_FAULT_STEPS", few)) for kind, few in (("memory", 8), ("local", 2), ("s3", 1))}
FEW = {"memory": 3, "local": 1}
"""The number of steps in tests that are not marked long."""


def cases(name: str, fault: Fault) -> list[Fault]:
    return [
        replace(fault, operation=step.operation, path=escaped(step.path), skip=step.occurrence, times=times)
        for step in steps(name)
        if replace(fault, operation=step.operation).holds(step.operation, step.path)
        for times in (1, None)
    ]


def escaped(path: str) -> str:
    """Returns a pattern that matches only the path."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in path)


def new_clock(scenario: str) -> FixedClock:
    return FixedClock(LATER_MS if "clean-up" in scenario else NOW_MS)


def new_world(kind: str, scenario: str, folder: Path, request: pytest.FixtureRequest) -> World:
    clock = new_clock(scenario)
    stores: Mapping[str, Callable[[], Store]] = {
        "memory": lambda: MemoryStore(FixedClock(NOW_MS)),
        "local": lambda: LocalStore(folder),
        "s3": lambda: request.getfixturevalue("s3").store(),
    }
    world = World(FaultyStore(stores[kind](), clock=clock), clock)
    prepare(world)
    return world


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    ("kind", "count"), [*FEW.items(), *(pytest.param(*each, marks=pytest.mark.long) for each in STEPS.items())]
)
def test_no_fault_at_any_step_damages_the_table(
    kind: str, count: int, scenario: str, fault: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    every = cases(scenario, FAULTS[fault])
    tried = random.Random(f"{kind} {scenario} {fault}").sample(every, min(len(every), count))
    for number, case in enumerate(tried):
        world = new_world(kind, scenario, tmp_path / str(number), request)
        world.store.faults.append(replace(case))
        try:
            with contextlib.suppress(SiltError):
                SCENARIOS[scenario](world)
            settle(world)
        except Exception as error:
            raise AssertionError(f"{scenario} on {kind} with {case}") from error
