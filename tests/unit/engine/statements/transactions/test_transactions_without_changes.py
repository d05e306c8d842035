"""Statements of a transaction that change nothing have read what they looked for: another writer's change conflicts."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.unit.engine.house import House

KINDS = {
    "plain": "",
    "vectors": "tblproperties ('delta.enableDeletionVectors' = true)",
    "partitions": "partitioned by (id)",
    "feed": "tblproperties ('delta.enableChangeDataFeed' = true)",
    "write serializable": "tblproperties ('delta.isolationLevel' = 'WriteSerializable')",
    "snapshot isolation": "tblproperties ('delta.isolationLevel' = 'SnapshotIsolation')",
}
MATCHED = "merge into t using (select 7 as id, 'm' as v) s on t.id = s.id when matched then"
LOOKS = [
    "delete from t where id = 7",
    "delete from t where id in (select wanted.id from wanted)",
    "delete from t where concat(v, 'x') = 'nx'",
    "delete from t where id > 5 and v = 'n'",
    "update t set v = 'u' where id = 7",
    f"{MATCHED} update set v = s.v",
    f"{MATCHED} delete",
    "merge into t using (select 7 as id) s on t.id = s.id when not matched by source and t.id = 7 then delete",
]


def stocked(house: House, kind: str = "plain", rows: str = "(1, 'a'), (8, 'b')") -> House:
    house.sql(f"create table t (id int, v string) {KINDS[kind]}")
    house.sql("create table wanted as select 7 as id")
    house.sql("create table notes (n string)")
    if rows:
        house.sql(f"insert into t values {rows}")
    return house


def both(house: House, *statements: str, txn: bool = False) -> None:
    """Runs the statements in two transactions at the same time, and commits them one after the other."""
    with ExitStack() as stack:
        transactions = [
            stack.enter_context(each.warehouse.transaction(txn=(f"load {number}", 1) if txn else None))
            for number, each in enumerate((house, house.another()))
        ]
        for statement in statements:
            for each in transactions:
                each.sql(statement)


@pytest.mark.parametrize("look", LOOKS)
def test_of_two_transactions_that_find_no_row_and_insert_it_one_is_refused(house: House, look: str) -> None:
    stocked(house)
    with pytest.raises(errors.ConcurrentAppendError, match=r"main\.t"):
        both(house, look, "insert into t values (7, 'n')")
    assert house.rows("select v from t where id = 7") == [("n",)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ["", "(1, 'a'), (8, 'b')"], ids=["empty", "with rows"])
def test_it_is_refused_in_every_kind_of_table(house: House, kind: str, rows: str) -> None:
    stocked(house, kind, rows)
    with pytest.raises(errors.ConcurrentModificationError, match=r"main\.t"):
        both(house, LOOKS[0], "insert into t values (7, 'n')")
    assert house.rows("select v from t where id = 7") == [("n",)]


def test_it_is_refused_with_transaction_identifiers(house: House) -> None:
    stocked(house)
    with pytest.raises(errors.ConcurrentModificationError, match=r"main\.t"):
        both(house, LOOKS[0], "insert into t values (7, 'n')", txn=True)
    assert house.rows("select v from t where id = 7") == [("n",)]


@pytest.mark.connect
def test_a_program_that_inserts_if_no_row_was_updated_inserts_once(house: House) -> None:
    stocked(house)

    def upsert(warehouse: Warehouse) -> None:
        if warehouse.sql("update t set v = 'u' where id = 7").collect()[0].num_updated_rows == 0:
            warehouse.sql("insert into t values (7, 'n')")

    with (
        pytest.raises(errors.ConcurrentModificationError),
        house.another().warehouse.transaction() as second,
        house.warehouse.transaction() as first,
    ):
        upsert(first)
        upsert(second)
    assert house.rows("select v from t where id = 7") == [("n",)]


def test_rows_that_another_writer_adds_elsewhere_are_no_conflict(house: House) -> None:
    stocked(house)
    with house.warehouse.transaction() as together:
        together.sql("delete from t where id = 7")
        together.sql("insert into t values (7, 'n')")
        house.another().sql("insert into t values (20, 'other')")
    assert house.rows("select id from t") == [(1,), (20,), (7,), (8,)]


def test_rows_that_were_equal_must_still_be_equal(house: House) -> None:
    stocked(house)
    with pytest.raises(errors.ConcurrentModificationError, match=r"main\.t"), house.warehouse.transaction() as together:
        merged = together.sql(
            "merge skip equal rows into t using (select 1 as id, 'a' as v) s on t.id = s.id "
            "when matched then update set v = s.v"
        )
        assert merged.collect()[0].num_updated_rows == 0
        together.sql("insert into notes values ('v is a')")
        house.another().sql("update t set v = 'z' where id = 1")
    assert house.rows("select * from notes") == []


def test_a_restored_version_that_is_the_newest_must_still_be_the_newest(house: House) -> None:
    stocked(house)
    with pytest.raises(errors.ConcurrentModificationError, match=r"main\.t"), house.warehouse.transaction() as together:
        together.sql("restore table t to version as of 1")
        together.sql("insert into notes values ('two rows')")
        house.another().sql("insert into t values (3, 'c')")
    assert house.rows("select * from notes") == []


def test_an_optimize_that_finds_nothing_to_do_reads_no_row(house: House) -> None:
    stocked(house)
    with house.warehouse.transaction() as together:
        together.sql("optimize t")
        together.sql("insert into notes values ('optimized')")
        house.another().sql("insert into t values (3, 'c')")
    assert house.rows("select * from notes") == [("optimized",)]


@pytest.mark.parametrize(
    ("before", "look", "meanwhile"),
    [
        ("create table x (k int)", "create table if not exists x (k int)", "drop table x"),
        ("select 1", "drop table if exists x", "create table x (k int)"),
        ("create view x as select 1 as k", "create view if not exists x as select 2 as k", "drop view x"),
        ("select 1", "drop view if exists x", "create view x as select 1 as k"),
        ("select 1", "drop table if exists x", "create view x as select 1 as k"),
        (
            "create function x() returns int return 1",
            "create function if not exists x() returns int return 2",
            "drop function x",
        ),
        ("select 1", "drop function if exists main.x", "create function main.x() returns int return 1"),
    ],
)
@pytest.mark.connect
def test_a_name_that_a_statement_found_or_missed_must_not_change(
    house: House, before: str, look: str, meanwhile: str
) -> None:
    stocked(house)
    house.sql(before)
    with pytest.raises(errors.ConcurrentModificationError, match=r"main\.x"), house.warehouse.transaction() as together:
        together.sql(look)
        together.sql("insert into notes values ('n')")
        house.another().sql(meanwhile)
    assert house.rows("select * from notes") == []


def test_a_transaction_that_changes_nothing_is_not_refused(house: House) -> None:
    stocked(house)
    with house.warehouse.transaction() as together:
        together.sql("delete from t where id = 7")
        together.sql("drop table if exists x")
        house.another().sql("insert into t values (7, 'n')")
        house.another().sql("create table x (k int)")
    assert house.log("t").snapshot().version == 2


@pytest.mark.parametrize("look", [*LOOKS, "restore table t to version as of 1", "optimize t"])
def test_outside_of_a_transaction_a_statement_without_changes_commits_nothing(house: House, look: str) -> None:
    stocked(house)
    house.sql(look)
    assert house.log("t").snapshot().version == 1


def test_a_transaction_identifier_that_a_program_has_looked_for_must_not_be_set(house: House) -> None:
    stocked(house)
    with pytest.raises(errors.ConcurrentTransactionError, match=r"main\.t"), house.warehouse.transaction() as together:
        assert together.transaction_version("t", "load") is None
        together.sql("insert into notes values ('loaded')")
        house.another().sql("insert into t values (3, 'c')", txn=("load", 1))
    assert house.rows("select * from notes") == []
