"""Process: a simulated program with its own handles of the storage, which has faults and crashes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.transaction.attempt import SETTLING_TRIES
from tests.faulty_store import Fault, FaultyStore
from tests.simulation.warehouse import rare_states
from tests.simulation.warehouse.world import DATABASE, World, WorldClock

T = TypeVar("T")

# The writes that may arrive after their sender has given up; their conditions keep them harmless.
_CONDITIONAL = ("put_if_absent", "swap_if_unchanged")


class Crash(BaseException):
    """The process has crashed. No code of the engine may catch it."""


class Process:
    """A program with its own handles, which may crash at any of its operations and be restarted.

    Attributes:
        strikes: how many faults have occurred in it.
        ahead_ms: how far its clock is ahead of the storage's.
        unanswered: how many of its next conditional writes are not answered.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.random = random.Random(world.random.random())
        self.strikes = 0
        self.ahead_ms = 0
        self.unanswered = 0
        self.start()

    def start(self) -> None:
        """Starts without any state."""
        self.is_dead = False
        self.clock: Clock = WorldClock(self.world, self.random.getrandbits(32), self)
        store = ProcessStore(self)
        self.catalog = Catalog({DATABASE: store}, self.clock)
        for register in self.catalog._registers.values():
            register._at_once = 1  # the world runs one thread of each process

    def step_clock(self, ahead_ms: int) -> None:
        if ahead_ms < self.ahead_ms:
            self.world.states[rare_states.CLOCK_BACK] += 1
        self.world.note(f"the clock of {self.name} is {ahead_ms} ms ahead")
        self.ahead_ms = ahead_ms

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
        if operation == "make_durable" or path.endswith(".json"):
            world.before_commit(process, operation)
        if operation in _CONDITIONAL and self._is_unanswered():
            process.strikes += 1
            world.note("is lost for now")
            world.send(what, run)
            raise StorageError(f"{what} was not answered")
        landed = len(world.landings)
        try:
            result = super().around(operation, path, run)
        except StorageError:
            if operation == "put_if_absent" and len(world.landings) > landed:
                world.states[rare_states.LOST_ANSWER] += 1
            raise
        if weather.crash and world.random.random() < weather.crash:
            process.crash()
        return result

    def _is_unanswered(self) -> bool:
        """Returns whether an answer is lost, once or for as long as the engine waits for it."""
        process, weather, world = self.process, self.process.world.weather, self.process.world
        if not world.has_faults:
            return False
        if weather.outage and not process.unanswered and world.chance.random() < weather.outage:
            process.unanswered = SETTLING_TRIES + 1
        if process.unanswered:
            process.unanswered -= 1
            return True
        return bool(weather.lost) and world.random.random() < weather.lost

    def _strike(self, operation: str, path: str) -> Fault | None:
        fault = super()._strike(operation, path) if self.process.world.has_faults else None
        if fault is not None:
            self.process.strikes += 1
            self.process.world.note(fault.kind.value)
        return fault
