"""An unqualified name means a temporary view first, also in the statements that drop and rename."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from tests.unit.engine.house import House

SOURCES = {"the warehouse": "select id from main.orders", "Spark": "select 7 as id"}


@pytest.fixture
def shop(house: House) -> House:
    """A table, and a temporary view of the same name."""
    house.sql("create table main.orders as select 1 as id")
    return house


@pytest.mark.parametrize("query", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_drop_removes_the_temporary_view_and_keeps_the_table_of_that_name(shop: House, kind: str, query: str) -> None:
    shop.sql(f"create or replace temporary view Orders as {query}")
    shop.sql(f"drop {kind} if exists orders")
    assert not shop.warehouse.spark.catalog.tableExists("orders")
    assert shop.rows("select * from orders") == [(1,)]


@pytest.mark.parametrize("query", SOURCES.values(), ids=SOURCES)
def test_a_rename_renames_the_temporary_view_and_keeps_the_table_of_that_name(shop: House, query: str) -> None:
    shop.sql("create table main.tmp as select 5 as id")
    shop.sql(f"create temporary view tmp as {query}")
    expected = shop.rows("select * from tmp")
    shop.sql("alter view tmp rename to tmp_2")
    assert shop.rows("select * from tmp_2") == expected
    assert shop.rows("select * from tmp") == [(5,)]


def test_a_temporary_view_cannot_be_renamed_into_a_schema(shop: House) -> None:
    shop.sql("create temporary view tmp as select id from main.orders")
    with pytest.raises(InvalidStatementError, match="a temporary view cannot be renamed"):
        shop.sql("alter view tmp rename to main.other")
