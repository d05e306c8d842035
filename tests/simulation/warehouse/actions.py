"""The operations of simulated processes on the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    CommitAttemptsExhaustedError,
    CommitStateUnknownError,
    ConcurrentModificationError,
    MissingLogVersionError,
    SiltError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from tests.simulation.rows_table import RowsTable
from tests.simulation.warehouse import rare_states, statements
from tests.simulation.warehouse.oracle import ATTEMPT, COMMITTED, CRASHED, FAILED, UNKNOWN, Attempt, Violation
from tests.simulation.warehouse.outcomes import ACCOUNTS, LEDGER, NAMES, QUEUE
from tests.simulation.warehouse.process import Crash, Process
from tests.simulation.warehouse.reads import Reads
from tests.simulation.warehouse.statements import FEATURES, Statement
from tests.simulation.warehouse.world import World

_KEYS = 9
_RERUNS = 4


class Actions(Reads):
    """The operations on the tables, each of which is recorded.

    Attributes:
        levels: the isolation level of each table.
        features: the table features that each table has from the beginning, by their properties.
        has_upkeep: whether upkeep runs beside the statements.
    """

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, keeps_log_shortly=seed % 2 == 0)
        levels = (IsolationLevel.SERIALIZABLE, *IsolationLevel)
        self.levels = {name: world.random.choice(levels) for name in NAMES}
        self.features = {name: self._drawn_features() for name in NAMES}
        self._checkpoint_interval = seed // 2 % 3 + 2 if self.keeps_log_shortly else seed % 5 + 3
        self._keys = 1000
        self._drops = 0
        self.has_upkeep = seed % 5 == 4
        self._kinds = frozenset(statements.KINDS)
        self._targets: tuple[RelationName, ...] = NAMES
        self.weights: Mapping[Action, float] = ACTIONS

    def new_key(self) -> int:
        self._keys += 1
        return self._keys

    def draw_theme(self) -> None:
        """Limits some rounds to similar statements on one table, so that processes conflict."""
        chance = self.world.random
        self._kinds, self._targets = frozenset(statements.KINDS), (ACCOUNTS, ACCOUNTS, LEDGER, QUEUE)
        self.weights = ACTIONS
        if chance.random() < 0.15:
            self._targets, self.weights = (QUEUE,), _DROPS
        elif chance.random() < 0.7:
            self._kinds = frozenset(chance.sample(sorted(statements.KINDS), chance.choice((2, 3))))
            self._targets = (chance.choice(NAMES),)
        if self.has_upkeep:
            self._kinds = frozenset({"append", "transfer", "update"} | statements.UPKEEP.keys())
            self._targets, self.weights = (chance.choice((ACCOUNTS, LEDGER)),), _UPKEEP

    def only_append(self, name: RelationName) -> None:
        """Limits a round to appends to one table."""
        self._kinds, self._targets, self.weights = _APPENDS, (name,), _CHANGES

    def change(self, process: Process) -> None:
        """Runs a statement on one of the tables, and again after conflicts."""
        name = process.random.choice(self._targets)
        if name is QUEUE and self.makes_queue(process):
            return
        statement = statements.by_chance(process.random, self.new_key, _KEYS, self._kinds)
        own_level = process.random.choice((None, None, None, *IsolationLevel))
        settings = CommitSettings(own_level, max_attempts=process.random.choice((1, 3, 20)))
        while not self._ends(process, name, statement, settings):
            pass

    def _ends(self, process: Process, name: RelationName, statement: Statement, settings: CommitSettings) -> bool:
        """Runs the statement a few times and returns whether it is finished; the process may restart in between."""
        is_unit = statement.txn is not None and name is not QUEUE
        for run in range(_RERUNS):
            try:
                outcome = self.attempt(process, name, statement, settings)
            except Crash:
                if not is_unit:
                    raise
                process.start()
                return False
            if outcome in (COMMITTED, None):
                return True
            self.world.states[rare_states.CONFLICTS_IN_A_ROW] += run == 2 and outcome == FAILED
            if outcome == UNKNOWN or is_unit:
                return not is_unit
        return True

    def attempt(
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
        except CommitStateUnknownError as error:
            attempt.outcome = UNKNOWN
            self.judge(process, (name,), error, strikes)
        except (ConcurrentModificationError, CommitAttemptsExhaustedError) as error:
            attempt.outcome = FAILED
            self.judge(process, (name,), error, strikes)
            check_upkeep_gave_way(statement, error, self.world.now_ms)
            if state := rare_states.of_failure(error):
                self.world.states[state] += 1
        except (SiltError, ObjectMissing) as error:
            attempt.outcome = FAILED
            self.judge(process, (name,), error, strikes)
        else:
            attempt.outcome = None if committed is None else COMMITTED
            attempt.version = None if committed is None else committed.version
            self.world.states[rare_states.ATTEMPTS_IN_A_ROW] += committed is not None and committed.attempts > 2
        self.counts[f"{statement.name}: {attempt.outcome or 'nothing to do'}"] += 1
        self.world.note(f"{process.name}: {statement.name} on {name} (attempt {number}): {attempt.outcome}")
        return attempt.outcome

    def checkpoint(self, process: Process) -> None:
        name, drops = process.random.choice(self._targets), self._drops
        self.maintain(process, name, lambda log: log.checkpoint(log.snapshot()))
        self.world.states[rare_states.CHECKPOINT_AT_DROP] += name is QUEUE and self._drops > drops

    def vacuum(self, process: Process) -> None:
        """Deletes the data files that no version within the retention needs."""
        self.maintain(process, process.random.choice((ACCOUNTS, LEDGER)), remove_garbage)

    def maintain(self, process: Process, name: RelationName, work: Callable[[DeltaLog], object]) -> None:
        strikes = process.strikes
        try:
            work(process.catalog.table(name))
        except (MissingLogVersionError, VersionNotFoundError) as error:
            # A clean-up was faster; maintenance may be retried.
            self.world.note(f"{process.name}: {error!r}")
        except (SiltError, ObjectMissing) as error:
            self.judge(process, (name,), error, strikes)

    def drop(self, process: Process) -> None:
        """Drops the queue and re-creates it."""
        strikes = process.strikes
        try:
            process.catalog.drop_table(QUEUE)
            self._drops += 1
        except (SiltError, ObjectMissing) as error:
            self.judge(process, (QUEUE,), error, strikes)
        self.makes_queue(process)

    def makes_queue(self, process: Process) -> bool:
        """Creates the queue if it does not exist; returns whether it tried to."""
        strikes = process.strikes
        try:
            if process.catalog.find(QUEUE) is not None:
                return False
            self.create(process, QUEUE)
        except (SiltError, ObjectMissing) as error:
            self.judge(process, (QUEUE,), error, strikes)
        return True

    def create(self, process: Process, name: RelationName) -> None:
        def run(table: RowsTable) -> Any:
            length = 1 if self.has_upkeep else 3
            files = [dict.fromkeys(range(first, first + length), 100) for first in range(0, _KEYS, length)]
            return table.create(*files, configuration=self._configuration(name))

        strikes, attempt = (
            process.strikes,
            Attempt(len(self.attempts), Statement("create", run, dict), self.levels[name]),
        )
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
        except CommitStateUnknownError as error:
            attempt.outcome = UNKNOWN
            self.judge(process, (name,), error, strikes)

    def _configuration(self, name: RelationName) -> dict[str, str]:
        retention = {"delta.logRetentionDuration": "interval 2 days"} if self.keeps_log_shortly else {}
        return {
            "delta.isolationLevel": self.levels[name].value,
            "delta.checkpointInterval": str(self._checkpoint_interval),
            **self.features[name],
            **retention,
        }

    def _drawn_features(self) -> dict[str, str]:
        """Draws the table features of a table; most tables have no feature."""
        chance = self.world.chance
        most = chance.choice((0, len(FEATURES)))
        return dict(chance.sample(sorted(FEATURES.items()), chance.randint(0, most)))


Action = Callable[[Actions, Process], None]
ACTIONS: dict[Action, float] = {
    Actions.change: 10,
    Actions.read: 2,
    Actions.read_together: 2,
    Actions.read_old: 1,
    Actions.checkpoint: 0.7,
    Actions.vacuum: 1,
    Actions.drop: 1,
}
_DROPS: dict[Action, float] = {
    Actions.change: 3,
    Actions.read: 1,
    Actions.checkpoint: 3,
    Actions.drop: 2,
}
"""The actions of a round in which the queue is dropped often."""
_CHANGES: dict[Action, float] = {Actions.change: 1}
_UPKEEP: dict[Action, float] = {Actions.change: 10, Actions.read: 1, Actions.checkpoint: 0.5, Actions.vacuum: 1}
_APPENDS = frozenset({"append", "append once"})


_TAKEN_BACK_MS = 86_400_000
"""A bin that is older may keep the rows: VACUUM may soon delete the files that it has replaced."""


def check_upkeep_gave_way(statement: Statement, error: SiltError, now_ms: int) -> None:
    """Checks that no statement that changes rows has lost to upkeep of the last day.

    Raises:
        Violation: if it has.
    """
    winner = error.details.get("commit_info", {})
    is_upkeep = winner.get("operationParameters", {}).get("auto") in (True, "true")
    is_recent = now_ms - winner.get("timestamp", now_ms) < _TAKEN_BACK_MS
    if is_upkeep and is_recent and not statement.moves_rows:
        raise Violation(f"{statement.name} lost to upkeep: {error}")


def remove_garbage(log: DeltaLog) -> None:
    """Deletes the files that VACUUM deletes."""
    snapshot = log.snapshot()
    cutoff = log.clock.now_ms() - snapshot.properties.deleted_file_retention_ms
    garbage = vacuum.untracked(log.store, snapshot, vacuum.needed(log, snapshot, cutoff), cutoff)
    for file in garbage.files:
        log.store.delete(file.path)
