"""Simulates one history of a warehouse from a seed: runs processes, and checks all of their operations.

python -m tests.simulation.simulation --seeds 2000
python -m tests.simulation.simulation --seed 17      one seed, with its schedule
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.folders import locks
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    CommitAttemptsExhaustedError,
    CommitStateUnknownError,
    ConcurrentModificationError,
    DataFileMissingError,
    MissingLogVersionError,
    NotATableError,
    RelationExistsError,
    RelationNotFoundError,
    SiltError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.scan import consistent_cut
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.property_values import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from tests.simulation import statements
from tests.simulation.oracle import (
    ATTEMPT,
    COMMITTED,
    CRASHED,
    FAILED,
    UNKNOWN,
    Attempt,
    Look,
    Seen,
    Version,
    Violation,
    check,
    check_retained,
)
from tests.simulation.rows_table import RowsTable, RowTwice
from tests.simulation.statements import Statement
from tests.simulation.world import DATABASE, FAIR, FOUL, ROUGH, SCHEMA, Crash, Process, World

ACCOUNTS, LEDGER, QUEUE = (RelationName(DATABASE, SCHEMA, name) for name in ("accounts", "ledger", "queue"))
"""Only the queue is dropped and re-created."""

KEYS = 9
PROCESSES = 4
ROUNDS = 2
RERUNS = 4
_DAY_MS = 24 * 60 * 60 * 1000
_BETWEEN_ROUNDS_MS = 40 * _DAY_MS
_GONE = (RelationNotFoundError, RelationExistsError, NotATableError, DataFileMissingError, ObjectMissing)


@dataclass(frozen=True)
class History:
    """The result of a seed."""

    seed: int
    schedule: tuple[str, ...]
    logs: list[list[Version]]
    counts: Counter[str]


class Simulation:
    """The processes of one seed, and the record of their operations."""

    def __init__(self, seed: int, has_folders: bool = True) -> None:
        self.seed = seed
        self.world = World(seed, (FAIR, ROUGH, FOUL)[seed % 3], has_folders)
        self.attempts: list[Attempt] = []
        self.looks: list[Look] = []
        self.counts: Counter[str] = Counter()
        levels = (IsolationLevel.SERIALIZABLE, *IsolationLevel)
        self.levels = {name: self.world.random.choice(levels) for name in NAMES}
        self._keys = 1000
        self._violation: Violation | None = None

    def run(self) -> History:
        """Runs all operations of the seed, and checks the invariants.

        Raises:
            Violation: if a check fails; the message has the schedule.
        """
        try:
            with _turns_for_locks(self.world):
                self._found()
                processes = [Process(self.world, f"p{number}") for number in range(PROCESSES)]
                for _ in range(ROUNDS):
                    self._run_round(processes)
                    self.world.now_ms += _BETWEEN_ROUNDS_MS
            self._look_back()
            logs = check(self.world, self.attempts, self.looks)
        except (Violation, RowTwice) as violation:
            schedule = "\n".join(self.world.schedule)
            raise Violation(f"{schedule}\n\nseed {self.seed}: {violation}") from violation
        return History(self.seed, tuple(self.world.schedule), logs, self.counts)

    def new_key(self) -> int:
        self._keys += 1
        return self._keys

    def _found(self) -> None:
        founder = Process(self.world, "founder")
        founder.catalog = Catalog({DATABASE: self.world.storage}, founder.clock)
        founder.catalog.create_schema(DATABASE, SCHEMA)
        for name in NAMES:
            self._create(founder, name)

    def _run_round(self, processes: list[Process]) -> None:
        began_ms = self.world.now_ms
        self._draw_theme()

        def life(process: Process) -> Callable[[], None]:
            chance = process.random
            todo = [chance.choices(list(ACTIONS), list(ACTIONS.values()))[0] for _ in range(chance.randrange(2, 6))]
            return lambda: _live(process, [lambda act=act: act(self, process) for act in todo])  # type: ignore[misc]

        for result in self.world.run([life(process) for process in processes]):
            if isinstance(result, Exception):
                raise result if isinstance(result, Violation) else Violation(f"it broke: {result!r}") from result
        check_retained(self.world, tuple(f"{name.schema}/{name.identifier}" for name in (ACCOUNTS, LEDGER)), began_ms)

    def _draw_theme(self) -> None:
        """Limits some rounds to similar statements on one table, so that processes conflict."""
        chance = self.world.random
        self._kinds, self._targets = frozenset(statements.KINDS), (ACCOUNTS, ACCOUNTS, LEDGER, QUEUE)
        if chance.random() < 0.7:
            self._kinds = frozenset(chance.sample(sorted(statements.KINDS), chance.choice((2, 3))))
            self._targets = (chance.choice(NAMES),)

    def change(self, process: Process) -> None:
        """Runs a statement on one of the tables, and again after conflicts."""
        name = process.random.choice(self._targets)
        if name is QUEUE and self._makes_queue(process):
            return
        statement = statements.by_chance(process.random, self.new_key, KEYS, self._kinds)
        own_level = process.random.choice((None, None, None, *IsolationLevel))
        settings = CommitSettings(own_level, max_attempts=process.random.choice((1, 3, 20)))
        while not self._ends(process, name, statement, settings):
            pass

    def _ends(self, process: Process, name: RelationName, statement: Statement, settings: CommitSettings) -> bool:
        """Runs the statement a few times and returns whether it is finished; the process may restart in between."""
        is_unit = statement.txn is not None and name is not QUEUE
        for _ in range(RERUNS):
            try:
                outcome = self._attempt(process, name, statement, settings)
            except Crash:
                if not is_unit:
                    raise
                process.start()
                return False
            if outcome in (COMMITTED, None):
                return True
            if outcome == UNKNOWN or is_unit:
                return not is_unit
        return True

    def _attempt(
        self, process: Process, name: RelationName, statement: Statement, settings: CommitSettings
    ) -> str | None:
        number = len(self.attempts)
        level = settings.isolation_level or self.levels[name]
        attempt = Attempt(number, statement, level)
        self.attempts.append(attempt)
        settings = replace(settings, commit_info={ATTEMPT: number})
        strikes = process.strikes
        try:
            committed = statement.run(RowsTable(process.catalog.table(name), settings))
        except Crash:
            attempt.outcome = CRASHED
            raise
        except CommitStateUnknownError:
            attempt.outcome = UNKNOWN
        except (ConcurrentModificationError, CommitAttemptsExhaustedError):
            attempt.outcome = FAILED
        except (SiltError, ObjectMissing) as error:
            attempt.outcome = FAILED
            self._judge(process, (name,), error, strikes)
            if statement.txn is None:
                attempt.outcome = FAILED
        else:
            attempt.outcome = None if committed is None else COMMITTED
            attempt.version = None if committed is None else committed.version
        self.counts[f"{statement.name}: {attempt.outcome or 'nothing to do'}"] += 1
        self.world.note(f"{process.name}: {statement.name} on {name} (attempt {number}): {attempt.outcome}")
        return attempt.outcome

    def read(self, process: Process) -> None:
        """Reads the newest version of one table."""
        self._look(process, (process.random.choice(NAMES),), _cut)

    def read_together(self, process: Process) -> None:
        """Reads a consistent cut of several tables."""
        self._look(process, process.random.choice(((ACCOUNTS, LEDGER), NAMES)), _cut)

    def read_old(self, process: Process) -> None:
        """Reads an earlier version of a table."""

        name = process.random.choice((ACCOUNTS, LEDGER))
        versions = sum(landing.table == f"{name.schema}/{name.identifier}" for landing in self.world.landings)
        version = process.random.randrange(versions)
        self._look(process, (name,), lambda logs: [logs[0].snapshot_at(version)], version)

    def _look(
        self,
        process: Process,
        names: tuple[RelationName, ...],
        pin: Callable[[list[DeltaLog]], list[Snapshot]],
        version: int | None = None,
    ) -> None:
        began, strikes = self.world.step, process.strikes
        try:
            logs = [process.catalog.table(name) for name in names]
            snapshots = pin(logs)
            ended, undisturbed = self.world.step, process.strikes == strikes
            seen = tuple(_seen(log, snapshot) for log, snapshot in zip(logs, snapshots, strict=True))
        except (SiltError, ObjectMissing) as error:
            is_old = version is not None and self._is_old(names[0], version)
            if not (is_old and isinstance(error, VersionNotFoundError | ObjectMissing)):
                self._judge(process, names, error, strikes)
            return
        self.looks.append(Look(seen, began, ended, version is None and undisturbed))
        self.counts["read"] += 1

    def _is_old(self, name: RelationName, version: int) -> bool:
        """Returns whether the version was replaced so long ago that clean-ups may have removed it."""
        oldest = self.world.now_ms - _BETWEEN_ROUNDS_MS + _DAY_MS
        return any(
            landing.table == f"{name.schema}/{name.identifier}"
            and landing.version == version + 1
            and landing.at_ms < oldest
            for landing in self.world.landings
        )

    def checkpoint(self, process: Process) -> None:
        name = process.random.choice(NAMES)
        self._maintain(process, name, lambda log: log.checkpoint(log.snapshot()))

    def vacuum(self, process: Process) -> None:
        """Deletes the data files that no version within the retention needs."""
        self._maintain(process, process.random.choice((ACCOUNTS, LEDGER)), remove_garbage)

    def _maintain(self, process: Process, name: RelationName, work: Callable[[DeltaLog], object]) -> None:
        strikes = process.strikes
        try:
            work(process.catalog.table(name))
        except (MissingLogVersionError, VersionNotFoundError) as error:
            # A clean-up was faster; maintenance may be retried.
            self.world.note(f"{process.name}: {error!r}")
        except (SiltError, ObjectMissing) as error:
            self._judge(process, (name,), error, strikes)

    def drop(self, process: Process) -> None:
        """Drops the queue and re-creates it."""
        strikes = process.strikes
        try:
            process.catalog.drop_table(QUEUE)
        except (SiltError, ObjectMissing) as error:
            self._judge(process, (QUEUE,), error, strikes)
        self._makes_queue(process)

    def _makes_queue(self, process: Process) -> bool:
        """Creates the queue if it does not exist; returns whether it tried to."""
        strikes = process.strikes
        try:
            if process.catalog.find(QUEUE) is not None:
                return False
            self._create(process, QUEUE)
        except (SiltError, ObjectMissing) as error:
            self._judge(process, (QUEUE,), error, strikes)
        return True

    def _create(self, process: Process, name: RelationName) -> None:
        def run(table: RowsTable) -> Any:
            files = [dict.fromkeys(range(first, first + 3), 100) for first in range(0, KEYS, 3)]
            return table.create(*files, configuration=self._configuration(name))

        attempt = Attempt(len(self.attempts), Statement("create", run, dict), self.levels[name])
        self.attempts.append(attempt)
        log = process.catalog.new_table(name)
        try:
            attempt.outcome = FAILED
            attempt.version = run(RowsTable(log, CommitSettings(commit_info={ATTEMPT: attempt.number}))).version
            attempt.outcome = COMMITTED
            process.catalog.publish_table(name, log)
        except Crash:
            attempt.outcome = CRASHED
            raise
        except CommitStateUnknownError:
            attempt.outcome = UNKNOWN

    def _configuration(self, name: RelationName) -> dict[str, str]:
        return {
            "delta.isolationLevel": self.levels[name].value,
            "delta.checkpointInterval": str(self.seed % 5 + 3),
        }

    def _judge(
        self,
        process: Process,
        names: tuple[RelationName, ...],
        error: Exception,
        strikes: int,
    ) -> None:
        """Accepts an error if a fault occurred, or if the table may have been dropped."""
        self.world.note(f"{process.name}: {error!r}")
        self.counts[type(error).__name__] += 1
        if isinstance(error, ConcurrentModificationError):
            return
        if QUEUE in names and isinstance(error, _GONE):
            return
        if process.strikes > strikes and isinstance(error, SiltError):
            return
        raise Violation(f"an error without a cause: {error!r}") from error

    def _look_back(self) -> None:
        """Reads the final version of each table."""
        catalog = Catalog({DATABASE: self.world.storage})
        for name in NAMES:
            if catalog.find(name) is None:
                continue
            log = catalog.table(name)
            try:
                seen = _seen(log, log.snapshot())
            except (SiltError, ObjectMissing) as error:
                raise Violation(f"{name} cannot be read in the end: {error!r}") from error
            self.looks.append(Look((seen,), self.world.step, self.world.step))


NAMES = (ACCOUNTS, LEDGER, QUEUE)
ACTIONS: dict[Callable[[Simulation, Process], None], float] = {
    Simulation.change: 10,
    Simulation.read: 2,
    Simulation.read_together: 2,
    Simulation.read_old: 1,
    Simulation.checkpoint: 0.7,
    Simulation.vacuum: 1,
    Simulation.drop: 1,
}


def simulate(seed: int, has_folders: bool = True) -> History:
    """Runs one seed, on a storage with folders or on an object store.

    Raises:
        Violation: if an invariant is broken; the message has the schedule.
    """
    # Otherwise, garbage collection would depend on earlier seeds, and a snapshot that is still alive saves reading the
    # log.
    gc.disable()
    logging.disable(logging.WARNING)
    try:
        return Simulation(seed, has_folders).run()
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
        gc.collect(0)


def remove_garbage(log: DeltaLog) -> None:
    """Deletes the files that VACUUM deletes."""
    snapshot = log.snapshot()
    cutoff = log.clock.now_ms() - snapshot.properties.deleted_file_retention_ms
    garbage = vacuum.untracked(log.store, snapshot, vacuum.needed(log, snapshot, cutoff), cutoff)
    for file in garbage.files:
        log.store.delete(file.path)


def _live(process: Process, todo: list[Callable[[], None]]) -> None:
    """Runs actions in order; a crash ends the current action, and the process restarts."""
    for act in todo:
        try:
            act()
        except Crash:
            process.start()


def _cut(logs: list[DeltaLog]) -> list[Snapshot]:
    return list(consistent_cut.consistent_cut(logs).values())


def _seen(log: DeltaLog, snapshot: Snapshot) -> Seen:
    rows = RowsTable(log).rows(snapshot)
    return Seen(snapshot.metadata.id, snapshot.version, rows, frozenset(snapshot.transactions))


@contextlib.contextmanager
def _turns_for_locks(world: World) -> Iterator[None]:
    """Lets other tasks continue while a task waits for a lock of the catalog."""
    with mock.patch.object(locks, "_held_changed", _Turns(world)), mock.patch.object(locks, "_held", set()):
        yield


class _Turns:
    """A condition variable for tasks that take turns."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __enter__(self) -> None:
        """Tasks do not run at the same time."""

    def __exit__(self, *error: object) -> None:
        """There is no lock to release."""

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.world.let_others_go_on()

    def notify_all(self) -> None:
        """Waiting tasks check by themselves."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=2000)
    arguments.add_argument("--seed", type=int)
    chosen = arguments.parse_args()
    if chosen.seed is not None:
        print("\n".join(simulate(chosen.seed).schedule))
        return 0
    began, counts, commits = time.monotonic(), Counter[str](), 0
    for seed in range(chosen.seeds):
        history = simulate(seed)
        counts += history.counts
        commits += sum(map(len, history.logs))
    for what, count in sorted(counts.items()):
        print(f"{count:8} {what}")
    print(f"{commits:8} commits in {chosen.seeds} seeds, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Violation as violation:
        sys.exit(str(violation))
