"""A table of small JSON files, with statements in Python on top of the kernel's real commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression, evaluate
from dbt.adapters.silt.engine.kernel.table.features import needed_features, protocol_for, upgraded
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import commit
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult, CommitSettings
from tests.fixed_clock import FixedClock

SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("amount", PrimitiveType("long"))))
ALL = slice(None)
Rows = Mapping[int, int]
Change = Callable[[int, int], int | None]
DELETED, VECTOR_FILE = "deleted", "vector"
"""The tags of a file with a deletion vector: the positions that it should delete, and the name of its file."""


class RowTwice(Exception):
    """Two files of one version contain the same row."""


@dataclass
class RowsTable:
    """The statements, on one open table."""

    log: DeltaLog
    settings: CommitSettings = field(default_factory=CommitSettings)

    def create(self, *files: Rows, configuration: Mapping[str, str] | None = None) -> CommitResult:
        """Creates version 0 in an existing folder."""
        configuration = configuration or {}
        metadata = Metadata(self.log.clock.new_id(), SCHEMA.to_json(), configuration=configuration)
        adds = tuple(map(self.write, files))
        protocol = protocol_for(SCHEMA, configuration)
        changes = Changes(Operation("CREATE TABLE"), adds, metadata=metadata, protocol=protocol)
        return self.commit_on(None, changes, ReadSet())

    def snapshot(self) -> Snapshot:
        """Returns the newest snapshot, on which a statement is based."""
        return self.log.snapshot()

    def rows(self, snapshot: Snapshot | None = None) -> dict[int, int]:
        """Returns the rows of a snapshot, by default the newest; each id occurs once."""
        return self.read((snapshot or self.log.snapshot()).add_files())

    def append(self, rows: Rows, txn: SetTransaction | None = None) -> CommitResult:
        base = self.snapshot()
        changes = Changes(Operation("WRITE"), (self.write(rows),), transactions=() if txn is None else (txn,))
        return self.commit_on(base, changes, ReadSet())

    def rewrite(self, predicate: Expression, change: Change, name: str = "UPDATE") -> CommitResult:
        """Changes the rows for which the predicate holds; a change to None deletes the row."""

        def changed(rows: Rows) -> Rows:
            after = {key: change(key, amount) for key, amount in rows.items()}
            return {key: amount for key, amount in after.items() if amount is not None}

        return self.rewrite_all(predicate, changed, name)

    def rewrite_all(
        self, predicate: Expression, change: Callable[[Rows], Rows], name: str, txn: SetTransaction | None = None
    ) -> CommitResult:
        """Changes the rows for which the predicate holds together; rows that the result lacks are deleted."""
        base = self.snapshot()
        files = [(add, self.read([add])) for add in base.add_files(skipping.prune(base, predicate))]
        chosen = {key: amount for _, rows in files for key, amount in rows.items() if _holds(predicate, key, amount)}
        after = change(chosen)
        removes, adds = [], []
        for add, rows in files:
            new = {key: after.get(key, amount) for key, amount in rows.items() if key not in chosen or key in after}
            if new != rows:
                removes.append(add.remove(self.log.clock.now_ms()))
                adds += self._changed(base, add, rows, new)
        reads = ReadSet((predicate,), frozenset(add.path for add, _ in files), whole_table=predicate == TRUE)
        transactions = () if txn is None else (txn,)
        changes = Changes(Operation(name), tuple(adds), tuple(removes), transactions=transactions)
        return self.commit_on(base, changes, reads)

    def insert_if(
        self, read: Expression, decide: Callable[[Rows], Rows | None], txn: SetTransaction | None = None
    ) -> CommitResult | None:
        """Inserts rows that depend on the rows for which `read` holds."""
        base = self.snapshot()
        candidates = base.add_files(skipping.prune(base, read))
        seen = {key: amount for key, amount in self.read(candidates).items() if _holds(read, key, amount)}
        new = decide(seen)
        if new is None:
            return None
        reads = ReadSet((read,), frozenset(add.path for add in candidates))
        transactions = () if txn is None else (txn,)
        return self.commit_on(base, Changes(Operation("WRITE"), (self.write(new),), transactions=transactions), reads)

    def compact(self, files: slice = ALL) -> CommitResult | None:
        """Moves the rows of the files into one file."""
        base = self.snapshot()
        adds = base.add_files()[files]
        rows = self.read(adds)
        if not rows:
            return None
        new = self.write(rows, data_change=False)
        removes = tuple(add.remove(self.log.clock.now_ms(), data_change=False) for add in adds)
        reads = ReadSet(paths=frozenset(add.path for add in adds))
        return self.commit_on(base, Changes(Operation("OPTIMIZE"), (new,), removes), reads)

    def set_property(self, name: str, value: Callable[[Rows], str] | str) -> CommitResult:
        """Sets a property of the table; a function as its value is called with the rows."""
        base = self.snapshot()
        found = value if isinstance(value, str) else value(self.rows(base))
        metadata = replace(base.metadata, configuration={**base.metadata.configuration, name: found})
        reads = ReadSet(whole_table=not isinstance(value, str))
        return self.commit_on(base, Changes(Operation("SET TBLPROPERTIES"), metadata=metadata), reads)

    def turn_on(self, key: str, value: str) -> CommitResult:
        """Turns on a table feature by its property."""
        base = self.snapshot()
        metadata = replace(base.metadata, configuration={**base.metadata.configuration, key: value})
        protocol = upgraded(base.protocol, needed_features(SCHEMA, metadata.configuration))
        changes = Changes(
            Operation("SET TBLPROPERTIES"),
            metadata=metadata,
            protocol=None if protocol == base.protocol else protocol,
        )
        return self.commit_on(base, changes, ReadSet())

    def _changed(self, base: Snapshot, add: AddFile, old: Rows, new: Rows) -> list[AddFile]:
        """Returns the files that replace a file: itself with a deletion vector, if the table has them."""
        if not new:
            return []
        if not base.properties.enable_deletion_vectors or not (old.items() & new.items()):
            return [self.write(new)]
        changed = {key: amount for key, amount in new.items() if old.get(key) != amount}
        kept = new.keys() - changed.keys()
        content = json.loads(self.log.store.read(add.path))
        positions = [position for position, (key, _) in enumerate(content) if key not in kept]
        (vector,) = deletion_vectors.write(self.log.store, self.log.clock, [BitMap64(positions)])
        tags = {DELETED: json.dumps(positions), VECTOR_FILE: deletion_vectors.file_name(vector)}
        marked = replace(add, deletion_vector=vector, data_change=True, tags=tags)
        return [marked, *([self.write(changed)] if changed else [])]

    def has_written(self) -> None:
        """Is called when the files of a statement are written, before its commit."""

    def commit_on(self, base: Snapshot | None, changes: Changes, reads: ReadSet) -> CommitResult:
        """Commits the changes of a statement that is based on a snapshot."""
        self.has_written()
        return commit.commit(self.log, base, changes, reads, self.settings)

    def write(self, rows: Rows, data_change: bool = True, **layout: Any) -> AddFile:
        """Writes a file.

        Args:
            layout: further fields of its action.
        """
        path = f"part-{self.log.clock.new_id()}.json.data"
        data = json.dumps(list(rows.items())).encode()
        self.log.store.put(path, data)
        low, high = min(rows), max(rows)
        stats = {"numRecords": len(rows), "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
        return AddFile(path, {}, len(data), self.log.clock.now_ms(), data_change, json.dumps(stats), **layout)

    def read(self, adds: Iterable[AddFile]) -> dict[int, int]:
        """Reads the rows of files, without those that deletion vectors delete."""
        found: dict[int, int] = {}
        adds = list(adds)
        vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
        deleted = deletion_vectors.read(self.log.store, vectors, self.log.name) if vectors else {}
        for add in adds:
            positions = () if add.deletion_vector is None else deleted[add.deletion_vector.unique_id]
            for position, (key, amount) in enumerate(json.loads(self.log.store.read(add.path))):
                if position in positions:
                    continue
                if key in found:
                    raise RowTwice(f"row {key} is there twice")
                found[key] = amount
        return found


class Writer(RowsTable):
    """One process: its own handle of the table in a store's root, its own clock.

    Args:
        seed: of the clock, which also gives the ids.
        level: of the statements; None means that of the table.
    """

    def __init__(self, store: Store, seed: int, level: IsolationLevel | None = None) -> None:
        super().__init__(DeltaLog(store, "bank.accounts", FixedClock(seed=seed)), CommitSettings(level))
        self.seed = seed

    def create(self, *files: Rows, configuration: Mapping[str, str] | None = None) -> CommitResult:
        self.log.store.make_folder(LOG_FOLDER)
        return super().create(*files, configuration=configuration)


def until_it_lands(statement: Callable[[], CommitResult | None]) -> CommitResult | None:
    """Runs the statement again, on a new snapshot, after each conflict."""
    while True:
        try:
            return statement()
        except ConcurrentModificationError:
            continue


def _holds(predicate: Expression, key: int, amount: int) -> bool:
    return evaluate(predicate, {"id": key, "amount": amount}) is True
