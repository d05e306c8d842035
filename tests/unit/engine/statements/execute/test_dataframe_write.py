"""Writes a DataFrame's rows into a table, with the modes of Spark's DataFrameWriter."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House, other_rows


def frame(house: House, text: str) -> DataFrame:
    """Returns a DataFrame that is not related to the warehouse."""
    return house.warehouse.spark.sql(text)


@pytest.fixture
def orders(house: House) -> House:
    house.warehouse.write(frame(house, "select id, 'a' as name from range(3)"), "orders")
    return house


@pytest.mark.connect(gate=True)
def test_the_first_append_creates_the_table_and_later_appends_match_columns_by_name(house: House) -> None:
    first = house.warehouse.write(frame(house, "select 1L as id, 'a' as name"), "orders", partition_by="name")
    second = house.warehouse.write(frame(house, "select 'b' as NAME, 2 as id"), "main.orders")
    third = house.warehouse.write(frame(house, "select 3L as id"), "`silt`.main.`orders`", mode="APPEND")
    assert [(each.version, each.rows_inserted, each.skipped) for each in (first, second, third)] == [
        (0, 1, False),
        (1, 1, False),
        (2, 1, False),
    ]
    assert house.rows("select * from orders") == other_rows(house, "orders") == [(1, "a"), (2, "b"), (3, None)]
    assert house.warehouse.catalog.table(_name(house, "orders")).snapshot().partition_columns == ("name",)


@pytest.mark.connect
def test_overwrite_replaces_the_rows_and_keeps_the_tables_constraints(orders: House) -> None:
    orders.sql("alter table orders add constraint small check (id < 100)")
    done = orders.warehouse.write(frame(orders, "select 7L as id, 'z' as name"), "orders", mode="overwrite")
    assert (done.rows_inserted, done.rows_deleted) == (1, 3)
    assert orders.rows("select * from orders") == [(7, "z")]
    with pytest.raises(errors.CheckViolationError):
        orders.warehouse.write(frame(orders, "select 700L as id, 'z' as name"), "orders", mode="overwrite")
    assert orders.rows("select * from orders") == [(7, "z")]


def test_error_and_ignore_do_not_change_an_existing_table(orders: House) -> None:
    rows = frame(orders, "select 9L as id, 'x' as name")
    for mode in ("error", "errorifexists"):
        with pytest.raises(errors.RelationExistsError):
            orders.warehouse.write(rows, "orders", mode=mode)
    ignored = orders.warehouse.write(rows, "orders", mode="ignore")
    assert (ignored.rows_inserted, ignored.version, ignored.skipped) == (0, 0, False)
    assert orders.warehouse.write(rows, "made", mode="error").version == 0
    assert orders.warehouse.write(rows, "made_too", mode="ignore").rows_inserted == 1
    assert len(orders.rows("select * from orders")) == 3


@pytest.mark.parametrize("mode", ["append", "overwrite", "error", "ignore"])
def test_a_write_with_a_transaction_takes_place_once_in_each_mode(house: House, mode: str) -> None:
    rows = frame(house, "select id from range(5)")
    first = house.warehouse.write(rows, "once", mode=mode, txn=("job", 3))
    again = [house.another().warehouse.write(rows, "once", mode=mode, txn=("job", version)) for version in (3, 2)]
    assert not first.skipped
    assert [(each.skipped, each.version, each.recorded) for each in again] == [(True, 0, 3)] * 2
    assert len(house.rows("select * from once")) == 5


def test_new_columns_are_refused_or_merged_into_the_schema_or_replace_it_by_option(orders: House) -> None:
    more = frame(orders, "select 5L as id, true as is_new")
    with pytest.raises(errors.ColumnNotFoundError, match=r"`is_new` is not in the table.*merge_schema=True"):
        orders.warehouse.write(more, "orders")
    orders.warehouse.write(more, "orders", merge_schema=True)
    assert orders.rows("select * from orders where is_new") == [(5, None, True)]
    orders.sql("alter table orders set tblproperties ('team' = 'sales')")
    orders.sql("comment on table orders is 'what was sold'")
    orders.warehouse.write(more, "orders", mode="overwrite", overwrite_schema=True, partition_by=["is_new"])
    snapshot = orders.warehouse.snapshot(_name(orders, "orders"))
    assert orders.rows("select * from orders") == [(5, True)]
    assert snapshot.partition_columns == ("is_new",)
    assert (snapshot.metadata.description, snapshot.metadata.configuration["team"]) == ("what was sold", "sales")
    orders.sql("alter table orders add constraint small check (id < 100)")
    with pytest.raises(errors.UnsupportedStatementError, match="would drop its constraints: small"):
        orders.warehouse.write(more, "orders", mode="overwrite", overwrite_schema=True)


def test_a_replaced_schema_keeps_the_statistics_columns_that_still_exist(orders: House) -> None:
    key = "delta.dataSkippingStatsColumns"
    orders.sql(f"alter table orders set tblproperties ('{key}' = 'name, ID')")
    for query, left in (("select 5L as id, true as is_new", "ID"), ("select true as is_new", None)):
        orders.warehouse.write(frame(orders, query), "orders", mode="overwrite", overwrite_schema=True)
        assert orders.log("orders").snapshot().metadata.configuration.get(key) == left


def test_omitted_defaults_and_generated_columns_are_computed(house: House) -> None:
    house.sql(
        "create table events (id bigint not null, kind string default 'click', day date generated always as "
        "(cast(at as date)), at timestamp)"
    )
    house.warehouse.write(frame(house, "select timestamp'2026-03-01 10:00:00' as at, 1L as id"), "events")
    assert house.rows("select id, kind, cast(day as string) from events") == [(1, "click", "2026-03-01")]
    with pytest.raises(errors.NotNullViolationError):
        house.warehouse.write(frame(house, "select cast(null as bigint) as id"), "events")


@pytest.mark.connect
def test_replace_where_replaces_some_rows_or_creates_a_missing_table(house: House) -> None:
    def write(day: int, first: int) -> None:
        rows = frame(house, f"select {day} as day, id from range({first}, {first + 2})")
        house.warehouse.write(
            rows, "days", mode="overwrite", replace_where=f"day = {day}", txn=(f"day-{day}", first), partition_by="day"
        )

    for day, first in ((1, 0), (2, 0), (1, 10), (1, 10)):
        write(day, first)
    assert house.rows("select * from days") == [(1, 10), (1, 11), (2, 0), (2, 1)]
    with pytest.raises(errors.ReplaceWhereMismatchError):
        house.warehouse.write(
            frame(house, "select 3 as day, 0L as id"), "days", mode="overwrite", replace_where="day = 1"
        )


def test_a_table_can_be_overwritten_with_rows_read_from_itself(orders: House) -> None:
    kept = orders.warehouse.table("orders").where("id > 0")
    assert orders.warehouse.write(kept, "orders", mode="overwrite").rows_deleted == 3
    assert orders.rows("select id from orders") == [(1,), (2,)]


def test_a_dataframe_of_another_session_is_written_by_the_table_names_of_this_session(orders: House) -> None:
    orders.sql("create schema shop")
    orders.sql("use shop")
    other = orders.warehouse.spark.newSession()
    orders.warehouse.write(other.sql("select 1 as id"), "orders")
    assert orders.rows("select * from shop.orders") == [(1,)]
    assert len(orders.rows("select * from main.orders")) == 3


def test_a_write_means_the_table_even_if_a_temporary_view_has_its_name(orders: House) -> None:
    rows = frame(orders, "select 8L as id, 'v' as name")
    rows.createOrReplaceTempView("orders")
    orders.warehouse.write(rows, "orders")
    assert len(orders.rows("select * from main.orders")) == 4


def test_of_two_writers_that_create_a_table_the_second_appends_to_the_firsts_table(house: House) -> None:
    other = house.another()
    catalog = house.warehouse.catalog
    found, made = catalog.new_table, []  # type: ignore[var-annotated]

    def new_table(name: Any, **arguments: Any) -> Any:
        """Creates the table as another writer after this writer has looked for it."""
        if not made:
            made.append(other.warehouse.write(frame(other, "select 1 as id"), "race"))
        return found(name, **arguments)

    catalog.new_table = new_table  # type: ignore[assignment, method-assign]
    done = house.warehouse.write(frame(house, "select 2 as id"), "race", txn=("job", 1))
    assert (made[0].version, done.version) == (0, 1)
    assert house.rows("select * from race") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mode": "upsert"}, errors.InvalidArgumentError, "unknown write mode 'upsert'"),
        ({"mode": None}, errors.InvalidArgumentError, "unknown write mode None"),
        ({"overwriteSchema": True}, errors.InvalidArgumentError, "no option `overwriteSchema`"),
        ({"overwrite_schema": True}, errors.InvalidArgumentError, "mode `overwrite` only"),
        ({"replace_where": "id = 1"}, errors.InvalidArgumentError, "mode `overwrite` only"),
        (
            {"mode": "overwrite", "overwrite_schema": True, "replace_where": "id = 1"},
            errors.InvalidArgumentError,
            "replaces all rows",
        ),
        ({"partition_by": ["id"]}, errors.InvalidArgumentError, "partitioned by nothing"),
        ({"txn": ("job", True)}, errors.InvalidArgumentError, "version of `txn` cannot be True"),
        ({"txn": ("job", -1)}, errors.InvalidArgumentError, "cannot be -1"),
        ({"txn": ("job", 1.0)}, errors.InvalidArgumentError, "cannot be 1.0"),
        ({"txn": ("job", "1")}, errors.InvalidArgumentError, "cannot be '1'"),
        ({"txn": ("job", 2**63)}, errors.InvalidArgumentError, "cannot be 9223372036854775808"),
        ({"txn": ("", 1)}, errors.InvalidArgumentError, "app id of `txn` cannot be ''"),
        ({"txn": (None, 1)}, errors.InvalidArgumentError, "cannot be None"),
        ({"txn": "job"}, errors.InvalidArgumentError, "has two parts"),
        ({"table": "spark_catalog.default.orders"}, errors.InvalidNameError, "is not in a warehouse"),
        ({"table": "default.orders"}, errors.InvalidNameError, "is not in a warehouse"),
        ({"table": "nowhere.orders"}, errors.SchemaNotFoundError, "the schema `nowhere` does not exist"),
        ({"table": "orders v"}, errors.StatementSyntaxError, "expected the end"),
        ({"table": "shown"}, errors.RelationExistsError, "a view with that name exists"),
        ({"table": ""}, errors.StatementSyntaxError, "a table's name"),
        ({"table": 7}, errors.InvalidArgumentError, "name of a table cannot be 7"),
    ],
)
def test_invalid_writes_are_refused_before_anything_is_written(
    orders: House, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    orders.sql("create view shown as select 1 as id")
    before = sorted(orders.root.rglob("*"))
    with pytest.raises(error, match=message):
        orders.warehouse.write(
            frame(orders, "select 1L as id, 'n' as name"),
            **{"table": "orders"} | arguments,
        )
    assert sorted(orders.root.rglob("*")) == before
    assert orders.warehouse.spark.catalog.listTables() == []


def test_a_stream_or_an_object_other_than_a_dataframe_is_refused(orders: House) -> None:
    stream = orders.warehouse.spark.readStream.format("rate").load()
    with pytest.raises(errors.InvalidArgumentError, match="foreachBatch"):
        orders.warehouse.write(stream, "orders")
    with pytest.raises(errors.InvalidArgumentError, match=r"of type list.*createDataFrame"):
        orders.warehouse.write([(1, "a")], "orders")  # type: ignore[arg-type]


def _name(house: House, table: str) -> Any:
    return house.warehouse._session.namespace.name_in_warehouse((table,))
