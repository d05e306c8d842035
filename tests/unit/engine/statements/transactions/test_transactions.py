"""Statements of a transaction: they take effect at one moment, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House, other_rows


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table orders (id bigint, amount bigint)")
    house.sql("create table totals (name string, amount bigint)")
    house.sql("insert into orders values (1, 10), (2, 20)")
    house.sql("insert into totals values ('all', 30)")
    return house


def documents(house: House) -> list[Path]:
    return sorted((house.root / "_publications").glob("*.json"))


@pytest.mark.connect(gate=True)
def test_all_statements_take_effect_at_the_end_and_read_what_earlier_statements_wrote(shop: House) -> None:
    other = shop.another()
    with shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("update orders set amount = amount + 1 where id = 1")
        together.sql("delete from orders where id = 2")
        together.sql(
            "merge into totals t using (select sum(amount) as a from orders) s on t.name = 'all' "
            "when matched then update set amount = s.a"
        )
        assert together.table("totals").collect()[0].amount == 16
        assert other.rows("select * from orders") == [(1, 10), (2, 20)]
        assert shop.rows("select amount from totals") == [(30,)]
    for house in (shop, other, shop.another()):
        assert house.rows("select * from orders") == [(1, 11), (3, 5)]
        assert house.rows("select amount from totals") == [(16,)]
    assert other_rows(shop, "orders") == [(1, 11), (3, 5)]
    assert [shop.log(name).snapshot().version for name in ("orders", "totals")] == [2, 2]
    assert [path.name.count(".") for path in documents(shop)] == [1]
    assert not list((shop.root / "_branches").iterdir())
    (newest,) = shop.sql("describe history orders limit 1").collect()
    assert newest.operation == "TRANSACTION"


def test_an_exception_drops_everything(shop: House) -> None:
    files = set(shop.root.rglob("*.parquet"))
    with pytest.raises(ZeroDivisionError), shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("delete from totals")
        raise ZeroDivisionError
    assert shop.rows("select * from orders") == [(1, 10), (2, 20)]
    assert set(shop.root.rglob("*.parquet")) == files
    assert shop.log("orders").snapshot().version == 1


def test_sql_begins_commits_and_rolls_back(shop: House) -> None:
    shop.sql("begin")
    shop.sql("insert into orders values (3, 5)")
    shop.sql("create or replace table totals as select 'all' as name, sum(amount) as amount from orders")
    assert shop.rows("select amount from totals") == [(35,)]
    assert shop.another().rows("select amount from totals") == [(30,)]
    assert shop.rows("commit work") == [("silt.main.orders", 2), ("silt.main.totals", 2)]
    assert shop.another().rows("select amount from totals") == [(35,)]
    shop.sql("start transaction")
    shop.sql("truncate table orders")
    shop.sql("rollback")
    assert len(shop.rows("select * from orders")) == 3


def test_a_conflict_with_another_writer_applies_nothing(shop: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("update totals set amount = 35")
        shop.another().sql("update totals set amount = 99")
    assert shop.rows("select * from orders") == [(1, 10), (2, 20)]
    assert shop.rows("select amount from totals") == [(99,)]


def test_a_table_that_was_only_read_must_not_change(shop: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("update totals set amount = (select sum(amount) from orders)")
        shop.another().sql("insert into orders values (3, 5)")
    assert shop.rows("select amount from totals") == [(30,)]


def test_another_writers_rows_that_do_not_conflict_stay(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("insert into totals values ('new', 5)")
        shop.another().sql("insert into orders values (4, 6)")
    assert shop.rows("select id from orders") == [(1,), (2,), (3,), (4,)]
    assert len(shop.rows("select * from totals")) == 2


def test_a_transaction_with_an_identifier_is_applied_once(shop: House) -> None:
    for _ in range(2):
        with shop.warehouse.transaction(txn=("load", 7)) as together:
            first = together.execute("insert into orders values (3, 5)").outcome
            together.sql("insert into orders values (4, 5)")
            together.sql("insert into totals values ('new', 5)")
    assert first is not None and first.skipped
    assert len(shop.rows("select * from orders")) == 4
    assert shop.warehouse.transaction_version("totals", "load") == 7


@pytest.mark.parametrize(
    "statement",
    [
        "alter table orders rename to more",
        "vacuum orders",
    ],
)
def test_statements_that_cannot_be_undone_are_refused_by_name(shop: House, statement: str) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        with pytest.raises(errors.UnsupportedStatementError, match="transaction"):
            together.sql(statement)
    assert len(shop.rows("select * from orders")) == 3


def test_the_changes_of_the_only_statement_that_changes_rows_are_recorded(shop: House) -> None:
    shop.sql("alter table orders set tblproperties ('delta.enableChangeDataFeed' = true)")
    with shop.warehouse.transaction() as together:
        together.sql("update orders set amount = 11 where id = 1")
        together.sql("insert into totals values ('new', 5)")
    version = shop.log("orders").snapshot().version
    changes = shop.rows(f"select _change_type, amount from table_changes('orders', {version})")
    assert changes == [("update_postimage", 11), ("update_preimage", 10)]


CONSUMING = "insert into copied select id, amount from silt_changes('main.orders', consumer => 'main.copied')"


def test_changes_that_a_transaction_has_made_are_consumed_once(shop: House) -> None:
    shop.sql("create table copied (id bigint, amount bigint)")
    for new in range(3, 6):
        with shop.warehouse.transaction() as together:
            together.sql(f"insert into orders values ({new}, 5)")
            together.sql(f"insert into orders values ({new + 10}, 5)")
            together.sql(CONSUMING)
        shop.sql(f"insert into orders values ({new + 20}, 5)")
    shop.sql(CONSUMING)
    assert shop.rows("select * from copied") == shop.rows("select * from orders")
    assert len(shop.rows("select * from copied")) == 11


def test_changes_of_a_table_that_a_transaction_creates_are_consumed_once(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("create table arrived as select 1 as id")
        together.sql("insert into arrived values (2)")
        together.sql("create table copied as select id from silt_changes('main.arrived', consumer => 'main.copied')")
    shop.sql("insert into arrived values (3)")
    shop.sql("insert into copied select id from silt_changes('main.arrived', consumer => 'main.copied')")
    assert shop.rows("select * from copied") == [(1,), (2,), (3,)]


def test_changes_must_be_consumed_after_the_last_change_of_the_transaction(shop: House) -> None:
    shop.sql("create table copied (id bigint, amount bigint)")
    transaction = shop.warehouse.transaction()
    with pytest.raises(errors.UnsupportedStatementError, match="has changed again"), transaction as together:
        together.sql("insert into orders values (3, 5)")
        together.sql(CONSUMING)
        together.sql("insert into orders values (4, 5)")
    assert (shop.rows("select * from copied"), len(shop.rows("select * from orders"))) == ([], 2)


def test_each_change_is_consumed_once_by_transactions(shop: House) -> None:
    shop.sql("create table copied (id bigint, amount bigint)")
    for new in range(3, 6):
        with shop.warehouse.transaction() as together:
            together.sql(CONSUMING)
            together.sql(CONSUMING)
            together.sql(f"insert into orders values ({new}, 5)")  # the next transaction consumes it
    shop.sql(CONSUMING)
    assert shop.rows("select * from copied") == shop.rows("select * from orders")
    assert len(shop.rows("select * from copied")) == 5


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_version_that_was_read_in_a_transaction_is_not_taken_for_the_version_of_the_table(
    shop: House, end: str
) -> None:
    shop.sql("begin")
    shop.sql("insert into orders values (3, 5)")
    shop.sql("insert into orders values (4, 5)")
    assert len(shop.rows("select * from orders")) == 4
    shop.sql(end)
    shop.sql("delete from orders")
    if end == "rollback":
        shop.sql("insert into orders values (9, 9)")
    assert shop.rows("select * from orders") == ([] if end == "commit" else [(9, 9)])


def test_columns_can_be_added_in_a_transaction(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("alter table orders add columns (note string)")
        together.sql("update orders set note = 'old'")
        together.sql("insert into totals values ('new', 5)")
    assert shop.rows("select note from orders") == [("old",), ("old",)]


def test_deletion_vectors_of_several_statements_become_one(shop: House) -> None:
    shop.sql("alter table orders set tblproperties ('delta.enableDeletionVectors' = true)")
    shop.sql("insert into orders select id + 10, id from range(5000)")
    with shop.warehouse.transaction() as together:
        together.sql("delete from orders where id = 11")
        together.sql("delete from orders where id = 12")
        together.sql("insert into totals values ('new', 5)")
    assert shop.rows("select count(*) from orders") == [(5000,)]


def test_a_transaction_in_a_transaction_and_the_end_of_none_are_refused(shop: House) -> None:
    with pytest.raises(errors.InvalidStatementError, match="nothing can be committed"):
        shop.sql("commit")
    with pytest.raises(errors.InvalidStatementError, match="nothing can be rolled back"):
        shop.sql("rollback")
    with shop.warehouse.transaction() as together:
        with pytest.raises(errors.InvalidStatementError, match="cannot contain another"):
            together.sql("begin")
        with pytest.raises(errors.InvalidStatementError, match="cannot contain another"), together.transaction():
            pass
        together.sql("commit")
        with pytest.raises(errors.InvalidStatementError, match="nothing can be committed"):
            together.sql("commit")


def test_a_file_that_was_deleted_before_the_commit_applies_nothing(shop: House) -> None:
    before = set(shop.root.rglob("*.parquet"))
    with pytest.raises(errors.DataFileMissingError), shop.warehouse.transaction() as together:
        together.sql("insert into totals values ('new', 5)")
        together.sql("insert into orders values (3, 5)")
        for path in set(shop.root.rglob("*.parquet")) - before:
            path.unlink()
    assert len(shop.rows("select * from orders")) == 2


@pytest.mark.parametrize("end", ["drop table totals", "restore table totals to version as of 0"])
def test_a_table_that_was_dropped_or_restored_meanwhile_applies_nothing(shop: House, end: str) -> None:
    with pytest.raises(errors.ConcurrentModificationError), shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("update totals set amount = 5")
        shop.another().sql(end)
    assert len(shop.rows("select * from orders")) == 2


def test_a_rename_of_a_changed_table_applies_nothing(shop: House) -> None:
    with pytest.raises(errors.SiltError), shop.warehouse.transaction() as together:
        together.sql("insert into orders values (3, 5)")
        together.sql("update totals set amount = 5")
        shop.another().sql("alter table totals rename to sums")
    assert shop.rows("select amount from sums") == [(30,)]
    assert len(shop.rows("select * from orders")) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_transaction_in_a_read_only_warehouse_is_refused(shop: House) -> None:
    shop.root.chmod(0o555)
    try:
        with pytest.raises(errors.ReadOnlyStorageError), shop.warehouse.transaction():
            pass
    finally:
        shop.root.chmod(0o755)


def test_a_transaction_that_changes_nothing_commits_nothing(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.sql("delete from orders where id = 9")
        assert together.table("totals").count() == 1
    assert shop.log("orders").snapshot().version == 1
    assert not documents(shop)


def test_a_dataframe_is_written_in_a_transaction(shop: House) -> None:
    with shop.warehouse.transaction() as together:
        together.write(together.sql("select 3L as id, 5L as amount"), "orders")
        together.write(shop.warehouse.spark.sql("select 'x' as name, 5L as amount"), "totals", mode="overwrite")
    assert len(shop.rows("select * from orders")) == 3
    assert shop.rows("select * from totals") == [("x", 5)]
