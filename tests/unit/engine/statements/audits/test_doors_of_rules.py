"""Rules of a table by EXPECT at each door through which programs write rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.datasource.tables import Tables
from tests.unit.engine.house import House

ROWS: Final = "select * from values (1L, 1.0D), (2L, -2.0D), (3L, null) as s(id, v)"
Door = Callable[[House, DataFrame], object]


def written(mode: str) -> Door:
    """Returns a write by the engine."""
    return lambda house, rows: house.warehouse.write(rows, "main.t", mode=mode)


def where(house: House, rows: DataFrame) -> None:
    house.warehouse.write(rows, "main.t", mode="overwrite", replace_where="id > 0")


def by_path(house: House, rows: DataFrame) -> None:
    house.warehouse.write(rows, f"delta.`{house.location('t')}`", mode="append")


def sql_by_path(house: House, rows: DataFrame) -> None:
    del rows
    house.sql(f"insert into delta.`{house.location('t')}` {ROWS}")


def in_a_transaction(house: House, rows: DataFrame) -> None:
    with house.warehouse.transaction() as together:
        together.write(rows, "main.t", mode="append")


def on_a_branch(house: House, rows: DataFrame) -> None:
    named = house.warehouse.catalog.named_branches("silt")
    named.create("pr_17", "ann")
    house.sql("set silt.branch = 'pr_17'")
    house.warehouse.write(rows, "main.t", mode="append")
    house.sql("reset silt.branch")
    named.merge("pr_17")


def of_a_clone(house: House, rows: DataFrame) -> None:
    house.sql("create table copy deep clone t")
    house.sql("drop table t")
    house.sql("create table t deep clone copy")
    house.warehouse.write(rows, "main.t", mode="append")


def source_by_name(house: House, rows: DataFrame) -> None:
    Tables(house).write(rows, "t")


def source_that_replaces(house: House, rows: DataFrame) -> None:
    Tables(house).write(rows, "t", mode="overwrite")


def source_by_path(house: House, rows: DataFrame) -> None:
    rows.write.format("silt").mode("append").options(**Tables(house).options()).save(house.location("t"))


LEFT_OUT: Final = {
    "append": written("append"),
    "overwrite": written("overwrite"),
    "replace where": where,
    "transaction": in_a_transaction,
    "branch": on_a_branch,
    "clone": of_a_clone,
}
REFUSED: Final = {
    "path": by_path,
    "path in SQL": sql_by_path,
    "data source": source_by_name,
    "data source, overwrite": source_that_replaces,
    "data source, path": source_by_path,
}


@pytest.fixture
def house(house: House) -> House:
    from dbt.adapters.silt import engine as silt

    silt.DataSource.register(house.warehouse.spark)
    return house


def table(house: House, policy: str) -> None:
    house.sql(f"create table t (id bigint, v double, constraint positive expect (v > 0) on violation {policy})")


@pytest.mark.parametrize("door", LEFT_OUT)
def test_rows_that_break_a_rule_are_left_out(house: House, door: str) -> None:
    table(house, "drop row")
    LEFT_OUT[door](house, house.warehouse.spark.sql(ROWS))
    assert house.rows("select * from t") == [(1, 1.0)]
    assert house.rows("select id, _silt_failed from t__quarantine") == [(2, ["positive"]), (3, ["positive"])]


@pytest.mark.parametrize("door", REFUSED)
def test_a_door_that_cannot_leave_rows_out_refuses_them(house: House, door: str) -> None:
    table(house, "drop row")
    with pytest.raises((errors.CheckViolationError, PySparkException), match=r"positive|CHECK constraints"):
        REFUSED[door](house, house.warehouse.spark.sql(ROWS))
    assert house.rows("select * from t") == []


@pytest.mark.parametrize("door", [*LEFT_OUT, *REFUSED])
def test_a_rule_that_fails_the_update_refuses_the_rows(house: House, door: str) -> None:
    table(house, "fail update")
    with pytest.raises((errors.CheckViolationError, PySparkException), match=r"positive|CHECK constraints"):
        {**LEFT_OUT, **REFUSED}[door](house, house.warehouse.spark.sql(ROWS))
    house.sql("reset silt.branch")
    assert house.rows("select * from t") == []
