"""A fake Spark without Java, and its keeper's lock, for tests of who may use it and when it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dbt.adapters.silt.kept_spark import finding, inherited_environment, leases
from dbt.adapters.silt.kept_spark.finding import Attached
from dbt.adapters.silt.kept_spark.leases import Lease, Record, Use
from dbt.adapters.silt.kept_spark.private_files import Lock
from dbt.adapters.silt.kept_spark.watch import RECORD, Watch

MINUTE = 60.0
KEEP_ALIVE = 15 * MINUTE


def record(port: int = 40001) -> Record:
    return Record(
        port=port,
        token="secret-token",
        keeper=os.getpid(),
        java=os.getpid(),
        started=1.0,
        spark="4.3.0",
        package="0.1.0",
        application="local-1",
        master="local[2]",
        folder="/shop",
        machine=inherited_environment.machine(),
    )


def use(keep_alive: float = KEEP_ALIVE, started: float = 1.0) -> Use:
    return Use(os.getpid(), "dbt run", keep_alive, started)


@dataclass
class FakeSpark:
    """Records the calls that it receives."""

    alive: bool = True
    closed: list[str] = field(default_factory=list)
    tidied: int = 0
    tidies: bool = True

    def is_alive(self) -> bool:
        return self.alive

    def close_sessions(self, user: str) -> None:
        self.closed.append(user)

    def tidy(self) -> bool:
        self.tidied += 1
        return self.tidies


@dataclass
class Kept:
    """A watched Spark in a folder, with a clock that the test moves."""

    folder: Path
    spark: FakeSpark = field(default_factory=FakeSpark)
    time: float = 0.0

    def __post_init__(self) -> None:
        record().write(self.folder / RECORD)
        self.watch = Watch(self.folder, record(), self.spark, KEEP_ALIVE, now=lambda: self.time)

    def take(self, keep_alive: float = KEEP_ALIVE, started: float = 1.0) -> Lease:
        return leases.take(self.folder, use(keep_alive, started))


@dataclass
class Starts:
    """Starts fake keepers, each of which only holds the lock of a live keeper."""

    keepers: list[int] = field(default_factory=list)

    def attach(self, folder: Path, answers: Callable[[Record], bool] = lambda _: True) -> Attached:
        """Attaches to the Spark of a folder, which accepts connections as `answers` says."""
        return finding.attach(folder, use(), self, answers)

    def __call__(self, folder: Path, alive: Lock) -> None:
        self.keepers.append(os.dup(alive.descriptor))
        record(40000 + len(self.keepers)).write(folder / RECORD)

    def kill(self) -> None:
        """Simulates the end of a killed process: its lock is released, and its files remain."""
        os.close(self.keepers[-1])
