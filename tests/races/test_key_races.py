"""Writers of overlapping keys, publications and another engine, in many orders: no version ever holds a key twice.

The history of the table is checked version by version, and each writer that was told that its rows are committed finds
them at that version.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, KeyViolationError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication import publication_tables
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.rows.key_rows import KeyReader, KeyRows
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Protocol
from dbt.adapters.silt.engine.kernel.table.expressions import Expression
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, key_properties, unverified_since
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction import enforced_keys, key_files
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.enforced_keys import NewKeys
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import NAMES, Process
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.kernel.log_builder import new_log

KEY = Key(KeyKind.PRIMARY_KEY, ("id",), enforced=True)
VECTORS = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
SEEDS = range(40)


@dataclass
class Writer:
    """A process whose statements run again after a conflict, as the engine's do."""

    log: DeltaLog
    told: list[tuple[int, frozenset[int]]] = field(default_factory=list)

    def insert(self, *ids: int) -> str:
        return self._until_done(lambda base: Changes(Operation("WRITE"), (self.file(ids),)), ids)

    def upsert(self, *ids: int) -> str:
        """MERGE by the key: rows that are there are written again, the other rows are inserted."""

        def changes(base: Snapshot) -> Changes:
            found = [(add, ids_of(self.log, add)) for add in base.add_files()]
            touched = [(add, rows) for add, rows in found if rows & set(ids)]
            rows = set(ids).union(*(each for _, each in touched))
            removes = tuple(add.remove(1) for add, _ in touched)
            return Changes(Operation("MERGE"), (self.file(sorted(rows)),), removes)

        return self._until_done(changes, ids)

    def renumber(self, old: int, new: int) -> str:
        """UPDATE by a deletion vector: the row `old` becomes the row `new`."""

        def changes(base: Snapshot) -> Changes | None:
            for add in base.add_files():
                rows = stored(self.log, add)
                if old in ids_of(self.log, add) and add.deletion_vector is None:
                    (vector,) = deletion_vectors.write(self.log.store, self.log.clock, [BitMap64([rows.index(old)])])
                    marked = replace(add, deletion_vector=vector)
                    return Changes(Operation("UPDATE"), (marked, self.file([new])), (add.remove(1),))
            return None

        return self._until_done(changes, (new,))

    def optimize(self) -> str:
        def changes(base: Snapshot) -> Changes | None:
            found = base.add_files()
            rows = sorted(row for add in found for row in ids_of(self.log, add))
            if not rows:
                return None
            moved = replace(self.file(rows), data_change=False)
            return Changes(Operation("OPTIMIZE"), (moved,), tuple(add.remove(1, data_change=False) for add in found))

        return self._until_done(changes, ())

    def file(self, ids: Iterable[int]) -> AddFile:
        ids, sink = list(ids), io.BytesIO()
        pq.write_table(pa.table({"id": ids, "day": ["x"] * len(ids)}), sink)
        path = f"{self.log.clock.new_id()}.parquet"
        self.log.store.put(path, sink.getvalue())
        stats = f'{{"numRecords":{len(ids)},"minValues":{{"id":{min(ids)}}},"maxValues":{{"id":{max(ids)}}}}}'
        return AddFile(path, {}, len(sink.getvalue()), 1, stats=stats)

    def _until_done(self, build: Callable[[Snapshot], Changes | None], ids: Iterable[int]) -> str:
        while True:
            base = self.log.snapshot()
            try:
                changes = build(base)
                if changes is None:
                    return "nothing to do"
                reads = ReadSet(paths=frozenset(each.path for each in changes.removes))
                version = commit(self.log, base, changes, reads, CommitSettings()).version
            except ConcurrentModificationError:
                continue
            except KeyViolationError:
                return "refused"
            self.told.append((version, frozenset(ids)))
            return "done"


def stored(log: DeltaLog, add: AddFile) -> list[int]:
    found: list[int] = pq.read_table(io.BytesIO(log.store.read(add.path)))["id"].to_pylist()
    return found


def ids_of(log: DeltaLog, add: AddFile) -> set[int]:
    vector = add.deletion_vector
    gone = set() if vector is None else set(deletion_vectors.read(log.store, [vector], "t")[vector.unique_id])
    return {row for at, row in enumerate(stored(log, add)) if at not in gone}


def rows(log: DeltaLog, version: int) -> Counter[int]:
    return Counter(row for add in log.snapshot_at(version).add_files() for row in ids_of(log, add))


def check(store: Store, writers: Iterable[Writer]) -> None:
    """Fails if a version holds a key twice, or lacks rows that its writer was told are committed."""
    log = DeltaLog(store.child("main/a"), "a")
    newest = log.snapshot()
    versions = {version: rows(log, version) for version in range(newest.version + 1)}
    for version, found in versions.items():
        assert max(found.values(), default=1) == 1, f"version {version} holds {found}"
    for writer in writers:
        for version, ids in writer.told:
            assert ids <= versions[version].keys()
    assert unverified_since(newest.transactions, newest.version) is None


def story(make: Callable[[], Store], seed: int) -> Counter[str]:
    """Four processes change keys at the same time, one of them on a branch that it publishes."""
    store, scheduler = make(), Scheduler()
    for name in NAMES:
        new_log(store.child(f"main/{name}"), configuration=key_properties({"k": KEY}), protocol=VECTORS)
    founder = Writer(Process(store, 9).logs["a"])
    founder.insert(1, 2, 3)
    founder.insert(10, 20)
    founder.insert(0, 9)
    processes = [Process(YieldingStore(store, scheduler, seed=seed), number) for number in range(4)]
    writers = [Writer(process.logs["a"]) for process in processes]

    def published() -> str:
        branch = processes[3].branch()
        Writer(branch["a"]).insert(5 if seed % 2 else 7, 30)
        Writer(branch["b"]).insert(5)
        try:
            publish(processes[3].register, list(branch.values()), settings=PublishSettings(isolation=OF_STATEMENTS))
        except ConcurrentModificationError:
            return "held"
        return "published"

    tasks = (
        lambda: [writers[0].insert(4, 5), writers[0].upsert(6, 3)],
        lambda: [writers[1].upsert(5, 6, 15), writers[1].insert(4)],
        lambda: [writers[2].renumber(20, 10), writers[2].renumber(20, 6), writers[2].optimize()],
        published,
    )
    results = scheduler.run(tasks, random_order(seed))
    for each in results:
        if isinstance(each, BaseException):
            raise each
    check(store, [founder, *writers])
    return Counter(word for each in results for word in ([each] if isinstance(each, str) else each))


STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_no_version_holds_a_key_twice_in_any_order(make: Callable[[], Store]) -> None:
    seen = sum((story(make, seed) for seed in SEEDS), Counter[str]())
    assert {"done", "refused", "held", "published"} <= seen.keys(), seen


def ignores_winners(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NewKeys, "checked", lambda _keys, _winner, pending: pending)


def ignores_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(enforced_keys.KeyFiles, "others_with", lambda _files, _rows: [])  # type: ignore[attr-defined]


def publishes_without_comparing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publication_tables, "with_keys_to_publish", lambda _log, _base, changes: changes)


def excludes_the_greatest_key(patch: pytest.MonkeyPatch) -> None:
    """The filter of files is wrong by one."""
    one_of = KeyRows.one_of

    def less(rows: KeyRows, schema: StructType) -> Expression:
        return one_of(KeyRows(rows.values.sort_by("id").slice(0, rows.values.num_rows - 1)), schema)

    patch.setattr(KeyRows, "one_of", less)


def forgets_the_rest_of_a_file(patch: pytest.MonkeyPatch) -> None:
    """A file that an update marks by a vector counts as removed with all its rows."""
    found = key_files.new_and_kept
    patch.setattr(key_files, "new_and_kept", lambda log, changes: (found(log, changes)[0], ()))


def reads_the_first_batch(patch: pytest.MonkeyPatch) -> None:
    matching = KeyReader.matching
    patch.setattr(KeyReader, "matching", lambda reader, files, sought: matching(reader, files[:1], sought))


@pytest.mark.parametrize(
    "plant",
    [
        ignores_winners,
        ignores_the_snapshot,
        publishes_without_comparing,
        excludes_the_greatest_key,
        forgets_the_rest_of_a_file,
        reads_the_first_batch,
    ],
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="holds"):
        for seed in SEEDS:
            story(MemoryStore, seed)
