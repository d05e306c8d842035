"""Histories of SQL: clients on threads of one embedded Spark, each with a session of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.open_databases import OpenDatabases
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.settings import storages
from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.histories.client import Client, Journal, transactions_of
from tests.histories.history import History, Insert, Key, Level
from tests.histories.interleaved import history_of
from tests.histories.sql_door import SqlDoor
from tests.histories.workload import WEIGHTS, Request, Workload
from tests.simulation.processes import on_threads

LOST: Final = 0.05
"""The probability that the answer to a commit is lost."""
_SETTINGS: Final = WarehouseSettings(max_commit_attempts=1000, statement_attempts=10, log_skips=False)
_KINDS: Final = {kind: weight for kind, weight in WEIGHTS.items() if not kind.startswith("declare")}


def sql_workload(seed: int, clients: int, length: int, tables: int = 2) -> Workload:
    """A workload that SQL can express, over tables whose levels depend on the seed."""
    chance = random.Random(seed)
    levels = {f"t{number}": chance.choice(list(Level)) for number in range(tables)}
    return Workload(seed, clients, length, levels, weights=_KINDS)


def properties(seed: int) -> Mapping[str, str]:
    """Table properties that depend on the seed: with and without deletion vectors, and with a short log."""
    return {"delta.enableDeletionVectors": ("true", "false")[seed % 2], "delta.checkpointInterval": str(5 + seed % 4)}


def history_of_threads(spark: SparkSession, folder: Path, workload: Workload, lost: float = LOST) -> History:
    """Executes all clients on threads, and then the final reads."""
    rows, location = workload.rows_to_delete(), str(folder)
    founder = Warehouse(spark.newSession(), location, settings=_SETTINGS)
    SqlDoor(founder, rows, random.Random(0)).create(workload, properties(workload.seed))
    journals: list[list[str]] = [[] for _ in range(workload.clients)]

    def live(index: int) -> None:
        warehouse = faulty_warehouse(spark.newSession(), location, lost, seed=workload.seed + index)
        door = SqlDoor(warehouse, rows, random.Random(index), location)
        Client(index, workload.requests(index), door, Journal(journals[index].append, time.monotonic_ns)).live()

    on_threads(workload.clients, live)
    return history_of(workload, SqlDoor(founder, rows, random.Random(0)), journals, time.monotonic_ns)


def history_of_claims(spark: SparkSession, folder: Path, chance: int) -> History:
    """Two clients claim the same set, each in a transaction, and neither commits before the other has found it empty.

    Args:
        chance: which statements they use.
    """
    workload = Workload(0, 2, 1, {"t0": Level.SERIALIZABLE}, weights={"transaction": 1.0})
    key = Key("t0", workload.claims_of(0)[0])
    founder = SqlDoor(Warehouse(spark.newSession(), str(folder), settings=_SETTINGS), {}, random.Random(chance))
    founder.create(workload, {})
    lines: list[list[str]] = [[], [], []]
    meeting = threading.Barrier(2, timeout=120)

    def live(index: int) -> None:
        warehouse = Warehouse(spark.newSession(), str(folder), settings=_SETTINGS)
        door = SqlDoor(warehouse, {}, random.Random(chance // (index + 1)), before_commit=meeting.wait)
        claim = Request("claim", "t0", (Insert(key, 10 + index),))
        together = Request("transaction", "t0", claim.writes, statements=(claim,))
        requests[index] = [together]
        Client(index, [together], door, Journal(lines[index].append, time.monotonic_ns)).live()

    requests: dict[int, list[Request]] = {2: [Request("read", "t0", sets=(key,))]}
    on_threads(2, live)
    Client(2, requests[2], founder, Journal(lines[2].append, time.monotonic_ns)).live()
    found = [each for index in range(3) for each in transactions_of(requests[index], index, lines[index])]
    return History(tuple(found), workload.levels, {})


def faulty_warehouse(spark: SparkSession, location: str, lost: float, seed: int) -> Warehouse:
    """A warehouse in a folder whose storage loses answers to commits.

    Args:
        lost: how often.
    """
    store = FaultyStore(
        LocalStore(location),
        [Fault("put_if_absent", FaultKind.FAIL_AFTER, "*_delta_log/*.json", probability=lost)],
        seed,
    )
    databases = OpenDatabases(
        {"silt": location}, storages({"silt": location}), {"silt": store}, Catalog({"silt": store})
    )
    return Warehouse.over(spark, databases, ("silt", "main"), _SETTINGS)
