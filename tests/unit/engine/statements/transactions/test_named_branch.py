"""`set silt.branch` lets sessions of several processes read and write on a named branch."""

from __future__ import annotations

import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table orders as select 1 as id")
    return house


def branches(house: House) -> NamedBranches:
    return house.another().warehouse.catalog.named_branches("silt")


def on(house: House, name: str = "pr_17") -> House:
    session = house.another()
    session.sql(f"set silt.branch = {name}")
    return session


@pytest.mark.connect(gate=True)
def test_sessions_share_a_branch_that_begins_with_the_tables_of_its_creation(shop: House) -> None:
    branches(shop).create("pr_17", "ann")
    shop.sql("insert into orders values (99)")
    first, second = on(shop), on(shop)
    first.sql("insert into orders values (2)")
    second.sql("create table more as select max(id) as id from orders")
    first.sql("create view doubled as select id * 2 as id from more")
    assert second.rows("select id from orders") == [(1,), (2,)]
    assert second.rows("select id from doubled") == [(4,)]
    second.sql("drop table more")
    second.sql("reset silt.branch")
    for published in (second, shop):
        assert published.rows("select id from orders") == [(1,), (99,)]
    with pytest.raises(errors.RelationNotFoundError):
        first.sql("select * from more")


def test_a_program_that_begins_on_a_branch_returns_to_it(shop: House) -> None:
    for name in ("pr_17", "pr_18"):
        branches(shop).create(name, "ann")
    other = shop.another().warehouse
    home = other.for_session(other.spark, branch=branches(shop).named("pr_17"))
    home.sql("insert into orders values (2)")
    home.sql("set silt.branch = pr_18")
    assert home.sql("select id from orders").count() == 1
    home.sql("reset silt.branch")
    assert home.sql("select id from orders").count() == 2
    again = home.for_session(other.spark)
    again.sql("reset")
    assert again.sql("select id from orders").count() == 2
    with pytest.raises(errors.InvalidStatementError, match="committed one by one"):
        home.sql("begin")


def test_a_session_on_a_deleted_branch_is_told(shop: House) -> None:
    named = branches(shop)
    created = named.create("pr_17", "ann")
    session = on(shop)
    session.sql("insert into orders values (2)")
    named.delete(created)
    for statement in ("select * from orders", "insert into orders values (3)"):
        with pytest.raises(errors.ConcurrentModificationError, match="the branch `pr_17`"):
            session.sql(statement)
    with pytest.raises(errors.BranchNotFoundError, match="Create it"):
        named.find("pr_17")


def test_vacuum_of_the_base_leaves_the_rows_of_a_branch(shop: House) -> None:
    branches(shop).create("pr_17", "ann")
    shop.sql("alter table orders set tblproperties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    shop.sql("truncate table orders")
    shop.sql("set spark.databricks.delta.retentionDurationCheck.enabled = false")
    shop.sql("vacuum orders retain 0 hours")
    assert on(shop).rows("select id from orders") == [(1,)]


def test_arrow_reads_a_branch(shop: House) -> None:
    branches(shop).create("pr_17", "ann")
    place = shop.place.location
    on(shop).sql("insert into orders values (5)")
    assert sorted(silt.read("main.orders", place, branch="pr_17").column("id").to_pylist()) == [1, 5]
    assert silt.read("main.orders", place).column("id").to_pylist() == [1]
    with pytest.raises(errors.BranchNotFoundError, match="Did you mean pr_17"):
        silt.read("main.orders", place, branch="pr_71")
