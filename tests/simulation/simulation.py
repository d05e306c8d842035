"""Simulates one history of a warehouse from a seed: runs processes, and checks all of their operations.

`python -m tests.simulation` runs many seeds.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.folders import locks
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from tests.simulation.rows_table import RowTwice
from tests.simulation.warehouse import rare_states, statements
from tests.simulation.warehouse.actions import Actions
from tests.simulation.warehouse.oracle import COMMITTED, Version, Violation, check, check_retained, landed
from tests.simulation.warehouse.outcomes import ACCOUNTS, LEDGER, NAMES, QUEUE
from tests.simulation.warehouse.process import Crash, Process
from tests.simulation.warehouse.seeded import seeded
from tests.simulation.warehouse.weather import FAIR, FOUL, ROUGH
from tests.simulation.warehouse.world import DATABASE, SCHEMA, Endless, World

PROCESSES = 4
ROUNDS = 2
TURNS_WITHOUT_FAULTS = 6000
"""The turns after the last fault in which all statements must end, and the turns after those for the next writes."""
_BETWEEN_ROUNDS_MS = 40 * 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class History:
    """The result of a seed.

    Attributes:
        states: how often each of the `rare_states` was reached.
        turns: the turns from the last fault until all statements had ended, and from then until each process had
            written a table and each table was written.
    """

    seed: int
    schedule: tuple[str, ...]
    logs: list[list[Version]]
    counts: Counter[str]
    states: Counter[str]
    turns: tuple[int, int]

    def trace(self) -> str:
        """Returns a hash of each operation and of each byte of each commit."""
        found = hashlib.sha256("\n".join(self.schedule).encode())
        for log in self.logs:
            for version in log:
                found.update(version.landing.data)
        return found.hexdigest()


class Simulation:
    """The processes of one seed, and their rounds."""

    def __init__(self, seed: int, has_folders: bool = True) -> None:
        self.seed = seed
        self.world = World(seed, (FAIR, ROUGH, FOUL)[seed % 3], has_folders)
        self.actions = Actions(self.world, seed)

    def run(self) -> History:
        """Runs all operations of the seed, and checks the invariants.

        Raises:
            Violation: if a check fails; the message has the schedule.
        """
        try:
            with _turns_for_locks(self.world):
                self._found()
                processes = [Process(self.world, f"p{number}") for number in range(PROCESSES)]
                for number in range(1, ROUNDS + 1):
                    self._run_round(processes, is_last=number == ROUNDS)
                    self.world.now_ms += _BETWEEN_ROUNDS_MS
                turns = self._write_without_faults(processes)
            self.actions.look_back()
            logs = check(self.world, self.actions.attempts, self.actions.looks)
        except (Violation, RowTwice, Endless) as violation:
            schedule = "\n".join(self.world.schedule)
            raise Violation(f"{schedule}\n\nseed {self.seed}: {violation}") from violation
        states = self.world.states + rare_states.of_attempts(self.actions.attempts, landed(logs))
        states = sum(map(rare_states.of_log, logs), states)
        return History(self.seed, tuple(self.world.schedule), logs, self.actions.counts, states, turns)

    def _found(self) -> None:
        founder = Process(self.world, "founder")
        founder.catalog = Catalog({DATABASE: self.world.storage}, founder.clock)
        founder.catalog.create_schema(DATABASE, SCHEMA)
        for name in NAMES:
            self.actions.create(founder, name)

    def _run_round(self, processes: list[Process], is_last: bool) -> None:
        began_ms, chance = self.world.now_ms, self.world.chance
        self.actions.draw_theme()
        if chance.random() < (0.9 if self.actions.keeps_log_shortly else 0.3):
            self.world.after(chance.randrange(1, 60), self.world.suspend)
        if is_last:
            self.world.after(chance.randrange(20, 300), self._end_faults)
        if self.actions.keeps_log_shortly and chance.random() < 0.3:
            self.actions.only_append(chance.choice((ACCOUNTS, LEDGER)))

        def life(process: Process) -> Callable[[], None]:
            chance = process.random
            kinds, weights = zip(*self.actions.weights.items(), strict=True)
            todo = [chance.choices(kinds, weights)[0] for _ in range(chance.randrange(2, 6))]
            return lambda: _live(process, [lambda act=act: act(self.actions, process) for act in todo])  # type: ignore[misc]

        self._run([life(process) for process in processes])
        check_retained(self.world, tuple(f"{name.schema}/{name.identifier}" for name in (ACCOUNTS, LEDGER)), began_ms)

    def _run(self, tasks: list[Callable[[], None]]) -> None:
        for result in self.world.run(tasks):
            if isinstance(result, Endless):
                raise Violation(f"it does not end: {result}")
            if isinstance(result, BaseException):
                raise result if isinstance(result, Violation) else Violation(f"it broke: {result!r}") from result

    def _end_faults(self) -> None:
        self.world.states[rare_states.FAULTS_ENDED] += 1
        self.world.end_faults(TURNS_WITHOUT_FAULTS)

    def _write_without_faults(self, processes: list[Process]) -> tuple[int, int]:
        """Lets each process write with the state that it has, writes each table, and drops and creates the queue.

        Returns:
            As `History.turns`.
        """
        ended = self.world.turns_without_faults
        self.world.end_faults(TURNS_WITHOUT_FAULTS)
        self._run([lambda process=process: self._write_all(process) for process in processes])  # type: ignore[misc]
        written = self.world.turns_without_faults
        founder = processes[0]
        founder.catalog.drop_table(QUEUE)
        self.actions.create(founder, QUEUE)
        return ended, written

    def _write_all(self, process: Process) -> None:
        """Lets the first process write each table, and another process one table."""
        actions = self.actions
        for name in NAMES if process.name == "p0" else (process.random.choice(NAMES),):
            actions.makes_queue(process)
            statement = statements.append({actions.new_key(): 1})
            while actions.attempt(process, name, statement, CommitSettings()) != COMMITTED:
                self.world.note(f"{process.name} tries again")
            if process.name == "p0":
                actions.maintain(process, name, lambda log: log.checkpoint(log.snapshot()))


def simulate(seed: int, has_folders: bool = True) -> History:
    """Runs one seed, on a storage with folders or on an object store.

    Raises:
        Violation: if an invariant is broken; the message has the schedule.
    """
    with seeded():
        return Simulation(seed, has_folders).run()


def _live(process: Process, todo: list[Callable[[], None]]) -> None:
    """Runs actions in order; a crash ends the current action, and the process restarts."""
    for act in todo:
        try:
            act()
        except Crash:
            process.start()


@contextlib.contextmanager
def _turns_for_locks(world: World) -> Iterator[None]:
    """Lets other tasks continue while a task waits for a lock of the catalog."""
    with mock.patch.object(locks, "_held_changed", _Turns(world)), mock.patch.object(locks, "_held", {}):
        yield


class _Turns:
    """A condition variable for tasks that take turns."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __enter__(self) -> None:
        """Tasks do not run at the same time."""

    def __exit__(self, *error: object) -> None:
        """There is no lock to release."""

    def wait_for(self, is_so: Callable[[], bool], timeout: float) -> bool:
        while not is_so():
            self.world.let_others_go_on()
        return True

    def notify_all(self) -> None:
        """Waiting tasks check by themselves."""
