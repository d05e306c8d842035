"""Enforced foreign keys next to branches, quarantine, maintenance, restored versions and changed columns."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits, Limit, OnFailure
from dbt.adapters.silt.engine.kernel.errors import ForeignKeyViolationError, SiltError, UnsupportedStatementError
from tests.unit.engine.house import House
from tests.unit.engine.statements.execute.test_enforced_keys import notes

MAPPED = "tblproperties ('delta.columnMapping.mode' = 'name')"


@pytest.fixture
def shop(house: House) -> House:
    house.sql(f"create table main.customers (id bigint primary key enforced, name string) {MAPPED}")
    house.sql("insert into main.customers values (1, 'ada'), (2, 'bob'), (3, 'cy')")
    fk = "constraint fk foreign key (customer) references main.customers (id) enforced"
    house.sql(f"create table main.orders (id bigint, customer bigint, v double, {fk}) {MAPPED}")
    house.sql("insert into main.orders values (10, 1, 1.0)")
    return house


def orphans(house: House) -> list[tuple[object, ...]]:
    return house.rows("select id from main.orders o left anti join main.customers c on o.customer = c.id")


def on_branch(house: House, *texts: str) -> None:
    """Runs statements on the branch `pr_17`, which begins with the present tables."""
    house.warehouse.catalog.named_branches("silt").create("pr_17", "ann")
    house.sql("set silt.branch = 'pr_17'")
    for text in texts:
        house.sql(text)
    house.sql("reset silt.branch")


ADD, REMOVE = "insert into main.orders values (11, 2, 1.0)", "delete from main.customers where id = 2"


@pytest.mark.parametrize(("there", "here"), [(ADD, REMOVE), (REMOVE, ADD)])
def test_a_named_branch_is_not_merged_if_a_foreign_key_would_be_broken(shop: House, there: str, here: str) -> None:
    on_branch(shop, there)
    shop.sql(here)
    before = shop.rows("select * from main.orders"), shop.rows("select * from main.customers")
    with pytest.raises(SiltError):
        shop.warehouse.catalog.named_branches("silt").merge("pr_17")
    assert (shop.rows("select * from main.orders"), shop.rows("select * from main.customers")) == before
    assert orphans(shop) == []


def test_a_named_branch_with_the_parent_and_its_child_is_merged(shop: House) -> None:
    on_branch(shop, "insert into main.orders values (11, 4, 1.0)", "insert into main.customers values (4, 'dee')")
    shop.warehouse.catalog.named_branches("silt").merge("pr_17")
    assert orphans(shop) == [] and len(shop.rows("select * from main.orders")) == 2


def test_audits_quarantine_rows_without_a_parent_and_a_foreign_key_refuses_the_others(shop: House) -> None:
    positive = Audit("positive", "select * from main.orders where v < 0")
    audits = Audits((positive,), on_failure=OnFailure.QUARANTINE, max_quarantined=Limit(9))
    shop.sql(f"set silt.audits = {json.dumps(audits.to_json())}")
    shop.sql("insert into main.orders values (11, 2, 1.0), (12, 9, -1.0)")
    with pytest.raises(ForeignKeyViolationError):
        shop.sql("insert into main.orders values (13, 9, 1.0), (14, 1, -1.0)")
    assert shop.rows("select id from main.orders") == [(10,), (11,)]
    assert shop.rows("select id, customer from main.orders__quarantine") == [(12, 9)]


def test_upkeep_moves_the_rows_of_both_tables_and_the_foreign_key_stays_enforced(shop: House) -> None:
    for number in range(4):
        shop.sql(f"insert into main.orders values ({20 + number}, 2, 1.0)")
        shop.sql(f"insert into main.customers values ({20 + number}, 'x')")
    for table in ("orders", "customers"):
        shop.sql(f"optimize main.{table}")
        shop.sql(f"vacuum main.{table}")
    assert notes(shop, "main.orders")["fk"].startswith("enforced, as far")
    with pytest.raises(ForeignKeyViolationError):
        shop.sql("delete from main.customers where id = 2")


def test_a_restored_version_of_either_table_is_compared_with_the_other(shop: House) -> None:
    version = shop.log("customers").snapshot().version
    shop.sql("insert into main.customers values (4, 'dee')")
    shop.sql("insert into main.orders values (11, 4, 1.0)")
    with pytest.raises(ForeignKeyViolationError):
        shop.sql(f"restore table main.customers to version as of {version}")
    there = shop.log("orders").snapshot().version
    shop.sql("delete from main.orders where id = 11")
    shop.sql(f"restore table main.customers to version as of {version}")
    with pytest.raises(ForeignKeyViolationError):
        shop.sql(f"restore table main.orders to version as of {there}")
    assert orphans(shop) == []


REFUSED: dict[str, Callable[[House], object]] = {
    "a column of the child": lambda house: house.sql("alter table main.orders drop column customer"),
    "a column of the parent": lambda house: house.sql("alter table main.customers drop column id"),
    "the name of the parent's column": lambda house: house.sql("alter table main.customers rename column id to number"),
    "a collation": lambda house: house.sql(
        "create table main.notes (c string collate utf8_lcase, foreign key (c) references main.customers enforced)"
    ),
    "a view": lambda house: house.sql("create or replace view main.customers as select 1L as id"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_a_change_of_columns_that_would_end_a_foreign_key_is_refused(shop: House, change: str) -> None:
    with pytest.raises(SiltError):
        REFUSED[change](shop)
    assert notes(shop, "main.orders")["fk"].startswith("enforced, as far")


def test_a_renamed_column_of_the_child_stays_in_its_foreign_key(shop: House) -> None:
    shop.sql("alter table main.orders rename column customer to buyer")
    shop.sql("alter table main.orders add column more int")
    with pytest.raises(ForeignKeyViolationError, match="buyer"):
        shop.sql("insert into main.orders values (11, 9, 1.0, 1)")


def test_a_clone_of_the_child_is_free_and_a_foreign_key_cannot_lose_the_key_of_its_parent(shop: House) -> None:
    shop.sql("create table main.copy shallow clone main.orders")
    shop.sql("insert into main.copy values (11, 9, 1.0)")
    with pytest.raises(UnsupportedStatementError):
        shop.sql("alter table main.customers drop constraint primary_key_1")
