"""The simulated world: processes that share one storage, with all randomness from one seed.

At each operation of a process on its store, another process may continue instead, a fault may occur, or the process may
crash. Time passes only in these operations.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.memory_store import MemoryStore
from dbt.adapters.silt.engine.kernel.storage.store import Store, Tag
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, LogFileKind, parse_log_name
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.memory_object_store import MemoryObjectStore
from tests.simulation.interleaving import Scheduler, Task

T = TypeVar("T")

DATABASE, SCHEMA = "silt", "bank"
DATA_SUFFIX = ".data"
_BEGINNING_MS = 1_700_000_000_000
_MODE_STEPS = 40


# The writes that may arrive after their sender has given up; their conditions keep them harmless.
_CONDITIONAL = ("put_if_absent", "swap_if_unchanged")


class Crash(BaseException):
    """The process has crashed. No code of the engine may catch it."""


@dataclass(frozen=True)
class Landing:
    """A commit file that was written.

    Attributes:
        log: the number of the log's folder, which identifies the incarnation of a table.
        folder: of the table.
        at: the step of the world.
        at_ms: the time of the world.
    """

    log: int
    folder: str
    version: int
    data: bytes
    at: int
    at_ms: int

    @property
    def table(self) -> str:
        """Schema and name of the table when its folder was created."""
        return "/".join(self.folder.split("/")[:2])


@dataclass(frozen=True)
class Weather:
    """The probability of each fault, per operation."""

    faults: tuple[tuple[FaultKind, str, str, float], ...] = ()
    crash: float = 0.0
    lost: float = 0.0


FAIR = Weather()
ROUGH = Weather(
    faults=(
        (FaultKind.FAIL_BEFORE, "*", "*", 0.01),
        (FaultKind.FAIL_AFTER, "put*", "*", 0.03),
        (FaultKind.FAIL_AFTER, "swap*", "*", 0.03),
        (FaultKind.TWICE, "*", "*", 0.02),
        (FaultKind.DELAY, "*", "*", 0.01),
    ),
    crash=0.004,
    lost=0.02,
)
FOUL = Weather(
    faults=(
        (FaultKind.FAIL_BEFORE, "*", "*", 0.03),
        (FaultKind.FAIL_AFTER, "put*", "*.json", 0.2),
        (FaultKind.FAIL_AFTER, "swap*", "*", 0.2),
        (FaultKind.TORN, "read", f"*{LOG_FOLDER}/*", 0.02),
        (FaultKind.LATE, "list_from", f"*{LOG_FOLDER}*", 0.05),
    ),
    crash=0.01,
    lost=0.1,
)


class World:
    """The storage, the time, the order of turns, and a record of all events.

    Attributes:
        step: counts the operations of all processes.
        landings: the commits in the order of their writes, also of dropped tables.
        contents: of the data files, also deleted files, by the last part of their path.
        schedule: the operations of each process, with their outcomes.
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

    def run(self, tasks: list[Task]) -> list[object]:
        """Runs tasks of processes to their end, and then their writes that are still in flight."""
        results = self._scheduler.run(tasks, self._choose)
        while self._in_flight:
            self._arrive(0)
        return results

    def point(self, process: Process, what: str) -> None:
        """Lets other processes continue, and counts a step."""
        self._scheduler.turn()
        self.step += 1
        self.now_ms += 1
        self.schedule.append(f"{process.name} {what}")
        if self._in_flight and self.random.random() < 0.2:
            self._arrive(self.random.randrange(len(self._in_flight)))

    def let_others_go_on(self) -> None:
        """Lets other processes continue while the caller only waits."""
        self._scheduler.turn()

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
            self.landings.append(Landing(log_of(folder), table, parsed.version, data, self.step, self.now_ms))
        if name.endswith(DATA_SUFFIX):
            self.contents[name] = data

    def _arrive(self, index: int) -> None:
        what, write = self._in_flight.pop(index)
        self.note(f"arrives: {what}")
        try:
            write()
        except Exception as error:
            self.note(f"and fails: {error!r}")

    def _choose(self, options: int) -> int:
        """Chooses mostly at random; sometimes some processes wait for long, or one process continues for long."""
        if self.step % _MODE_STEPS == 0:
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
        return self.world.now_ms

    def sleep(self, seconds: float) -> None:
        self.world.now_ms += int(seconds * 1000)
        if self.process is not None:
            self.world.point(self.process, "sleeps")

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def jitter(self) -> float:
        return self.random.random()


class Process:
    """A program with its own handles, which may crash at any of its operations and be restarted.

    Attributes:
        strikes: how many faults have occurred in it.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.random = random.Random(world.random.random())
        self.strikes = 0
        self.start()

    def start(self) -> None:
        """Starts without any state."""
        self.is_dead = False
        self.clock: Clock = WorldClock(self.world, self.random.getrandbits(32), self)
        store = ProcessStore(self)
        self.catalog = Catalog({DATABASE: store}, self.clock)

    def crash(self) -> None:
        self.is_dead = True
        self.world.note("crashes")
        raise Crash


class ProcessStore(FaultyStore):
    """The storage as one process sees it."""

    def __init__(self, process: Process) -> None:
        world = process.world
        faults = [
            Fault(operation, kind, path, probability=likely, seconds=2.0)
            for kind, operation, path, likely in world.weather.faults
        ]
        super().__init__(world.storage, faults, process.random.getrandbits(32), process.clock)
        self.process = process

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        process = self.process
        world, weather = process.world, process.world.weather
        if process.is_dead:
            raise Crash
        what = f"{operation} {self.inner.root}/{path}"
        world.point(process, what)
        if weather.crash and world.random.random() < weather.crash:
            process.crash()
        if weather.lost and operation in _CONDITIONAL and world.random.random() < weather.lost:
            process.strikes += 1
            world.note("is lost for now")
            world.send(what, run)
            raise StorageError(f"{what} was not answered")
        result = super().around(operation, path, run)
        if weather.crash and world.random.random() < weather.crash:
            process.crash()
        return result

    def _strike(self, operation: str, path: str) -> Fault | None:
        fault = super()._strike(operation, path)
        if fault is not None:
            self.process.strikes += 1
            self.process.world.note(fault.kind.value)
        return fault
