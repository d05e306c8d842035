"""Work that a table already holds: skipped, and logged."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House

PACKAGE = "dbt.adapters.silt"


@pytest.fixture
def orders(house: House, caplog: pytest.LogCaptureFixture) -> House:
    house.sql("create table orders (id bigint)")
    caplog.set_level(logging.INFO, PACKAGE)
    return house


def insert(house: House, app_id: str, version: int) -> bool:
    """Inserts a row; returns whether it was skipped."""
    return bool(house.sql("insert into orders values (1)", txn=(app_id, version)).collect()[0].skipped)


def said(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.startswith(PACKAGE) and each.levelno == level]


@pytest.mark.connect
def test_application_ids_of_one_table_are_independent(orders: House) -> None:
    skipped = [insert(orders, *txn) for txn in (("a", 5), ("b", 1), ("a", 5), ("b", 2), ("c", 0), ("c", 0), ("b", 1))]
    assert skipped == [False, False, True, False, False, True, True]
    held = {app_id: orders.warehouse.transaction_version("orders", app_id) for app_id in "abcd"}
    assert held == {"a": 5, "b": 2, "c": 0, "d": None}
    assert len(orders.rows("select * from orders")) == 4


def test_a_skip_is_logged_with_version_application_and_table(orders: House, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        insert(orders, "orders-stream", 4)
    expected = "skipped: version 4 of the app id orders-stream is already applied to silt.main.orders, by v1"
    assert said(caplog, logging.INFO) == [expected] * 2
    assert said(caplog, logging.WARNING) == []


def test_a_new_checkpoint_with_an_old_application_id_is_warned_about_once(
    orders: House, caplog: pytest.LogCaptureFixture
) -> None:
    insert(orders, "orders-stream", 41)
    orders.sql("create table other as select * from orders", txn=("orders-stream", 41))
    for version in range(3):
        assert insert(orders.another(), "orders-stream", version)
    assert len(said(caplog, logging.INFO)) == 3
    (warning,) = said(caplog, logging.WARNING)
    assert "silt.main.orders holds version 41 of the app id orders-stream, and version 0 came after it" in warning
    assert "every version up to 41 is skipped" in warning
    assert "a new checkpoint, give it an app id of its own" in warning
    orders.sql("insert into other values (1)", txn=("orders-stream", 0))
    insert(orders, "another-stream", 2)
    insert(orders, "another-stream", 1)
    assert len(said(caplog, logging.WARNING)) == 3


def test_skips_after_new_work_are_warned_about_again(orders: House, caplog: pytest.LogCaptureFixture) -> None:
    for version in (2, 1, 0, 3, 1, 0):
        insert(orders, "orders-stream", version)
    first, second = said(caplog, logging.WARNING)
    assert "holds version 2" in first
    assert "holds version 3" in second


def test_skips_are_not_logged_if_the_setting_log_skips_is_off(
    spark: SparkSession, orders: House, caplog: pytest.LogCaptureFixture
) -> None:
    silent = orders.place.warehouse(spark.newSession(), settings=WarehouseSettings(log_skips=False))
    for version in (1, 1, 0):
        silent.execute("insert into orders values (1)", txn=("job", version))
    assert said(caplog, logging.INFO) == said(caplog, logging.WARNING) == []


@pytest.mark.parametrize("app_id", [" ", None, 7])
def test_a_transaction_with_an_invalid_application_id_is_refused_by_sql_too(orders: House, app_id: object) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="the app id of `txn` cannot be"):
        orders.sql("insert into orders values (1)", txn=(app_id, 1))  # type: ignore[arg-type]
    assert orders.rows("select * from orders") == []


def test_transaction_version_is_answered_for_tables_only(orders: House) -> None:
    ask = orders.warehouse.transaction_version
    insert(orders, "job", 7)
    assert ask("silt.main.orders", "job") == ask(f"delta.`{orders.location('orders')}`", "job") == 7
    assert ask("not_made_yet", "job") is None
    orders.sql("create view shown as select * from orders")
    with pytest.raises(errors.UnsupportedStatementError, match="a view records no transaction identifiers"):
        ask("shown", "job")
    with pytest.raises(errors.SchemaNotFoundError):
        ask("nowhere.orders", "job")
    orders.sql("restore table orders to version as of 0")
    assert ask("orders", "job") is None
