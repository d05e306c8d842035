"""Writers of a parent and of its child, in many orders: no reader ever sees a row of the child without its parent.

The child and the parent have logs of their own, so each commit that could make an orphan must exclude the other
table's commits at the same moment (decision 0131).
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, ForeignKeyViolationError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication import foreign_keys
from dbt.adapters.silt.engine.kernel.publication.publication_tables import ExistingTable
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.expressions import Expression
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, key_properties
from dbt.adapters.silt.engine.kernel.transaction import commit as commits
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.conflicts import check_conflicts
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import Process
from tests.races.test_key_races import ids_of, stored
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.kernel.log_builder import new_log

PARENT, CHILD = "a", "b"
PRIMARY = Key(KeyKind.PRIMARY_KEY, ("id",), enforced=True)
VECTORS = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))
SEEDS = range(40)
Build = Callable[[Snapshot], Changes | None]


@dataclass
class Writer:
    """A process whose statements run again after a conflict, as the engine's do."""

    log: DeltaLog

    def insert(self, *ids: int) -> str:
        return self.run(lambda _: Changes(Operation("WRITE"), (self.file(ids),)))

    def delete(self, *ids: int, with_vectors: bool = False) -> str:
        def changes(base: Snapshot) -> Changes | None:
            touched = [(add, stored(self.log, add)) for add in base.add_files() if ids_of(self.log, add) & set(ids)]
            removes = tuple(add.remove(1) for add, _ in touched)
            if not touched:
                return None
            if with_vectors:
                gone = [BitMap64(at for at, row in enumerate(rows) if row in ids) for _, rows in touched]
                vectors = deletion_vectors.write(self.log.store, self.log.clock, gone)
                adds = [replace(add, deletion_vector=each) for (add, _), each in zip(touched, vectors, strict=True)]
            else:
                left = [sorted(ids_of(self.log, add) - set(ids)) for add, _ in touched]
                adds = [self.file(rows) for rows in left if rows]
            return Changes(Operation("DELETE"), tuple(adds), removes)

        return self.run(changes)

    def replace_all(self, *ids: int) -> str:
        """CREATE OR REPLACE TABLE with other rows."""

        def changes(base: Snapshot) -> Changes:
            kept = {name: text for name, text in base.metadata.configuration.items() if name.startswith("silt.const")}
            metadata = replace(base.metadata, configuration=kept)
            removes = tuple(add.remove(1) for add in base.add_files())
            return Changes(Operation("CREATE OR REPLACE TABLE"), (self.file(ids),), removes, metadata)

        return self.run(changes, ReadSet(whole_table=True))

    def reference(self, parent: Metadata) -> str:
        """ALTER TABLE ... ADD CONSTRAINT ... FOREIGN KEY."""
        key = Key(KeyKind.FOREIGN_KEY, ("id",), ("main", PARENT), ("id",), True, f"main/{PARENT}", parent.id)

        def changes(base: Snapshot) -> Changes:
            configuration = {**base.metadata.configuration, **key_properties({"fk": key})}
            return Changes(Operation("ADD CONSTRAINT"), metadata=replace(base.metadata, configuration=configuration))

        return self.run(changes, ReadSet(whole_table=True))

    def file(self, ids: Iterable[int]) -> AddFile:
        ids, sink = list(ids), io.BytesIO()
        pq.write_table(pa.table({"id": ids, "day": ["x"] * len(ids)}), sink)
        path = f"{self.log.clock.new_id()}.parquet"
        self.log.store.put(path, sink.getvalue())
        stats = f'{{"numRecords":{len(ids)},"minValues":{{"id":{min(ids)}}},"maxValues":{{"id":{max(ids)}}}}}'
        return AddFile(path, {}, len(sink.getvalue()), 1, stats=stats)

    def run(self, build: Build, reads: ReadSet | None = None) -> str:
        while True:
            base = self.log.snapshot()
            try:
                changes = build(base)
                if changes is None:
                    return "nothing to do"
                found = reads or ReadSet(paths=frozenset(each.path for each in changes.removes))
                commit(self.log, base, changes, found, CommitSettings())
            except ConcurrentModificationError:
                continue
            except ForeignKeyViolationError:
                return "refused"
            return "done"


def check(process: Process) -> None:
    """Fails if a row of the child in a consistent cut has no parent, and the child has the foreign key."""
    cut = {log.name: snapshot for log, snapshot in consistent_cut(process.logs.values()).items()}
    if "silt.constraints.fk" not in cut[CHILD].metadata.configuration:
        return
    parents, rows = (
        {row for add in cut[name].add_files() for row in ids_of(process.logs[name], add)} for name in (PARENT, CHILD)
    )
    assert rows <= parents, f"orphans {sorted(rows - parents)}: {cut[CHILD].version} of {cut[PARENT].version}"


def story(make: Callable[[], Store], seed: int) -> Counter[str]:
    """Four processes change the parent and the child at the same time, and a fifth reads both."""
    store, scheduler = make(), Scheduler()
    new_log(store.child(f"main/{PARENT}"), configuration=key_properties({"k": PRIMARY}), protocol=VECTORS)
    new_log(store.child(f"main/{CHILD}"), protocol=VECTORS)
    founder = Process(store, 9)
    for ids in ((1, 2, 3), (4, 5), (6, 7)):
        assert Writer(founder.logs[PARENT]).insert(*ids) == "done"
    assert Writer(founder.logs[CHILD]).insert(1) == "done"
    parent = founder.logs[PARENT].snapshot().metadata
    if seed % 4:
        assert Writer(founder.logs[CHILD]).reference(parent) == "done"
    processes = [Process(YieldingStore(store, scheduler, seed=seed), number) for number in range(5)]
    parents, children = ([Writer(each.logs[name]) for each in processes] for name in (PARENT, CHILD))

    def published() -> str:
        branch = processes[3].branch()
        Writer(branch[CHILD]).insert(*((6, 4) if seed % 2 else (8, 5)))
        Writer(branch[PARENT]).insert(8)
        Writer(branch[PARENT]).delete(7)
        try:
            publish(processes[3].register, list(branch.values()), settings=PublishSettings(isolation=OF_STATEMENTS))
        except ConcurrentModificationError:
            return "held"
        except ForeignKeyViolationError:
            return "refused"
        return "published"

    def read() -> Iterator[None]:
        for _ in range(6):
            check(processes[4])
            yield

    def as_child() -> list[str]:
        first = [] if seed % 4 else [children[0].reference(parent)]
        return [*first, children[0].insert(2, 4), children[0].insert(7)]

    tasks: tuple[Callable[[], str | list[str]], ...] = (
        as_child,
        lambda: [parents[1].delete(4, with_vectors=bool(seed % 2)), parents[1].delete(2, 6)],
        lambda: [children[2].insert(6), parents[2].replace_all(1, 2, 3, 4, 5) if seed % 3 == 0 else "nothing to do"],
        published,
        lambda: ["read" for _ in read()],
    )
    for each in (results := scheduler.run(tasks, random_order(seed))):
        if isinstance(each, BaseException):
            raise each
    check(founder)
    return Counter(word for each in results for word in ([each] if isinstance(each, str) else each))


STORES: dict[str, Callable[[], Store]] = {"folders": MemoryStore, "objects": MemoryObjectStore}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_no_reader_sees_a_row_without_its_parent_in_any_order(make: Callable[[], Store]) -> None:
    seen = sum((story(make, seed) for seed in SEEDS), Counter[str]())
    assert {"done", "refused", "published"} <= seen.keys(), seen


def checks_only_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Each table is checked against the other as it is now, and committed without it: write skew."""
    across = commits._committed_across

    def alone(log: DeltaLog, pending: PendingCommit, info: CommitInfo) -> int | None:
        if branch_of(log) is None and log.publications is not None:
            keys = foreign_keys.ForeignKeys(log.publications.log_of, log.publications.location_of)  # type: ignore[attr-defined]
            keys.checked([ExistingTable(log, pending, info)])
            return None if pending.changes.metadata is None else across(log, pending, info)
        return across(log, pending, info)

    patch.setattr(commits, "_committed_across", alone)


def forgets_what_it_has_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(foreign_keys._Side, "add_reads", lambda _side, _reads: None)


def ignores_children(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(foreign_keys.ForeignKeys, "_check_children", lambda _keys, _location, _side: None)


def ignores_parents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(foreign_keys.ForeignKeys, "_check_references", lambda _keys, _location, _side: None)


def looks_at_the_parent_before_the_transaction(patch: pytest.MonkeyPatch) -> None:
    """A transaction that removes parents is checked against what it has not yet changed."""
    kept = foreign_keys._Side._kept

    def with_removed(side: foreign_keys._Side, condition: Expression) -> list[AddFile]:
        return [*kept(side, condition), *([] if side.base is None else side.base.add_files())]

    patch.setattr(foreign_keys._Side, "_kept", with_removed)


def overlooks_conflicts_of_the_other_table(patch: pytest.MonkeyPatch) -> None:
    def of_changes(winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
        return check_conflicts(winner, pending) if pending.changes.actions() else pending

    patch.setattr("dbt.adapters.silt.engine.kernel.publication.publication_tables.check_conflicts", of_changes)


@pytest.mark.parametrize(
    "plant",
    [
        checks_only_before_the_commit,
        forgets_what_it_has_read,
        ignores_children,
        ignores_parents,
        looks_at_the_parent_before_the_transaction,
        overlooks_conflicts_of_the_other_table,
    ],
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="orphans"):
        for seed in range(200):
            story(MemoryStore, seed)
