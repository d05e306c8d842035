"""Writers on one table in virtual time: each request takes as long as it is told to, and nobody waits.

The commits are the kernel's own. A writer is a task that runs alone until its next request; the writer whose clock is
least goes on, so each request takes effect at the moment of its clock. Requests that a writer sends side by side take
effect at their beginning, and take as long as sixteen at a time do.
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
    """What writers do.

    Args:
        writers: how many, each one statement after the other.
        latency: of a request, in seconds.
        seconds: for how long they begin statements.
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
    """What happened.

    Attributes:
        commits: how many.
        in_time: how many of them before the writers stopped to begin statements.
        attempts: how many versions were tried.
        exhausted: statements that ended with CommitAttemptsExhausted.
        conflicts: runs of a statement that ended with a conflict.
        waits: how long each statement took, from its first snapshot to its commit, in seconds.
        requests: how many.
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
    """The clocks of the writers, in seconds; the writer that has its turn is `current`."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.scheduler = Scheduler()
        self.current: Writer | None = None
        self.waiting: list[Writer] = []
        self.requests = 0

    def on_request(self, request: Request) -> None:
        """Lets time pass for the writer that sends it, and then whoever is behind go on."""
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
        """The writer whose clock is least; of several the first."""
        assert options == len(self.waiting)
        return min(range(options), key=lambda index: self.waiting[index].now)


class Writer:
    """A writer with its own clock and handle; it is the kernel's `Clock`, too."""

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
        """How long the requests took that were sent side by side since."""
        burst, self.burst = self.burst, 0
        return math.ceil(burst / AT_ONCE) * latency

    def append(self, file: str) -> CommitResult:
        changes = Changes(_WRITE, (AddFile(file, {}, 1, self.now_ms(), stats='{"numRecords":1}'),))
        return commit(self.log, self.log.snapshot(), changes, ReadSet(), CommitSettings())

    def merge(self, file: str, work: float) -> CommitResult:
        """Adds a file by a statement that depends on all rows."""
        base = self.log.snapshot()
        self.sleep(work)
        changes = Changes(Operation("MERGE"), (AddFile(file, {}, 1, self.now_ms(), stats='{"numRecords":1}'),))
        return commit(self.log, base, changes, ReadSet((TRUE,), whole_table=True), CommitSettings())


@dataclass(frozen=True)
class Result:
    """What was seen, the files that writers believe to be committed, and the table's files."""

    load: Load
    seen: Seen
    committed: frozenset[str]
    files: frozenset[str]

    @property
    def per_second(self) -> float:
        return self.seen.in_time / self.load.seconds


def simulate(load: Load, runs: int = 5) -> Result:
    """Runs the writers until the time is over and their last statements have ended.

    Args:
        runs: how often a statement is run at most, as `statement_attempts` says; without the waits between them.
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
    """The statements of one writer."""

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
    """Whether the statement is committed, after as many runs as are allowed."""
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
