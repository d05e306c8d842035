"""Writers on one table in virtual time: each request takes a given time, without real waiting.

The commits are the kernel's own. A writer is a task that runs alone until its next request; then the writer with the
earliest clock continues, so that each request takes effect at the time of its clock. Parallel requests of a writer take
effect at their start, and take the time of sixteen requests at a time.
"""

from __future__ import annotations

import json
import math
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.scale.meter import AT_ONCE, Request, metered
from dbt.adapters.silt.engine.kernel.errors import CommitAttemptsExhaustedError, ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings, commit
from tests.simulation.interleaving import Scheduler

SCHEMA = StructType((StructField("id", PrimitiveType("long")),))
_WRITE = Operation("WRITE")


@dataclass(frozen=True)
class Load:
    """The work of the writers.

    Args:
        writers: the number of writers, each of which runs successive statements.
        latency: of a request, seconds.
        seconds: the time during which they start statements.
        is_merge: whether a statement has read the whole table, so that any other commit conflicts with it, and it is
            run again from a new snapshot.
        work: how long a statement works before it commits, in seconds, each time it is run.
    """

    writers: int
    latency: float
    seconds: float
    is_merge: bool = False
    work: float = 0.0


@dataclass
class Seen:
    """The results of the writers.

    Attributes:
        commits: the number of commits.
        in_time: the number of commits before the writers stopped starting statements.
        attempts: the number of attempted versions.
        exhausted: statements that ended with CommitAttemptsExhausted.
        conflicts: runs of a statement that ended with a conflict.
        waits: the seconds of each statement from its first snapshot to its commit.
        requests: the number of requests.
    """

    commits: int = 0
    attempts: int = 0
    exhausted: int = 0
    conflicts: int = 0
    in_time: int = 0
    waits: list[float] = field(default_factory=list)
    requests: int = 0

    @property
    def median_wait(self) -> float:
        return sorted(self.waits)[len(self.waits) // 2] if self.waits else math.nan


class VirtualTime:
    """The clocks of the writers, in seconds; `current` is the writer whose turn it is."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.scheduler = Scheduler()
        self.current: Writer | None = None
        self.waiting: list[Writer] = []
        self.requests = 0

    def on_request(self, request: Request) -> None:
        """Advances the clock of the sending writer, and then lets the writer with the earliest clock continue."""
        writer = self.current
        if writer is None:
            return
        self.requests += 1
        if request.is_parallel:
            writer.burst += 1
        else:
            self.wait(writer, self.latency + writer.ended_burst(self.latency))

    def wait(self, writer: Writer, seconds: float) -> None:
        writer.now += seconds
        self.scheduler.turn()
        self.current = writer

    def choose(self, options: int) -> int:
        """Returns the first writer with the earliest clock."""
        assert options == len(self.waiting)
        return min(range(options), key=lambda index: self.waiting[index].now)


class Writer:
    """A writer with its own clock and handle, which also serves as the kernel's `Clock`."""

    def __init__(self, time: VirtualTime, number: int, store: ObjectStore) -> None:
        self.time = time
        self.now = 0.0
        self.burst = 0
        self._random = random.Random(number)
        self.log = DeltaLog(store, "main.events", self)

    def now_ms(self) -> int:
        return 1_700_000_000_000 + round(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        if self.time.current is self:
            self.time.wait(self, seconds)

    def new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def jitter(self) -> float:
        return self._random.random()

    def ended_burst(self, latency: float) -> float:
        """Ends a burst of parallel requests and returns its seconds."""
        burst, self.burst = self.burst, 0
        return math.ceil(burst / AT_ONCE) * latency

    def append(self, file: str) -> CommitResult:
        changes = Changes(_WRITE, (AddFile(file, {}, 1, self.now_ms(), stats='{"numRecords":1}'),))
        return commit(self.log, self.log.snapshot(), changes, ReadSet(), CommitSettings())

    def merge(self, file: str, work: float) -> CommitResult:
        """Adds a file with a statement that depends on all rows."""
        base = self.log.snapshot()
        self.sleep(work)
        changes = Changes(Operation("MERGE"), (AddFile(file, {}, 1, self.now_ms(), stats='{"numRecords":1}'),))
        return commit(self.log, base, changes, ReadSet((TRUE,), whole_table=True), CommitSettings())


@dataclass(frozen=True)
class Result:
    """The results, the files that the writers report as committed, and the table's files."""

    load: Load
    seen: Seen
    committed: frozenset[str]
    files: frozenset[str]

    @property
    def per_second(self) -> float:
        return self.seen.in_time / self.load.seconds


def simulate(load: Load, runs: int = 5) -> Result:
    """Runs the writers until the time has passed and their last statements have ended.

    Args:
        runs: the most runs of a statement, like `statement_attempts`, but without waits between them.
    """
    store, time = ObjectStore("memory:///").child("t").never_reused(), VirtualTime(load.latency)
    with metered() as meter:
        writers = [Writer(time, number, store) for number in range(load.writers)]
        _create(writers[0])
        for writer in writers:
            writer.log.snapshot()  # the table is open
        meter.tell(time.on_request)
        seen, committed = Seen(), set[str]()
        tasks = [_task(writer, number, load, runs, seen, committed) for number, writer in enumerate(writers)]
        time.waiting = list(writers)
        results = time.scheduler.run(tasks, time.choose)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    seen.requests = time.requests
    found = DeltaLog(store, "main.events").snapshot().files["path"].to_pylist()
    assert len(found) == len(set(found))
    return Result(load, seen, frozenset(committed), frozenset(found))


def _create(writer: Writer) -> None:
    metadata = Metadata(writer.new_id(), SCHEMA.to_json())
    changes = Changes(Operation("CREATE TABLE"), protocol=Protocol(1, 2), metadata=metadata)
    commit(writer.log, None, changes, ReadSet(), CommitSettings())


def _task(writer: Writer, number: int, load: Load, runs: int, seen: Seen, committed: set[str]) -> Callable[[], None]:
    """Returns the task of one writer: its statements."""

    def run() -> None:
        writer.time.scheduler.turn()
        writer.time.current = writer
        count = 0
        while writer.now < load.seconds:
            file = json.dumps([number, count]).replace(" ", "")
            began = writer.now
            if _lands(writer, file, load, runs, seen):
                committed.add(file)
                seen.waits.append(writer.now - began)
                seen.in_time += round(writer.now - load.seconds, 6) <= 0
            count += 1
        writer.time.waiting.remove(writer)

    return run


def _lands(writer: Writer, file: str, load: Load, runs: int, seen: Seen) -> bool:
    """Runs a statement up to the allowed number of times, and returns whether it was committed."""
    for _ in range(runs):
        try:
            done = writer.merge(file, load.work) if load.is_merge else writer.append(file)
        except ConcurrentModificationError:
            seen.conflicts += 1
            seen.attempts += 1
        except CommitAttemptsExhaustedError as error:
            seen.exhausted += 1
            seen.attempts += error.details["attempts"]
            return False
        else:
            seen.commits += 1
            seen.attempts += done.attempts
            return True
    seen.exhausted += 1
    return False
