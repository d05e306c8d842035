"""Enforced foreign keys in SQL: no statement leaves a row of a child whose key its parent does not have."""

from __future__ import annotations

import contextlib
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog import rollback, rollback_plan
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.rollback import RollbackSettings
from dbt.adapters.silt.engine.catalog.rollback_plan import RollbackScope
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    ForeignKeyViolationError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo
from tests.unit.engine.house import House, side_by_side
from tests.unit.engine.kernel.log_builder import put
from tests.unit.engine.statements.execute.test_enforced_keys import notes

ENFORCED = "enforced, as far as the key that it references"
REFERENCE = "foreign key (customer) references main.customers (id) enforced"
ORDERS = f"create table main.orders (id bigint, customer bigint, constraint fk {REFERENCE})"


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table main.customers (id bigint primary key enforced, name string)")
    house.sql("insert into main.customers values (1, 'ada'), (2, 'bob'), (3, 'cy')")
    house.sql(f"{ORDERS} as select 10L, 1L")
    return house


def state(house: House) -> list[object]:
    return [house.rows(f"select * from main.{name}") for name in ("customers", "orders")]


@pytest.mark.parametrize(
    "text",
    [
        "insert into main.orders values (11, 9)",
        "insert overwrite main.orders select 11L, 9L",
        "update main.orders set customer = 9",
        "merge into main.orders as t using (select 11L as id) as s on t.id = s.id "
        "when not matched then insert (id, customer) values (s.id, 9)",
        f"create or replace table main.orders (id bigint, customer bigint, {REFERENCE}) as select 1L, 9L",
        "delete from main.customers where id = 1",
        "truncate table main.customers",
        "update main.customers set id = 7 where id = 1",
        "merge into main.customers as t using (select 1L as id) as s on t.id = s.id when matched then delete",
        "insert overwrite main.customers values (2, 'bob')",
        "create or replace table main.customers (id bigint primary key enforced) as select 2L",
        "create or replace table main.customers (id bigint) as select 1L",
        "restore table main.customers to version as of 0",
        "alter table main.customers drop constraint primary_key_1",
        "alter table main.customers rename to main.clients",
        "alter table main.customers rename column id to number",
        "drop table main.customers",
    ],
)
def test_a_statement_that_would_make_an_orphan_changes_nothing(shop: House, text: str) -> None:
    before = state(shop)
    if "rename column" in text:
        shop.sql("alter table main.customers set tblproperties ('delta.columnMapping.mode' = 'name')")
    with pytest.raises((ForeignKeyViolationError, UnsupportedStatementError)):
        shop.sql(text)
    assert state(shop) == before
    assert notes(shop) == {"fk": ENFORCED}
    shop.sql("delete from main.customers where id = 2")


def test_statements_that_leave_no_orphan_are_committed(shop: House) -> None:
    for text in (
        "insert into main.orders values (11, null), (12, 3)",
        "update main.customers set name = upper(name)",
        "insert overwrite main.customers values (1, 'ada'), (3, 'cy'), (4, 'dee')",
        "create or replace table main.customers (id bigint primary key enforced, name string) as "
        "select * from values (1L, 'a'), (3L, 'c'), (5L, 'e')",
        "delete from main.customers where id = 5",
        "optimize main.customers",
        "delete from main.orders where customer = 3",
        "delete from main.customers where id = 3",
    ):
        shop.sql(text)
        assert notes(shop) == {"fk": ENFORCED}, text
    with pytest.raises(
        ForeignKeyViolationError,
        match=r"2 rows have a key that .*customers does not have, under the enforced foreign key `fk` of .*orders.*"
        r"\(`id` = 3\), \(`id` = 8\)",
    ):
        shop.sql("insert into main.orders values (13, 3), (14, 8)")
    shop.sql("drop table main.orders")
    shop.sql("drop table main.customers")


def test_a_foreign_key_is_added_after_its_rows_are_checked_and_dropped_again(shop: House) -> None:
    shop.sql("create table main.visits (customer bigint)")
    shop.sql("insert into main.visits values (1), (8)")
    add = "alter table main.visits add constraint to_customers foreign key (customer) references main.customers "
    with pytest.raises(ForeignKeyViolationError, match="`to_customers`"):
        shop.sql(f"{add} enforced")
    shop.sql("delete from main.visits where customer = 8")
    shop.sql(f"{add} not deferrable enforced")
    with pytest.raises(ForeignKeyViolationError):
        shop.sql("insert into main.visits values (8)")
    with pytest.raises(ForeignKeyViolationError, match=r"Drop silt.main.(orders|visits) first, or the foreign key"):
        shop.sql("drop table main.customers")
    shop.sql("alter table main.visits drop constraint to_customers")
    shop.sql("insert into main.visits values (8)")


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("name string references main.customers (name) enforced", "needs an enforced PRIMARY KEY or UNIQUE"),
        ("id int references main.customers (id) enforced", "different types"),
        ("id bigint references main.seen (id) enforced", "not a table of the warehouse"),
    ],
)
def test_a_foreign_key_that_cannot_be_enforced_is_refused(shop: House, definition: str, message: str) -> None:
    shop.sql("create view main.seen as select * from main.customers")
    with pytest.raises(UnsupportedStatementError, match=message):
        shop.sql(f"create table main.visits ({definition})")
    assert "visits" not in str(shop.rows("show tables in main"))


def test_a_transaction_is_checked_when_it_is_committed(shop: House) -> None:
    shop.sql("begin")
    shop.sql("insert into main.orders values (11, 4)")
    shop.sql("insert into main.customers values (4, 'dee')")
    shop.sql("delete from main.customers where id = 1")
    shop.sql("delete from main.orders where customer = 1")
    shop.sql("commit")
    assert shop.rows("select * from main.orders") == [(11, 4)]
    before = state(shop)
    shop.sql("begin")
    shop.sql("delete from main.customers where id = 4")
    shop.sql("insert into main.customers values (5, 'eve')")
    with pytest.raises(ForeignKeyViolationError):
        shop.sql("commit")
    assert state(shop) == before


def test_a_clone_records_the_foreign_key_and_the_clone_of_a_parent_is_free(shop: House) -> None:
    shop.sql("create table main.copy deep clone main.orders")
    assert notes(shop, "main.copy") == {"fk": "not enforced"}
    shop.sql("insert into main.copy values (11, 9)")
    shop.sql("create table main.clients deep clone main.customers")
    shop.sql("delete from main.clients")


def test_writers_of_both_tables_leave_no_orphan(shop: House) -> None:
    def add(house: House) -> None:
        try:
            house.sql("insert into main.orders values (20, 2), (21, 3)")
        except (ForeignKeyViolationError, ConcurrentModificationError):
            return

    def remove(house: House, number: int) -> None:
        try:
            house.sql(f"delete from main.customers where id = {number}")
        except (ForeignKeyViolationError, ConcurrentModificationError):
            return

    houses = [shop.another() for _ in range(4)]
    side_by_side(
        [
            *(lambda house=house: add(house) for house in houses[:2]),
            lambda: remove(houses[2], 2),
            lambda: remove(houses[3], 3),
        ]
    )
    orphans = "select * from main.orders o left anti join main.customers c on o.customer = c.id"
    assert shop.rows(orphans) == []


def test_parents_that_another_engine_removes_are_found_by_the_next_commit_to_their_table(shop: House) -> None:
    log = shop.log("customers")
    (gone,) = log.snapshot().add_files()
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [2, 3], "name": ["bob", "cy"]}), sink)
    log.store.put("theirs.parquet", sink.getvalue())
    added = AddFile("theirs.parquet", {}, len(sink.getvalue()), log.clock.now_ms())
    put(log, log.snapshot().version + 1, CommitInfo(operation="WRITE", engine_info="other"), gone.remove(1), added)
    shop.sql("insert into main.customers values (4, 'dee')")
    assert notes(shop, "main.customers") == {"primary_key_1": "enforced, but unverified since version 3"}
    with pytest.raises(ForeignKeyViolationError):
        shop.sql("delete from main.customers where id = 4")
    shop.sql("insert into main.customers values (1, 'ada')")
    assert notes(shop, "main.customers") == {"primary_key_1": "enforced"}
    with pytest.raises(SiltError):
        shop.sql("delete from main.customers where id = 1")


def test_a_rollback_of_both_tables_begins_with_the_child_if_the_parent_cannot_come_first(shop: House) -> None:
    before = state(shop)
    shop.warehouse.sql("insert into main.customers values (4, 'dee')", user_metadata="run")
    shop.warehouse.sql("insert into main.orders values (11, 4)", user_metadata="run")

    def is_of_run(commit: Commit) -> bool:
        return commit.info.user_metadata == "run"

    scope = RollbackScope(is_of_run, lambda _: False, lambda _: False)
    names = [RelationName("silt", "main", name) for name in ("customers", "orders")]
    findings = rollback_plan.find(shop.warehouse.catalog, names, scope)
    settings = RollbackSettings("the run", lambda commit: str(commit.info.user_metadata))
    with contextlib.suppress(ConcurrentModificationError):  # this scope does not know its own rollback
        rollback.roll_back(shop.warehouse.catalog, findings, scope, settings)
    assert state(shop) == before


def test_rows_that_a_program_writes_are_compared_too(shop: House) -> None:
    spark, root = shop.warehouse.spark, str(shop.root)
    silt.DataSource.register(spark)
    orphan, child = (spark.createDataFrame([(11, key)], "id bigint, customer bigint") for key in (9, 3))
    before = state(shop)
    with pytest.raises(ForeignKeyViolationError):
        shop.warehouse.write(orphan, "main.orders", mode="append")
    with pytest.raises(PySparkException, match="SILT_FOREIGN_KEY_VIOLATION"):
        orphan.write.format("silt").mode("append").option("warehouse", root).save("main.orders")
    with pytest.raises(PySparkException, match="is changed by its name in the warehouse"):
        orphan.write.format("silt").mode("append").save(shop.location("orders"))
    assert state(shop) == before
    shop.warehouse.write(child, "main.orders", mode="append")
    child.write.format("silt").mode("append").option("warehouse", root).save("main.orders")
    assert shop.rows("select count(*) from main.orders where customer = 3") == [(2,)]
    with pytest.raises(ForeignKeyViolationError):
        shop.sql("delete from main.customers where id = 3")
