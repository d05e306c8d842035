"""A table whose data files are small JSON lists, with statements written in Python over the kernel's real commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dbt.adapters.silt.engine.kernel import skipping, transaction
from dbt.adapters.silt.engine.kernel.actions import AddFile, Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.clock import FixedClock
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.expressions import Expression, evaluate
from dbt.adapters.silt.engine.kernel.log import DeltaLog
from dbt.adapters.silt.engine.kernel.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.store import Store
from dbt.adapters.silt.engine.kernel.transaction import (
    Changes,
    CommitSettings,
    Committed,
    Operation,
    ReadSet,
)

SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("amount", PrimitiveType("long"))))
Rows = Mapping[int, int]
Change = Callable[[int, int], int | None]


@dataclass
class Writer:
    """One process: its own handle of the table, its own clock.

    Attributes:
        log: the handle.
        seed: of the clock, which also gives the ids.
        level: None takes the table's.
    """

    store: Store
    seed: int
    level: IsolationLevel | None = None
    log: DeltaLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = DeltaLog(self.store, "bank.accounts", FixedClock(seed=self.seed))

    def create(self, *files: Rows) -> Committed:
        self.store.make_folder(LOG_FOLDER)
        metadata = Metadata(self.log.clock.new_id(), SCHEMA.to_json())
        changes = Changes(
            Operation("CREATE TABLE"), tuple(map(self._write, files)), metadata=metadata, protocol=Protocol()
        )
        return transaction.commit(self.log, None, changes, ReadSet(), self._settings())

    def rows(self) -> dict[int, int]:
        """The table's rows, each id once."""
        return self._read(self.log.snapshot().add_files())

    def append(self, rows: Rows, txn: SetTransaction | None = None) -> Committed:
        base = self.log.snapshot()
        changes = Changes(Operation("WRITE"), (self._write(rows),), transactions=() if txn is None else (txn,))
        return transaction.commit(self.log, base, changes, ReadSet(), self._settings())

    def rewrite(self, predicate: Expression, change: Change, name: str = "UPDATE") -> Committed:
        """Changes the rows for which the predicate holds; a change to None deletes the row."""
        base = self.log.snapshot()
        candidates = base.add_files(skipping.prune(base, predicate))
        touched, written = [], []
        for add in candidates:
            before = self._read([add])
            after = {
                key: change(key, amount) if _holds(predicate, key, amount) else amount for key, amount in before.items()
            }
            if after != before:
                touched.append(add.remove(self.log.clock.now_ms()))
                written.append({key: amount for key, amount in after.items() if amount is not None})
        adds = tuple(self._write(rows) for rows in written if rows)
        reads = ReadSet((predicate,), frozenset(add.path for add in candidates))
        changes = Changes(Operation(name), adds, tuple(touched))
        return transaction.commit(self.log, base, changes, reads, self._settings())

    def insert_if(self, read: Expression, decide: Callable[[Rows], Rows | None]) -> Committed | None:
        """Inserts what is decided on by the rows for which `read` holds."""
        base = self.log.snapshot()
        candidates = base.add_files(skipping.prune(base, read))
        seen = {key: amount for key, amount in self._read(candidates).items() if _holds(read, key, amount)}
        new = decide(seen)
        if new is None:
            return None
        reads = ReadSet((read,), frozenset(add.path for add in candidates))
        changes = Changes(Operation("WRITE"), (self._write(new),))
        return transaction.commit(self.log, base, changes, reads, self._settings())

    def compact(self) -> Committed:
        """Puts all rows into one file."""
        base = self.log.snapshot()
        adds = base.add_files()
        new = self._write(self._read(adds), data_change=False)
        removes = tuple(add.remove(self.log.clock.now_ms(), data_change=False) for add in adds)
        reads = ReadSet(paths=frozenset(add.path for add in adds))
        return transaction.commit(
            self.log, base, Changes(Operation("OPTIMIZE"), (new,), removes), reads, self._settings()
        )

    def _settings(self) -> CommitSettings:
        return CommitSettings(self.level)

    def _write(self, rows: Rows, data_change: bool = True) -> AddFile:
        path = f"part-{self.log.clock.new_id()}.json.data"
        data = json.dumps(list(rows.items())).encode()
        self.store.put(path, data)
        low, high = min(rows), max(rows)
        stats = {"numRecords": len(rows), "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
        return AddFile(path, {}, len(data), self.log.clock.now_ms(), data_change, json.dumps(stats))

    def _read(self, adds: Iterable[AddFile]) -> dict[int, int]:
        found: dict[int, int] = {}
        for add in adds:
            for key, amount in json.loads(self.store.read(add.path)):
                assert key not in found, f"row {key} is there twice"
                found[key] = amount
        return found


def until_it_lands(statement: Callable[[], Committed | None]) -> Committed | None:
    """Runs the statement anew, on a new snapshot, after each conflict."""
    while True:
        try:
            return statement()
        except ConcurrentModificationError:
            continue


def _holds(predicate: Expression, key: int, amount: int) -> bool:
    return evaluate(predicate, {"id": key, "amount": amount}) is True
