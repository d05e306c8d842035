"""Writers of a table that references itself, in many orders: no version holds a row without its referenced row."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, ForeignKeyViolationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.publish import OF_STATEMENTS, PublishSettings, publish
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, key_properties
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.publication.tables import Process
from tests.races.test_foreign_key_races import (
    PRIMARY,
    VECTORS,
    Writer,
    forgets_what_it_has_read,
    ignores_children,
    ignores_parents,
)
from tests.races.test_key_races import ids_of
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.kernel.log_builder import METADATA, put

LONG = PrimitiveType("long")
COLUMNS = StructType((StructField("id", LONG), StructField("boss", LONG)))
BOSS = Key(KeyKind.FOREIGN_KEY, ("boss",), ("main", "a"), ("id",), enforced=True)


class Staff(Writer):
    """A writer of rows with a row above them."""

    def hire(self, *people: tuple[int, int]) -> str:
        return self.run(lambda _: Changes(Operation("WRITE"), (self.file_of(people),)))

    def file_of(self, people: Iterable[tuple[int, int]]) -> AddFile:
        ids, bosses = zip(*people, strict=True)
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": ids, "boss": bosses}), sink)
        path = f"{self.log.clock.new_id()}.parquet"
        self.log.store.put(path, sink.getvalue())
        return AddFile(path, {}, len(sink.getvalue()), 1, stats=f'{{"numRecords":{len(ids)}}}')


def check(log: DeltaLog) -> None:
    """Fails if a version holds a row without the row that it references."""
    for version in range(log.snapshot().version + 1):
        people: dict[int, int] = {}
        for add in log.snapshot_at(version).add_files():
            table = pq.read_table(io.BytesIO(log.store.read(add.path))).to_pylist()
            there = ids_of(log, add)
            people |= {row["id"]: row["boss"] for row in table if row["id"] in there}
        assert set(people.values()) <= people.keys(), f"version {version} has orphans: {people}"


def story(make: Callable[[], Store], seed: int) -> Counter[str]:
    """Three processes hire and dismiss at the same time, one of them in a transaction."""
    store, scheduler = make(), Scheduler()
    folder = store.child("main/a")
    folder.make_folder(LOG_FOLDER)
    keys = key_properties({"k": PRIMARY, "boss": BOSS})
    metadata = replace(METADATA, schema_string=COLUMNS.to_json(), configuration=keys)
    put(DeltaLog(folder, "a"), 0, CommitInfo(operation="CREATE TABLE"), VECTORS, metadata)
    founder = Process(store, 9)
    assert Staff(founder.logs["a"]).hire(*((number, number) for number in range(1, 6))) == "done"
    processes = [Process(YieldingStore(store, scheduler, seed=seed), number) for number in range(3)]
    one, two, _ = (Staff(each.logs["a"]) for each in processes)

    def together() -> list[str]:
        branch = processes[2].branch()["a"]
        Staff(branch).hire((20, 4 if seed % 2 else 1))
        Staff(branch).delete(3, with_vectors=True)
        try:
            publish(processes[2].register, [branch], settings=PublishSettings(isolation=OF_STATEMENTS))
        except ConcurrentModificationError:
            return ["held"]
        except ForeignKeyViolationError:
            return ["refused"]
        return ["published"]

    def dismiss() -> list[str]:
        return [two.delete(2, with_vectors=True), two.delete(4, with_vectors=True)]

    tasks = (lambda: [one.hire((10, 2), (11, 10)), one.hire((12, 3))], dismiss, together)
    results = scheduler.run(tasks, random_order(seed))
    for each in results:
        if isinstance(each, BaseException):
            raise each
    check(founder.logs["a"])
    return Counter(word for each in results if isinstance(each, list) for word in each)


@pytest.mark.parametrize("make", [MemoryStore, MemoryObjectStore], ids=["folders", "objects"])
def test_no_version_holds_a_row_without_the_row_that_it_references(make: Callable[[], Store]) -> None:
    seen = sum((story(make, seed) for seed in range(40)), Counter[str]())
    assert {"done", "refused", "published"} <= seen.keys(), seen


@pytest.mark.parametrize("plant", [forgets_what_it_has_read, ignores_children, ignores_parents])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="orphans"):
        for seed in range(200):
            story(MemoryStore, seed)
