"""Statements of a transaction that move, restore or clone files, and tables that track their rows."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dbt.adapters.silt.engine.builds.origins import Origin, origin_of
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile
from tests.unit.engine.house import House, other_rows
from tests.unit.engine.statements.execute.test_row_ids import ids

TRACKED = "tblproperties ('delta.enableRowTracking' = 'true')"


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table totals as select 'all' as name, 30 as amount")
    house.sql("create table orders (id int, amount int)")
    for number in (1, 2, 3):
        house.sql(f"insert into orders values ({number}, {number * 10})")
    return house


def flags(house: House, version: int) -> set[tuple[str, bool]]:
    """The kinds of files in a commit of `orders`, with their `dataChange`."""
    (found,) = [each for each in house.log("orders").commits(version) if each.version == version]
    kinds = {AddFile: "add", RemoveFile: "remove"}
    return {(kinds[type(each)], each.data_change) for each in found.actions if isinstance(each, (AddFile, RemoveFile))}


def changes(house: House, after: int) -> list[tuple[object, ...]]:
    """The changes of `orders` after a version, as a reader of changes sees them."""
    return house.rows(f"select id, amount, _change_type from silt_changes('main.orders', after => {after})")


def test_optimize_alone_changes_no_row(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("optimize orders")
        together.sql("update totals set amount = 60")
        assert shop.log("orders").snapshot().num_files == 3
    assert shop.log("orders").snapshot().num_files == 1
    assert flags(shop, 4) == {("add", False), ("remove", False)}
    assert changes(shop, 3) == []
    assert shop.rows("select * from orders") == other_rows(shop, "orders") == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("order", [("change", "optimize"), ("optimize", "change"), ("change", "optimize", "change")])
@pytest.mark.parametrize("vectors", [False, True])
def test_readers_of_changes_see_what_the_transaction_changed_beside_optimize(
    shop: House, order: tuple[str, ...], vectors: bool
) -> None:
    shop.sql(f"alter table orders set tblproperties ('delta.enableDeletionVectors' = {str(vectors).lower()})")
    statements = iter(["update orders set amount = 0 where id = 1", "delete from orders where id = 2"])
    base = shop.log("orders").snapshot().version
    with shop.warehouse.transaction() as together:
        for each in order:
            together.sql("insert into orders values (4, 40)") if each == "change" else together.sql("optimize orders")
            if each == "change":
                together.sql(next(statements))
        together.sql("insert into totals values ('new', 5)")
    added = order.count("change")
    expected = {(1, 10): -1, (1, 0): 1, (4, 40): added, **({(2, 20): -1} if added == 2 else {})}
    assert net(changes(shop, base)) == expected
    rows = [(1, 0), *([] if added == 2 else [(2, 20)]), (3, 30), *[(4, 40)] * added]
    assert shop.rows("select * from orders") == rows
    assert vectors or other_rows(shop, "orders") == rows


def test_optimize_of_rows_that_another_writer_changes_meanwhile_applies_nothing(shop: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("optimize orders")
        together.sql("update totals set amount = 60")
        shop.another().sql("delete from orders where id = 1")
    assert shop.rows("select * from totals") == [("all", 30)]
    assert shop.rows("select id from orders") == [(2,), (3,)]


def test_rows_that_a_transaction_has_read_are_checked_if_it_only_optimizes_their_table(shop: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("optimize orders")
        together.sql("update totals set amount = (select sum(amount) from orders)")
        shop.another().sql("insert into orders values (4, 40)")
    assert shop.rows("select * from totals") == [("all", 30)]


def test_a_table_that_records_its_changes_is_optimized_before_and_after_its_rows_change(shop: House) -> None:
    shop.sql("alter table orders set tblproperties ('delta.enableChangeDataFeed' = true)")
    with shop.warehouse.transaction() as together:
        together.sql("optimize orders")
        together.sql("update orders set amount = 11 where id = 1")
        together.sql("insert into orders select 4, 40 where false")
        together.sql("optimize orders")
    feed = shop.rows("select _change_type, amount from table_changes('orders', 5)")
    assert feed == [("update_postimage", 11), ("update_preimage", 10)]


STATEMENTS = (
    "insert into orders values ({0}, {1})",
    "insert into orders values ({0}, {1}), ({1}, {0})",
    "update orders set amount = amount + 1 where id = {0}",
    "update orders set id = {1} where id = {0}",
    "delete from orders where id = {0}",
    "insert into orders replace where id = {0} values ({0}, {1})",
    "merge into orders using (select {0} as id, {1} as amount) s on orders.id = s.id "
    "when matched then update set * when not matched then insert *",
    "optimize orders",
)


@pytest.mark.in_folders("delta-rs reads a copy: it finds no changes in a folder whose name has a `%`")
@pytest.mark.parametrize("seed", range(4))
def test_the_changes_of_several_statements_lead_from_a_version_to_the_next(
    house: House, seed: int, tmp_path: Path
) -> None:
    chance, shop = random.Random(seed), house
    vectors, tracked = (str(chance.random() < 0.5).lower() for _ in range(2))
    shop.sql(
        "create table orders (id int, amount int) tblproperties ('delta.enableChangeDataFeed' = true, "
        f"'delta.enableDeletionVectors' = {vectors}, 'delta.enableRowTracking' = {tracked})"
    )
    shop.sql("insert into orders values (1, 10), (2, 20)")
    shop.sql("insert into orders values (3, 30), (3, 30)")
    before = Counter(shop.rows("select * from orders"))
    base = shop.log("orders").snapshot().version
    with shop.warehouse.transaction() as together:
        for _ in range(chance.randint(2, 5)):
            together.sql(chance.choice(STATEMENTS).format(chance.randint(1, 4), chance.randint(1, 4)))
    assert shop.log("orders").snapshot().version <= base + 1
    after = Counter(shop.rows("select * from orders"))
    if shop.log("orders").snapshot().version > base:
        feed = shop.rows(f"select id, amount, _change_type from table_changes('orders', {base + 1})")
        assert net(feed) == difference(before, after)
        if vectors == "false":  # delta-rs does not read the changes of tables with deletion vectors
            copied = shutil.copytree(shop.root / "main" / "orders", tmp_path / "orders")
            recorded = pa.table(DeltaTable(copied).load_cdf(base + 1).read_all())
            rows = recorded.select(["id", "amount", "_change_type"]).to_pylist()
            assert net(tuple(row.values()) for row in rows) == difference(before, after)
    assert net(changes(shop, base)) == difference(before, after)


def net(feed: Iterable[tuple[object, ...]]) -> dict[tuple[object, ...], int]:
    """Counts the inserts less the deletes of each row, for rows whose counts differ."""
    found: Counter[tuple[object, ...]] = Counter()
    for *row, kind in feed:
        found[tuple(row)] += 1 if kind in ("insert", "update_postimage") else -1
    return {row: count for row, count in found.items() if count}


def difference(
    before: Mapping[tuple[object, ...], int], after: Mapping[tuple[object, ...], int]
) -> dict[tuple[object, ...], int]:
    counts = {row: after.get(row, 0) - before.get(row, 0) for row in {*before, *after}}
    return {row: count for row, count in counts.items() if count}


def test_an_append_only_table_is_optimized_before_rows_are_added(shop: House) -> None:
    shop.sql("alter table orders set tblproperties ('delta.appendOnly' = true)")
    with shop.warehouse.transaction() as together:
        together.sql("optimize orders")
        together.sql("insert into orders values (4, 40)")
        with pytest.raises(errors.UnsupportedStatementError, match="appendOnly"):
            together.sql("optimize orders")
    assert (len(shop.rows("select * from orders")), shop.log("orders").snapshot().num_files) == (4, 2)


def test_a_restored_version_is_published_with_what_follows(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("delete from orders")
        together.sql("restore table orders to version as of 2")
        together.sql("insert into orders values (9, 90)")
        together.sql("update totals set amount = (select sum(amount) from orders)")
    assert shop.rows("select * from orders") == other_rows(shop, "orders") == [(1, 10), (2, 20), (9, 90)]
    assert shop.rows("select amount from totals") == [(120,)]


@pytest.mark.parametrize("vectors", [False, True])
def test_files_that_a_dropped_transaction_restored_stay(shop: House, vectors: bool) -> None:
    shop.sql(f"alter table orders set tblproperties ('delta.enableDeletionVectors' = {str(vectors).lower()})")
    shop.sql("insert into orders select id, 0 from range(10, 2000)")
    shop.sql("delete from orders")
    newest, files = shop.log("orders").snapshot().version, set(shop.root.rglob("*.parquet"))
    shop.sql("begin")
    shop.sql(f"restore table orders to version as of {newest - 1}")
    shop.sql("delete from orders where id = 11")
    shop.sql("rollback")
    assert set(shop.root.rglob("*.parquet")) == files
    assert len(shop.rows(f"select * from orders version as of {newest - 1}")) == 1993


def test_rows_that_another_writer_appends_while_a_version_is_restored_are_a_conflict(shop: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("restore table orders to version as of 1")
        together.sql("update totals set amount = 10")
        shop.another().sql("insert into orders values (4, 40)")
    assert len(shop.rows("select * from orders")) == 4


def test_files_that_vacuum_may_delete_are_not_restored(shop: House) -> None:
    shop.sql("delete from orders where id = 1")
    shop.sql("alter table orders set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    with shop.warehouse.transaction() as together:
        with pytest.raises(errors.UnsupportedStatementError, match="deletedFileRetentionDuration"):
            together.sql("restore table orders to version as of 3")
        together.sql("update totals set amount = 10")
    assert shop.rows("select amount from totals") == [(10,)]


@pytest.mark.parametrize("kind", ["shallow", "deep"])
def test_a_clone_has_its_name_at_the_end_and_begins_with_the_rows_of_the_transaction(shop: House, kind: str) -> None:
    other = shop.another()
    with shop.warehouse.transaction() as together:
        together.sql("delete from orders where id = 1")
        together.sql(f"create table copied {kind} clone orders")
        together.sql("insert into copied values (8, 80)")
        together.sql(f"create or replace table totals {kind} clone orders")
        with pytest.raises(errors.RelationNotFoundError):
            other.rows("select * from copied")
    for house in (shop, other):
        assert house.rows("select * from copied") == [(2, 20), (3, 30), (8, 80)]
        assert house.rows("select * from totals") == [(2, 20), (3, 30)]
    assert kind == "shallow" or other_rows(shop, "copied") == [(2, 20), (3, 30), (8, 80)]


def origin(house: House, table: str) -> Origin:
    """The table and version whose rows a table has, as its log says."""
    found = house.log(table).snapshot()
    return origin_of(house.log(table), found.metadata.id, found.version)


@pytest.mark.parametrize("kind", ["shallow", "deep"])
def test_a_published_clone_names_the_published_version_of_its_source(shop: House, kind: str) -> None:
    base = shop.log("orders").snapshot()
    with shop.warehouse.transaction() as together:
        together.sql(f"create table before {kind} clone orders")
        together.sql("delete from orders where id = 1")
        together.sql(f"create table within {kind} clone orders")
        together.sql("delete from orders where id = 2")
        together.sql(f"create table after {kind} clone orders")
    assert origin(shop, "before") == Origin(base.metadata.id, base.version, base.content)
    assert origin(shop, "within").table_id == shop.log("within").snapshot().metadata.id, (
        "no published version has its rows"
    )
    published = shop.log("orders").snapshot()
    assert origin(shop, "after") == Origin(base.metadata.id, base.version + 1, published.content)


@pytest.mark.parametrize("change", ["update copied set amount = 0", "insert into copied values (8, 80)"])
def test_a_clone_that_the_transaction_changes_is_its_own_origin(shop: House, change: str) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("create table copied deep clone orders")
        together.sql(change)
        together.sql("update totals set amount = 60")
    assert origin(shop, "copied").table_id == shop.log("copied").snapshot().metadata.id


def test_the_source_of_a_clone_must_not_change(shop: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("create table copied shallow clone orders")
        together.sql("update totals set amount = 60")
        shop.another().sql("insert into orders values (4, 40)")
    assert shop.warehouse.catalog.find(RelationName("silt", "main", "copied")) is None


@pytest.mark.parametrize("vectors", [False, True])
def test_rows_keep_their_ids_through_a_transaction(house: House, vectors: bool) -> None:
    house.sql("create table totals as select 1 as n")
    house.sql(f"create table t (id int, n int) {TRACKED}")
    house.sql(f"alter table t set tblproperties ('delta.enableDeletionVectors' = {str(vectors).lower()})")
    house.sql("insert into t select id, id from range(1, 5, 1, 1)")
    before = ids(house)
    with house.warehouse.transaction() as together:
        together.sql("update t set n = 0 where id = 2")
        together.sql("insert into t values (5, 5), (6, 6)")
        together.sql("update t set n = 0 where id in (3, 6)")
        together.sql("optimize t")
        together.sql("delete from t where id = 4")
        together.sql("update totals set n = 2")
    after, version = ids(house), house.log("t").snapshot().version
    assert {key: after[key][0] for key in (1, 2, 3)} == {key: before[key][0] for key in (1, 2, 3)}
    assert {key: each[1] for key, each in after.items()} == {
        1: before[1][1],
        2: version,
        3: version,
        5: version,
        6: version,
    }
    assert min(after[5][0], after[6][0]) > max(each for each, _ in before.values())


def test_ids_follow_the_ids_that_another_writer_assigns_meanwhile(house: House) -> None:
    house.sql(f"create table t (id int, n int) {TRACKED}")
    house.sql("insert into t values (1, 1)")
    with house.warehouse.transaction() as together:
        together.sql("insert into t values (2, 2)")
        together.sql("update t set n = 0 where id = 2")
        together.sql(f"create table u {TRACKED} as select 1 as id")
        house.another().sql("insert into t values (3, 3)")
    found = ids(house)
    assert found[1][0] < found[3][0] < found[2][0]
    assert ids(house, "u") == {1: (0, 0)}


MARKED = "tblproperties ('delta.enableDeletionVectors' = 'true')"


@pytest.mark.parametrize("exists", [False, True])
def test_a_transaction_that_is_rolled_back_leaves_no_deletion_vector(shop: House, exists: bool) -> None:
    """A folder with files and without a log is not a table's, and no table of its name could be created."""
    create = f"create table marked {MARKED} as select /*+ coalesce(1) */ id from range(100)"
    if exists:
        shop.sql(create)
        shop.sql("delete from marked where id = 0")
    store = shop.place.store("main/marked")
    before = {each.path for each in store.files_below("")} if exists else set()
    with pytest.raises(errors.CheckViolationError), shop.warehouse.transaction() as together:
        if not exists:
            together.sql(create)
        for id_ in (1, 2):
            together.sql(f"delete from marked where id = {id_}")
        together.sql("alter table orders add constraint few check (id < 2)")
    assert {each.path for each in store.files_below("")} == before
    if not exists:
        shop.sql(create)
    assert shop.rows("select count(*) from marked") == [(99 if exists else 100,)]
