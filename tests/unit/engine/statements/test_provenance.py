"""The provenance in a commit: the versions that its statement read, and the number of attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House, opened, other_rows
from tests.unit.engine.place import Place

FEED = "tblproperties (delta.enableChangeDataFeed = true)"

READING: tuple[Any, ...] = (
    ("made", "create table made as select orders.id from orders, lines", {"orders": [2], "lines": [0]}),
    ("target", "insert into target select id from both_of_them", {"orders": [2], "lines": [0]}),
    ("target", "insert into target select count(*) from orders", {"orders": [2]}),
    ("target", "insert into target select id from orders version as of 1", {"orders": [1]}),
    ("target", "insert into target select a.id from orders a, orders version as of 0 b", {"orders": [0, 2]}),
    ("target", "insert into target select id from table_changes('main.orders', 1)", {"orders": [2]}),
    ("target", "insert into target select max(id) from target", {"target": [0]}),
    ("target", "insert into target select main.highest()", {"lines": [0]}),
    ("target", "insert overwrite target select id from lines", {"lines": [0]}),
    (
        "target",
        "merge into target t using lines s on t.id = s.id when not matched then insert *",
        {"lines": [0]},
    ),
    ("target", "delete from target where id not in (select id from lines)", {"lines": [0]}),
    ("target", "update target set id = (select max(id) from orders)", {"orders": [2]}),
    ("alike", "create table alike like lines", {"lines": [0]}),
    ("copy", "create table copy shallow clone orders version as of 1", {"orders": [1]}),
    ("target", "insert into target values (1)", {}),
    ("target", "alter table target add columns (more int)", {}),
)


class Interrupted(SystemClock):
    """Runs another writer's action while the next statement names its files: after it has pinned the tables that it
    reads.
    """

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] | None = None

    def new_id(self) -> str:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().new_id()

    def sleep(self, seconds: float) -> None:
        """Does not wait."""


def newest(house: House, table: str) -> CommitInfo:
    commit = next(iter(house.warehouse.catalog.table(RelationName("silt", "main", table)).newest_commits()))
    return next(action for action in commit.actions if isinstance(action, CommitInfo))


def read_versions(house: House, table: str) -> Mapping[str, Any]:
    return newest(house, table).read_versions or {}


@pytest.fixture
def stocked(house: House) -> House:
    """A warehouse with versions 0 to 2 of `orders`, and version 0 of `lines` and `target`."""
    house.sql(f"create table orders (id bigint) {FEED}")
    for id in (1, 2):
        house.sql(f"insert into orders values ({id})")
    house.sql("create table lines as select 7L as id")
    house.sql("create table target as select 0L as id")
    house.sql("create view both_of_them as select id from orders union all select id from (select * from lines)")
    house.sql("create function highest() returns bigint return select max(id) from lines")
    return house


def test_a_commit_records_the_versions_that_its_statement_read(stocked: House) -> None:
    for table, statement, expected in READING:
        stocked.sql("create or replace table target as select 0L as id")
        version = newest(stocked, "target").read_version
        stocked.sql(statement)
        found = {name.removeprefix("silt.main."): versions for name, versions in read_versions(stocked, table).items()}
        own = {} if version is None else {"target": [version + 1]}
        assert found == {**expected, **(own if "target" in expected else {})}, statement


def test_a_commit_records_the_versions_that_earlier_queries_of_the_same_work_read(stocked: House) -> None:
    work = stocked.in_one_cut()
    work.sql("select max(id) from orders version as of 1").collect()
    work.sql("insert into target select id from lines")
    assert read_versions(work, "target") == {"silt.main.lines": [0], "silt.main.orders": [1]}


def test_a_commit_records_its_attempts_and_the_executions_of_its_statement(spark: SparkSession, place: Place) -> None:
    clock = Interrupted()
    house, other = opened(spark, place, WarehouseSettings(clock=clock)), opened(spark, place)
    house.sql("create table accounts as select 1 as id, 10 as balance")

    clock.meanwhile = lambda: other.sql("update accounts set balance = balance + 5")
    house.sql("update accounts set balance = balance * 2")
    info = newest(house, "accounts")
    assert (info.statement_attempts, info.commit_attempts) == (2, 1)

    clock.meanwhile = lambda: other.sql("insert into accounts values (2, 20)")
    house.sql("insert into accounts values (3, 30)")
    info = newest(house, "accounts")
    assert (info.statement_attempts, info.commit_attempts) == (1, 2)
    assert house.rows("select * from accounts") == [(1, 30), (2, 20), (3, 30)]


def test_other_readers_read_the_table_and_show_the_versions(stocked: House) -> None:
    stocked.sql("insert into target select id from both_of_them")
    assert other_rows(stocked, "target") == [(0,), (1,), (2,), (7,)]
    [shown, _] = stocked.delta_rs("target").history()
    assert shown["readVersions"] == {"silt.main.lines": [0], "silt.main.orders": [2]}
