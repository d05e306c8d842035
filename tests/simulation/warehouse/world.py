"""The simulated world: processes that share one storage, with all randomness from one seed.

At each operation of a process on its store, another process may continue instead, a fault may occur, or the process may
crash. Time passes only in these operations.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbt.adapters.silt.engine.kernel.storage.store import Store, Tag
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, LogFileKind, parse_log_name
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, Task
from tests.simulation.warehouse import rare_states
from tests.simulation.warehouse.weather import FAIR, Weather

if TYPE_CHECKING:
    from tests.simulation.warehouse.process import Process

DATABASE, SCHEMA = "silt", "bank"
DATA_SUFFIX = ".data"
_BEGINNING_MS = 1_700_000_000_000
_MODE_STEPS = 40
_MOST_TURNS = 20_000
_SUSPENDED_TURNS = 150
_HOUR_MS = 60 * 60 * 1000
_DAY_MS = 24 * _HOUR_MS
CLOCK_STEPS_MS = tuple(hours * _HOUR_MS for hours in (-2, -1, 0, 1, 2))
"""How far a process's clock may be from the storage's."""
PAUSES_MS = (2 * _DAY_MS + 2 * _HOUR_MS, 4 * _DAY_MS)
"""How long all processes may be suspended: longer than `SHORT_LOG_RETENTION_MS`, shorter than files are kept."""
SHORT_LOG_RETENTION_MS = 2 * _DAY_MS


class Endless(BaseException):
    """A task did not end within the allowed turns. No code of the engine may catch it."""


@dataclass(frozen=True)
class Landing:
    """A commit file that was written.

    Attributes:
        log: the number of the log's folder, which identifies the incarnation of a table.
        folder: of the table.
        at: the step of the world.
        at_ms: the time of the world.
        is_stray: whether the version was free only because a clean-up had deleted it, so that no reader finds it.
    """

    log: int
    folder: str
    version: int
    data: bytes
    at: int
    at_ms: int
    is_stray: bool = False

    @property
    def table(self) -> str:
        """Schema and name of the table when its folder was created."""
        return "/".join(self.folder.split("/")[:2])


class World:
    """The storage, the time, the order of turns, and a record of all events.

    Attributes:
        step: counts the operations of all processes.
        landings: the commits in the order of their writes, also of dropped tables.
        contents: of the data files, also deleted files, by the last part of their path.
        schedule: the operations of each process, with their outcomes.
        states: how often each of the `rare_states` was reached.
        chance: decides when clocks step, processes are suspended, and faults end.
        has_faults: whether faults still occur.
    """

    def __init__(self, seed: int, weather: Weather = FAIR, has_folders: bool = True) -> None:
        self.random = random.Random(seed)
        self.weather = weather
        self.now_ms = _BEGINNING_MS
        self.step = 0
        self.landings: list[Landing] = []
        self.contents: dict[str, bytes] = {}
        self.schedule: list[str] = []
        self.storage: Store = RecordingStore(self) if has_folders else RecordingObjectStore(self)
        self._scheduler = Scheduler()
        self._in_flight: list[tuple[str, Callable[[], object]]] = []
        self._mode = 0.0
        self.states: Counter[str] = Counter()
        self.chance = random.Random(f"chance {seed}")
        self.has_faults = True
        self._turns, self._last_turn, self._ended = 0, _MOST_TURNS, 0
        self._suspends_at = ""
        self._events: dict[int, Callable[[], None]] = {}

    def run(self, tasks: list[Task], turns: int = _MOST_TURNS) -> list[object]:
        """Runs tasks of processes to their end, and then their writes that are still in flight.

        Args:
            turns: after so many turns, each task that has not ended is stopped by `Endless`.
        """
        self._turns, self._last_turn, self._ended = 0, turns, 0
        results = self._scheduler.run(tasks, self._choose)
        self._events.clear()
        while self._in_flight:
            self._arrive(0)
        return results

    def after(self, steps: int, event: Callable[[], None]) -> None:
        """Lets an event occur after so many steps from now, if the tasks have not ended by then."""
        self._events[self.step + steps] = event

    def suspend(self) -> None:
        """Suspends for days the next process that is about to commit, before or after its last look at the log.

        Other processes run before that time and after it.
        """
        self._suspends_at = self.chance.choice(("make_durable", "put_if_absent"))

    def before_commit(self, process: Process, operation: str) -> None:
        """Suspends the process if that is due at this operation of its commit."""
        if self._suspends_at == operation:
            self._suspends_at = ""
            self.note(f"{process.name} is suspended for days")
            for milliseconds in (self.chance.choice(PAUSES_MS), 0):
                for _ in range(_SUSPENDED_TURNS):
                    self.let_others_go_on()
                self.now_ms += milliseconds

    def end_faults(self, turns: int) -> None:
        """Ends all faults; writes in flight still arrive.

        Args:
            turns: the tasks must end within so many turns from now.
        """
        self.note("faults end")
        self.weather, self.has_faults = FAIR, False
        self._ended, self._last_turn = self._turns, self._turns + turns

    @property
    def turns_without_faults(self) -> int:
        """How many turns there were since the faults ended, in the tasks that run now or ran last."""
        return 0 if self.has_faults else self._turns - self._ended

    def point(self, process: Process, what: str) -> None:
        """Lets other processes continue, and counts a step."""
        self._turn()
        self.step += 1
        self.now_ms += 1
        event = self._events.pop(self.step, None)
        if event is not None:
            event()
        if self.weather.clock and self.chance.random() < self.weather.clock:
            process.step_clock(self.chance.choice(CLOCK_STEPS_MS))
        self.schedule.append(f"{process.name} {what}")
        if self._in_flight and self.random.random() < 0.2:
            self._arrive(self.random.randrange(len(self._in_flight)))

    def let_others_go_on(self) -> None:
        """Lets other processes continue while the caller only waits."""
        self._turn()

    def note(self, what: str) -> None:
        self.schedule.append(f"    {what}")

    def send(self, what: str, write: Callable[[], object]) -> None:
        """Schedules a write that arrives after its sender has given up."""
        self._in_flight.append((what, write))

    def record(self, path: str, data: bytes, log_of: Callable[[str], int]) -> None:
        """Records a written file if it is a commit or a data file.

        Args:
            log_of: returns the number of a log's folder.
        """
        folder, _, name = path.rpartition("/")
        parsed = parse_log_name(name) if folder.endswith(LOG_FOLDER) else None
        if parsed is not None and parsed.kind is LogFileKind.COMMIT:
            table = folder.removesuffix(f"/{LOG_FOLDER}")
            log, version = log_of(folder), parsed.version
            is_again = any((each.log, each.version) == (log, version) for each in self.landings)
            is_stray = is_again and self.storage.status(path) is None
            self.states[rare_states.CLEANED_UP_VERSION] += is_stray
            self.landings.append(Landing(log, table, version, data, self.step, self.now_ms, is_stray))
        if name.endswith(DATA_SUFFIX):
            self.contents[name] = data

    def _turn(self) -> None:
        self._scheduler.turn()
        self._turns += 1
        if self._turns > self._last_turn:
            raise Endless(f"not ended after {self._turns - 1} turns")

    def _arrive(self, index: int) -> None:
        what, write = self._in_flight.pop(index)
        self.note(f"arrives: {what}")
        landed = len(self.landings)
        try:
            write()
        except Exception as error:
            self.note(f"and fails: {error!r}")
        if what.endswith(".json"):
            is_commit = len(self.landings) > landed
            self.states[rare_states.LATE_COMMIT if is_commit else rare_states.TOO_LATE_COMMIT] += 1

    def _choose(self, options: int) -> int:
        """Chooses mostly at random; sometimes some processes wait for long, or one process continues for long."""
        if not self.has_faults:
            self._mode = 0.0
        elif self.step % _MODE_STEPS == 0:
            self._mode = self.random.choice((0.0, 0.0, 0.7, 0.95))
        if self.random.random() < self._mode:
            return self.step // _MODE_STEPS % options
        return self.random.randrange(options)


class RecordingStore(MemoryStore):
    """The storage, which records all commits and data files ever written."""

    def __init__(self, world: World) -> None:
        super().__init__(WorldClock(world))
        write = self._tree.write

        def record(path: str, data: bytes) -> None:
            world.record(path, data, lambda folder: self._tree.folders[folder])
            write(path, data)

        self._tree.write = record  # type: ignore[method-assign]


class RecordingObjectStore(MemoryObjectStore):
    """The same for an object store, where no table's folder is used again."""

    def __init__(self, world: World) -> None:
        super().__init__(WorldClock(world))
        write, logs, written = self._bucket.write, dict[str, int](), dict[str, bytes]()

        def record(key: str, data: bytes) -> Tag:
            if key in self._bucket.objects or written.get(key) != data:
                world.record(key, data, lambda folder: logs.setdefault(folder, len(logs)))
            # else the same commit arrives again after its folder was emptied, and is already recorded
            written[key] = data
            return write(key, data)

        self._bucket.write = record  # type: ignore[method-assign]


@dataclass
class WorldClock:
    """The world's time, with its own ids and randomness."""

    world: World
    seed: int = 0
    process: Process | None = None
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def now_ms(self) -> int:
        self.world.now_ms += 1
        return self.world.now_ms + (0 if self.process is None else self.process.ahead_ms)

    def sleep(self, seconds: float) -> None:
        self.world.now_ms += int(seconds * 1000)
        if self.process is not None:
            self.world.point(self.process, "sleeps")

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def jitter(self) -> float:
        return self.random.random()
