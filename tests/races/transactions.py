"""Steps transactions through named phases, in an order that a test states line by line.

left = race.writer(lambda table: table.append({3: 30}))
right = race.writer(lambda table: table.append({4: 40}))
race.run(left.until(PINNED), right.until(SETTLED), left.until(SETTLED))
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings
from tests.faulty_store import Fault, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler
from tests.simulation.rows_table import Rows, RowsTable

T = TypeVar("T")


class Phase(enum.Enum):
    """How far a transaction has come."""

    PINNED = "has read the snapshot that it is based on"
    FILES_WRITTEN = "has written its data files, and is about to commit"
    VALIDATED = "has checked its changes, and is about to write the version"
    ATTEMPTED = "the storage has carried out or refused the write; the answer has not arrived"
    SETTLED = "has ended"


PINNED, FILES_WRITTEN, VALIDATED, ATTEMPTED, SETTLED = Phase
Step = Callable[[], None] | tuple["Transaction", Phase]
Statement = Callable[["Table"], object]
LOW: Final[Rows] = {1: 10, 2: 20}
HIGH: Final[Rows] = {101: 30, 102: 40}


class Killed(BaseException):
    """The process is gone. No code of the engine may catch it."""


class Table(RowsTable):
    """The statements of a transaction, which stops at each phase."""

    transaction: Transaction

    def snapshot(self) -> Snapshot:
        base = super().snapshot()
        self.transaction.reach(PINNED)
        return base

    def commit(self, changes: Changes, reads: ReadSet, base: Snapshot | None = None) -> CommitResult:
        """Commits prepared changes."""
        return self.commit_on(base or self.snapshot(), changes, reads)

    def has_written(self) -> None:
        self.transaction.reach(FILES_WRITTEN)


class PhasedStore(FaultyStore):
    """The storage of a transaction, which stops before and after each write of a version."""

    transaction: Transaction

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        if operation != "put_if_absent" or not path.endswith(".json"):
            return super().around(operation, path, run)
        self.transaction.reach(VALIDATED)
        try:
            return super().around(operation, path, run)
        finally:
            self.transaction.reach(ATTEMPTED)


class Transaction:
    """A statement of a process.

    Attributes:
        result: of the statement, if it has ended without an error.
        error: that it has ended with, if any.
        clock: of the process.
        store: the storage as the process sees it.
    """

    store: PhasedStore

    def __init__(self, scheduler: Scheduler, statement: Callable[[], object], clock: FixedClock) -> None:
        self.clock = clock
        self.result: object = None
        self.error: BaseException | None = None
        self.phases: list[Phase] = []
        self.is_killed = False
        self._scheduler, self._statement = scheduler, statement

    @property
    def version(self) -> int | None:
        """The version that was committed."""
        return self.result.version if isinstance(self.result, CommitResult) else None

    @property
    def has_ended(self) -> bool:
        return SETTLED in self.phases

    def until(self, phase: Phase) -> Step:
        """The step that lets the transaction continue until it next reaches a phase."""
        return self, phase

    def kill(self) -> None:
        """Lets the process end where it is."""
        self.is_killed = True

    def reach(self, phase: Phase) -> None:
        self.phases.append(phase)
        self._scheduler.turn()
        if self.is_killed:
            raise Killed

    def run(self) -> None:
        self._scheduler.turn()
        try:
            self.result = self._statement()
        except (SiltError, ObjectMissing, Killed) as error:
            self.error = error
        finally:
            self.phases.append(SETTLED)


class Race:
    """A table of two files, and the transactions on it.

    Args:
        files: the rows of each file.
        configuration: the properties of the table.
        store: creates the storage of the table.
    """

    def __init__(
        self,
        *files: Rows,
        configuration: Mapping[str, str] | None = None,
        store: Callable[[Clock], Store] = MemoryStore,
    ) -> None:
        self.clock = FixedClock()
        self.store: Store = store(self.clock)
        self.transactions: list[Transaction] = []
        self._scheduler = Scheduler()
        self.store.make_folder(LOG_FOLDER)
        RowsTable(self.log()).create(*(files or (LOW, HIGH)), configuration=configuration)

    def log(self) -> DeltaLog:
        """A handle that remembers nothing."""
        return DeltaLog(self.store, "bank.accounts", self.clock)

    def table(self) -> RowsTable:
        """The table, for a statement that runs at once."""
        return RowsTable(self.log())

    def rows(self) -> dict[int, int]:
        return self.table().rows()

    def operations(self) -> list[str | None]:
        """The operations of the commits, oldest first."""
        return [commit.info.operation for commit in self.log().commits()]

    def writer(
        self,
        statement: Statement,
        level: IsolationLevel | None = None,
        faults: Sequence[Fault] = (),
        clock: FixedClock | None = None,
    ) -> Transaction:
        """A process with its own handle of the table, which runs a statement."""
        number = len(self.transactions) + 1
        clock = clock or FixedClock(seed=number)
        store = PhasedStore(self.store, faults, number)
        table = Table(DeltaLog(store, "bank.accounts", clock), CommitSettings(level))
        transaction = Transaction(self._scheduler, lambda: statement(table), clock)
        store.transaction = table.transaction = transaction
        transaction.store = store
        self.transactions.append(transaction)
        return transaction

    def run(self, *steps: Step) -> None:
        """Runs the steps in their order: a transaction up to a phase, or a function at once.

        Raises:
            AssertionError: if a transaction ends before its phase, or has not ended after the last step.
        """
        script = _Script(self.transactions, steps)
        tasks = [*(each.run for each in self.transactions), lambda: script.referee(self._scheduler)]
        for error in self._scheduler.run(tasks, script.choose):
            if isinstance(error, BaseException):
                raise error
        assert script.problem is None, script.problem


class _Script:
    """Chooses whose turn it is. The referee, who runs the functions, is the last of the tasks.

    Attributes:
        problem: why the steps could not be run; then all transactions run to their end in any order.
    """

    def __init__(self, transactions: Sequence[Transaction], steps: Iterable[Step]) -> None:
        self.problem: str | None = None
        self._transactions = transactions
        self._steps = list(steps)
        self._seen = 0

    def choose(self, options: int) -> int:
        alive = [each for each in self._transactions if not each.has_ended]
        step = self._current()
        return alive.index(step[0]) if isinstance(step, tuple) else options - 1

    def referee(self, scheduler: Scheduler) -> None:
        scheduler.turn()
        while (step := self._current()) is not None:
            if not isinstance(step, tuple):
                step()
                self._next()
            scheduler.turn()
        left = [each.phases for each in self._transactions if not each.has_ended]
        if left and self.problem is None:
            self.problem = f"the steps end before the transactions, which have reached {left}"

    def _current(self) -> Step | None:
        """The first step that has not ended."""
        while self._steps and isinstance(step := self._steps[0], tuple):
            transaction, phase = step
            if phase in transaction.phases[self._seen :]:
                self._next()
            elif transaction.has_ended:
                self.problem = f"it ended before the phase {phase.name}: {transaction.error!r}"
                self._steps.clear()
            else:
                return step
        return self._steps[0] if self._steps else None

    def _next(self) -> None:
        self._steps.pop(0)
        step = self._steps[0] if self._steps else None
        self._seen = len(step[0].phases) if isinstance(step, tuple) else 0
