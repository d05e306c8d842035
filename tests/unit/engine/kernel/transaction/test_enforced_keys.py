"""Enforced keys: no commit leaves two rows with the same key, whatever it changes and whoever commits first."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentKeyError,
    KeyViolationError,
    NotNullViolationError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.keys import (
    VERIFIED,
    Key,
    KeyKind,
    checked_keys,
    enforcement,
    key_properties,
    table_keys,
    unverified_since,
)
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.transaction import restore
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock
from tests.unit.engine.kernel.log_builder import PROTOCOL, put

LONG, STRING, DOUBLE = (PrimitiveType(name) for name in ("long", "string", "double"))
WITH_VECTORS = Protocol(3, 7, ("deletionVectors",), ("deletionVectors",))


@dataclass
class House:
    """A table in a folder, with an enforced key."""

    log: DeltaLog
    types: dict[str, DataType]
    files: list[AddFile] = field(default_factory=list)

    def file(self, rows: Sequence[tuple[Any, ...]], stats: bool = True, day: str | None = None) -> AddFile:
        """Writes a data file of these rows."""
        columns = dict(zip(self.types, zip(*rows, strict=True), strict=False))
        path = f"f{len(self.files)}.parquet"
        sink = io.BytesIO()
        pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), sink)
        self.log.store.put(path, sink.getvalue())
        text = f'{{"numRecords":{len(rows)}}}' if not stats else self._stats(columns, len(rows))
        values = {} if day is None else {"day": day}
        self.files.append(AddFile(path, values, len(sink.getvalue()), 1_600_000_000_000, stats=text))
        return self.files[-1]

    def _stats(self, columns: dict[str, tuple[Any, ...]], rows: int) -> str:
        ids = [value for value in columns["id"] if value is not None]
        if not ids or not isinstance(ids[0], int):
            return f'{{"numRecords":{rows}}}'
        return (
            f'{{"numRecords":{rows},"minValues":{{"id":{min(ids)}}},"maxValues":{{"id":{max(ids)}}},'
            f'"nullCount":{{"id":{rows - len(ids)}}}}}'
        )

    def append(self, *rows: tuple[Any, ...], **settings: Any) -> int:
        return self.commit("WRITE", adds=(self.file(rows),), **settings)

    def commit(self, operation: str, reads: ReadSet | None = None, **changes: Any) -> int:
        found = Changes(Operation(operation), **changes)
        return commit(self.log, self.log.snapshot(), found, reads or ReadSet(), CommitSettings()).version

    def by_another_engine(self, *rows: tuple[Any, ...]) -> AddFile:
        """Commits rows without looking at keys."""
        added = self.file(rows)
        put(self.log, self.log.snapshot().version + 1, CommitInfo(operation="WRITE", engine_info="other"), added)
        return added

    def active(self, path: str) -> AddFile:
        return next(each for each in self.log.snapshot().add_files() if each.path == path)

    def enforcement(self) -> str:
        snapshot = self.log.snapshot()
        (key,) = table_keys(snapshot.metadata.configuration).values()
        return enforcement(key, snapshot.transactions, snapshot.version)


@pytest.fixture
def folder(tmp_path: Any) -> str:
    return str(tmp_path)


def house(folder: str, key: Key | None, protocol: Protocol = PROTOCOL, isolation: str = "", **types: DataType) -> House:
    types = types or {"id": LONG, "note": STRING}
    schema = StructType(tuple(StructField(name, each) for name, each in types.items()))
    keys = {} if key is None else key_properties(checked_keys({"k": key}, schema, "main.t"))
    level = {"delta.isolationLevel": isolation} if isolation else {}
    metadata = Metadata("an-id", schema.to_json(), configuration={**keys, **level})
    log = DeltaLog(LocalStore(folder), "main.t", FixedClock())
    log.store.make_folder("_delta_log")
    creation = Changes(Operation("CREATE TABLE"), protocol=protocol, metadata=metadata)
    commit(log, None, creation, ReadSet(), CommitSettings())
    return House(log, types)


PRIMARY = Key(KeyKind.PRIMARY_KEY, ("id",), enforced=True)
UNIQUE = Key(KeyKind.UNIQUE, ("id",), enforced=True)


def test_a_key_that_the_table_has_is_refused_with_its_name_the_number_of_rows_and_examples(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append(*((n, "old") for n in range(10)))
    with pytest.raises(KeyViolationError, match=r"4 rows have the same key as another row under the enforced key `k`, P"
        r"RIMARY KEY \(`id`\) ENFORCED: \(`id` = 5\), \(`id` = 6\), \(`id` = 7\)") as caught:  # fmt: skip
        orders.append((5, "a"), (6, "b"), (7, "c"), (8, "d"), (10, "new"))
    assert caught.value.details["constraint"] == "k"
    assert (orders.log.snapshot().version, orders.enforcement()) == (1, "enforced")


@pytest.mark.parametrize("with_stats", [True, False])
def test_keys_beside_a_file_and_at_its_bounds_are_told_apart(folder: str, with_stats: bool) -> None:
    orders = house(folder, UNIQUE)
    orders.commit("WRITE", adds=(orders.file([(10, ""), (20, "")], with_stats),))
    orders.append((9, ""), (15, ""), (21, ""))
    for bound in (10, 20):
        with pytest.raises(KeyViolationError):
            orders.append((bound, ""))


def test_two_new_rows_with_the_same_key_are_refused_also_in_two_files_and_in_a_new_table(folder: str) -> None:
    orders = house(folder, UNIQUE)
    with pytest.raises(KeyViolationError, match="1 row has the same key"):
        orders.append((1, "a"), (2, "b"), (1, "c"))
    with pytest.raises(KeyViolationError):
        orders.commit("WRITE", adds=(orders.file([(1, "a")]), orders.file([(1, "b")])))
    created = Changes(
        Operation("CREATE TABLE AS SELECT"),
        adds=(orders.file([(1, "a"), (1, "b")]),),
        metadata=orders.log.snapshot().metadata,
        protocol=PROTOCOL,
    )
    other = DeltaLog(LocalStore(folder + "/other"), "main.o", FixedClock())
    with pytest.raises(KeyViolationError):
        other.store.make_folder("_delta_log")
        other.store.put("f3.parquet", orders.log.store.read("f3.parquet"))
        commit(other, None, created, ReadSet(), CommitSettings())


def test_a_unique_key_exempts_rows_with_a_null_and_a_primary_key_refuses_them(folder: str) -> None:
    many = house(folder + "/u", UNIQUE)
    many.append((None, "a"), (None, "b"), (1, "c"))
    many.append((None, "d"))
    none = house(folder + "/p", PRIMARY)
    with pytest.raises(NotNullViolationError, match="2 rows have a null in the enforced key `k`"):
        none.append((None, "a"), (None, "b"), (1, "c"))


def test_a_key_of_two_columns_compares_pairs_and_a_null_in_either_exempts(folder: str) -> None:
    key = Key(KeyKind.UNIQUE, ("id", "note"), enforced=True)
    orders = house(folder, key)
    orders.append((1, "a"), (1, "b"), (2, "a"), (None, "a"), (1, None))
    orders.append((2, "b"), (None, "a"), (1, None))
    with pytest.raises(KeyViolationError, match=r"\(`id` = 2, `note` = a\)"):
        orders.append((3, "a"), (2, "a"))


@pytest.mark.parametrize(
    ("kind", "first", "equal", "other"),
    [
        (DOUBLE, 0.0, -0.0, 1.0),
        (DOUBLE, float("nan"), float("nan"), 0.0),
        (PrimitiveType("float"), -0.0, 0.0, 2.0),
        (DecimalType(10, 2), Decimal("1.00"), Decimal("1.0"), Decimal("1.01")),
        (PrimitiveType("timestamp"), datetime(2020, 1, 1, 12, tzinfo=timezone.utc),
         datetime.fromisoformat("2020-01-01T14:00:00+02:00"), datetime(2020, 1, 1, 14, tzinfo=timezone.utc)),
        (PrimitiveType("boolean"), True, True, False),
        (PrimitiveType("binary"), b"\0a", b"\0a", b"\0b"),
        (STRING, "é", "é", "e\u0301"),
    ],
)  # fmt: skip
def test_values_are_equal_as_in_sql(folder: str, kind: DataType, first: Any, equal: Any, other: Any) -> None:
    table = house(folder, UNIQUE, id=kind)
    table.append((first,))
    table.append((other,))
    with pytest.raises(KeyViolationError):
        table.append((equal,))
    with pytest.raises(KeyViolationError):
        house(folder + "/new", UNIQUE, id=kind).append((first,), (equal,))


@pytest.mark.parametrize("kind", ["variant", "string collate UTF8_LCASE", "struct", "array", "map"])
def test_columns_whose_values_are_not_compared_are_refused_when_the_key_is_defined(kind: str) -> None:
    inner = StructType((StructField("x", LONG),))
    nested: dict[str, DataType] = {"struct": inner, "array": ArrayType(LONG), "map": MapType(STRING, LONG)}
    found = nested.get(kind, PrimitiveType(kind))
    schema = StructType((StructField("id", found),))
    with pytest.raises(UnsupportedStatementError, match="cannot be enforced: its column `id` has the type"):
        checked_keys({"k": PRIMARY}, schema, "main.t")
    assert checked_keys({"k": replace(PRIMARY, enforced=False)}, schema, "main.t")


def test_a_rewritten_file_may_keep_its_keys_but_not_take_those_of_another(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append((1, "a"), (5, "b"))
    orders.append((2, "c"), (6, "d"))
    old = orders.active("f0.parquet")
    orders.commit("UPDATE", adds=(orders.file([(1, "x"), (5, "y")]),), removes=(old.remove(0),))
    mine = orders.active("f2.parquet")
    with pytest.raises(KeyViolationError):
        orders.commit("UPDATE", adds=(orders.file([(1, "x"), (6, "y")]),), removes=(mine.remove(0),))
    orders.commit("UPDATE", adds=(orders.file([(7, "x"), (1, "y")]),), removes=(mine.remove(0),))


def test_a_deleted_row_frees_its_key_and_the_other_rows_of_its_file_keep_theirs(folder: str) -> None:
    orders = house(folder, PRIMARY, WITH_VECTORS)
    orders.append((1, "a"), (2, "b"), (3, "c"))
    old = orders.active("f0.parquet")
    (vector,) = deletion_vectors.write(orders.log.store, orders.log.clock, [BitMap64([1])])
    orders.commit("DELETE", adds=(replace(old, deletion_vector=vector),), removes=(old.remove(0),))
    with pytest.raises(KeyViolationError):
        orders.append((3, "again"))
    orders.append((2, "again"))


def test_an_update_by_a_vector_may_not_take_the_key_of_a_row_that_stays_in_the_same_file(folder: str) -> None:
    orders = house(folder, PRIMARY, WITH_VECTORS)
    orders.append((1, "a"), (2, "b"), (3, "c"))
    old = orders.active("f0.parquet")
    (vector,) = deletion_vectors.write(orders.log.store, orders.log.clock, [BitMap64([1])])
    marked = replace(old, deletion_vector=vector)
    with pytest.raises(KeyViolationError, match="`id` = 3"):
        orders.commit("UPDATE", adds=(marked, orders.file([(3, "b")])), removes=(old.remove(0),))
    orders.commit("UPDATE", adds=(marked, orders.file([(2, "b")])), removes=(old.remove(0),))


def test_a_moved_row_is_not_new_and_its_key_stays_taken(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append((1, "a"))
    orders.append((2, "b"))
    old = [orders.active("f0.parquet"), orders.active("f1.parquet")]
    moved = replace(orders.file([(1, "a"), (2, "b")]), data_change=False)
    orders.commit("OPTIMIZE", adds=(moved,), removes=tuple(replace(each.remove(0), data_change=False) for each in old))
    assert orders.enforcement() == "enforced"
    with pytest.raises(KeyViolationError):
        orders.append((2, "again"))


def test_a_new_rule_looks_at_all_rows_and_is_refused_if_two_share_a_key(folder: str) -> None:
    orders = house(folder, None)
    orders.append((1, "a"), (2, "b"))
    orders.append((2, "c"))
    metadata = orders.log.snapshot().metadata
    added = replace(metadata, configuration=key_properties({"k": PRIMARY}))
    with pytest.raises(KeyViolationError, match="`id` = 2"):
        orders.commit("ADD CONSTRAINT", reads=ReadSet(whole_table=True), metadata=added)
    orders.commit("DELETE", removes=(orders.active("f1.parquet").remove(0),))
    orders.commit("ADD CONSTRAINT", reads=ReadSet(whole_table=True), metadata=added)
    assert orders.enforcement() == "enforced"


@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable", "SnapshotIsolation"])
def test_of_two_writers_of_the_same_new_key_the_second_loses_under_every_level(folder: str, isolation: str) -> None:
    orders = house(folder, PRIMARY, isolation=isolation)
    base = orders.log.snapshot()
    orders.append((1, "first"), (2, "first"))
    second = Changes(Operation("WRITE"), adds=(orders.file([(2, "second"), (3, "second")]),))
    with pytest.raises(ConcurrentKeyError, match=r"added 1 of the keys .* under `k` too, such as \(`id` = 2\)"):
        commit(orders.log, base, second, ReadSet(), CommitSettings())
    with pytest.raises(KeyViolationError):  # as the statement that is run again
        commit(orders.log, orders.log.snapshot(), second, ReadSet(), CommitSettings())


def test_a_writer_of_other_keys_is_committed_after_the_winners_without_running_again(folder: str) -> None:
    orders = house(folder, PRIMARY, isolation=IsolationLevel.WRITE_SERIALIZABLE.value)
    base = orders.log.snapshot()
    for n in range(3):
        orders.append((n, "first"))
    second = Changes(Operation("WRITE"), adds=(orders.file([(5, "second")]),))
    assert commit(orders.log, base, second, ReadSet(), CommitSettings()).version == 4
    assert orders.enforcement() == "enforced"


def test_rows_of_another_engine_are_checked_once_and_until_then_the_key_is_unverified(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append((1, "a"))
    orders.by_another_engine((2, "b"))
    assert orders.enforcement() == "enforced, but unverified since version 2"
    orders.append((3, "c"))
    assert orders.enforcement() == "enforced"


def test_duplicates_of_another_engine_are_refused_until_a_delete_has_removed_them(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append((1, "a"))
    theirs = orders.by_another_engine((1, "b"))
    with pytest.raises(KeyViolationError, match="with the rows that other engines have added since version 2"):
        orders.append((3, "c"))
    metadata = orders.log.snapshot().metadata
    orders.commit("SET TBLPROPERTIES", metadata=replace(metadata, description="a note"))
    assert orders.enforcement() == "enforced, but unverified since version 2"
    orders.commit("DELETE", removes=(theirs.remove(0),))
    assert orders.enforcement() == "enforced"
    orders.append((3, "c"))


def test_after_another_engine_has_won_the_key_is_unverified_and_its_keys_are_still_compared(folder: str) -> None:
    orders = house(folder, PRIMARY)
    base = orders.log.snapshot()
    orders.by_another_engine((1, "b"))
    orders.append((7, "checked"))
    orders.by_another_engine((8, "b"))
    same, other = (Changes(Operation("WRITE"), adds=(orders.file([(n, "")]),)) for n in (8, 9))
    with pytest.raises(ConcurrentKeyError):
        commit(orders.log, base, same, ReadSet(), CommitSettings())
    commit(orders.log, base, other, ReadSet(), CommitSettings())
    assert orders.enforcement() == "enforced, but unverified since version 3"


def test_the_state_of_the_keys_survives_a_checkpoint_and_the_clean_up_of_the_log(folder: str) -> None:
    orders = house(folder, PRIMARY)
    for n in range(12):
        orders.append((n, "a"))
    for version in range(9):
        orders.log.store.delete(f"_delta_log/{version:020}.json")
    later = DeltaLog(orders.log.store, "main.t", orders.log.clock)
    assert unverified_since(later.snapshot().transactions, 12) is None
    with pytest.raises(KeyViolationError):
        commit(
            later,
            later.snapshot(),
            Changes(Operation("WRITE"), adds=(orders.file([(0, "")]),)),
            ReadSet(),
            CommitSettings(),
        )


def test_if_the_commits_of_other_engines_are_gone_all_rows_are_checked(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append((1, "a"))
    for n in range(2, 12):
        orders.by_another_engine((n, "b"))
        orders.log.after_commit(n)
    orders.by_another_engine((1, "duplicate"))
    for version in range(9):
        orders.log.store.delete(f"_delta_log/{version:020}.json")
    later = House(DeltaLog(orders.log.store, "main.t", orders.log.clock), orders.types, orders.files)
    with pytest.raises(KeyViolationError):
        later.append((100, "c"))


def test_a_restored_row_is_compared_with_the_rows_that_stay(folder: str) -> None:
    orders = house(folder, PRIMARY)
    orders.append((1, "a"))
    orders.commit("DELETE", removes=(orders.active("f0.parquet").remove(0),))
    orders.append((1, "b"))
    prepared = restore.prepare(orders.log, orders.log.snapshot(), restore.RestorePoint(1))
    restore.commit(orders.log, prepared, CommitSettings())
    assert orders.enforcement() == "enforced"
    with pytest.raises(KeyViolationError):
        orders.append((1, "c"))


def test_the_statement_of_another_program_about_the_keys_is_not_believed(folder: str) -> None:
    orders = house(folder, PRIMARY)
    lie = SetTransaction(VERIFIED, 99)
    orders.commit("WRITE", adds=(orders.file([(1, "a")]),), transactions=(lie,))
    assert orders.log.snapshot().transactions[VERIFIED].version == 1
    orders.by_another_engine((1, "b"))
    put(orders.log, 3, CommitInfo(operation="WRITE"), lie)
    with pytest.raises(KeyViolationError):
        orders.append((2, "c"))


def test_the_error_names_the_logical_run(folder: str) -> None:
    orders = house(folder, PRIMARY)
    facts = CommitSettings(commit_info={"dbt": {"runId": "monday"}})
    doubled = Changes(Operation("WRITE"), adds=(orders.file([(1, "a"), (1, "b")]),))
    with pytest.raises(KeyViolationError, match=r"\(`id` = 1\), in the run monday") as caught:
        commit(orders.log, orders.log.snapshot(), doubled, ReadSet(), facts)
    assert caught.value.details["run_id"] == "monday"
