"""Which statements may leave something behind them."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.statements.execute.effects import changes_something


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "with a as (select 1) select * from a",
        "values (1)",
        "describe history shop.orders",
        "describe shop.orders",
        "show tables in shop",
        "explain select 1",
        "use shop",
        "set spark.sql.shuffle.partitions = 2",
        "refresh table shop.orders",
        "vacuum shop.orders dry run",
    ],
)
def test_looking_changes_nothing(text: str) -> None:
    assert not changes_something(text)


@pytest.mark.parametrize(
    "text",
    [
        "insert into shop.orders values (1)",
        "with a as (select 1) insert into shop.orders select * from a",
        "create table shop.orders (id int)",
        "create or replace view shop.v as select 1",
        "drop schema shop",
        "alter table shop.orders rename to shop.others",
        "optimize shop.orders",
        "vacuum shop.orders",
        "restore table shop.orders to version as of 1",
        "merge into shop.orders using shop.n on orders.id = n.id when matched then delete",
        "grant select on table shop.orders to somebody",
    ],
)
def test_what_writes_or_is_not_known_may_change_something(text: str) -> None:
    assert changes_something(text)
