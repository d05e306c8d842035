"""Statements of users, through `Warehouse.sql`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import PurePath

import pytest
from pyspark.sql.functions import col

from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House
from tests.unit.engine.place import data_files


@pytest.fixture
def orders(house: House) -> House:
    house.sql("create table orders (id bigint not null, name string, amount decimal(20, 2)) comment 'what was sold'")
    house.sql("insert into orders values (1, 'a', 1.5), (2, 'it\\'s `x`', null), (3, 'Ünïcode 🎉', 9007199254740993)")
    return house


@pytest.mark.connect
def test_written_rows_are_read_back_by_this_and_by_another_engine(orders: House) -> None:
    expected = [(1, "a", Decimal("1.50")), (2, "it's `x`", None), (3, "Ünïcode 🎉", Decimal("9007199254740993.00"))]
    assert orders.rows("select * from orders") == expected
    other = orders.delta_rs("orders").to_pyarrow_table().to_pylist()
    assert sorted(tuple(row.values()) for row in other) == expected


def test_a_change_returns_its_metrics(orders: House) -> None:
    row = orders.sql("update orders set name = 'z' where id < 3").collect()[0]
    assert (row.operation, row.version, row.num_updated_rows, row.skipped) == ("UPDATE", 2, 2, False)


@pytest.mark.connect(gate=True)
def test_a_transaction_is_applied_once(orders: House) -> None:
    for _ in range(2):
        row = orders.sql("insert into orders values (4, 'd', 4)", txn=("load", 7)).collect()[0]
    assert (row.skipped, row.version) == (True, 2)
    assert orders.sql("delete from orders where id = 4", txn=("load", 6)).collect()[0].skipped
    assert len(orders.rows("select id from orders where id = 4")) == 1


def test_earlier_versions_can_be_read(orders: House) -> None:
    orders.sql("delete from orders where id = 1")
    assert len(orders.rows("select * from orders version as of 1")) == 3
    assert len(orders.rows("select * from orders@v1")) == 3
    assert orders.warehouse.table("orders", version=0).count() == 0
    (row,) = orders.sql("describe history orders limit 1").selectExpr("cast(timestamp as string) as text").collect()
    newest = row.text
    assert len(orders.rows(f"select * from orders timestamp as of '{newest}'")) == 2
    assert len(orders.rows(f"select * from orders timestamp as of timestamp'{newest}' - interval 0 seconds")) == 2
    for beyond in (f"timestamp'{newest}' + interval 1 second", "current_date() + 2"):
        with pytest.raises(errors.VersionNotFoundError, match="is after the newest version 2"):
            orders.sql(f"select * from orders timestamp as of {beyond}")
    with pytest.raises(errors.VersionNotFoundError, match="version 0 was committed at"):
        orders.sql("select * from orders timestamp as of '2001-01-01'")


@pytest.mark.connect(gate=True)
def test_a_merge_supports_all_kinds_of_clauses(orders: House) -> None:
    orders.sql(
        """
        merge into orders as t
        using (select 1L as id, 'new' as name union all select 2L, 'gone' union all select 5L, 'five') as s
        on t.id = s.id
        when matched and s.name = 'gone' then delete
        when matched then update set name = s.name
        when not matched then insert (id, name) values (s.id, s.name)
        when not matched by source then update set name = concat(t.name, '!')
        """
    )
    assert orders.rows("select id, name from orders") == [(1, "new"), (3, "Ünïcode 🎉!"), (5, "five")]


def test_a_merge_with_schema_evolution_adds_the_columns_of_the_source(orders: House) -> None:
    orders.sql(
        "merge with schema evolution into orders t using (select 1L id, 'n' name, 2.5 amount, true as paid) s "
        "on t.id = s.id when matched then update set * when not matched then insert *"
    )
    assert orders.rows("select id, paid from orders") == [(1, True), (2, None), (3, None)]


@pytest.mark.connect
def test_rows_are_replaced_by_condition_and_by_key(orders: House) -> None:
    orders.sql("insert into orders replace where id >= 2 select 7L, 'seven', 7.0")
    assert orders.rows("select id from orders") == [(1,), (7,)]
    orders.sql("insert into orders replace using (id) values (7, 'again', 8), (9, 'nine', 9)")
    assert orders.rows("select id, name from orders") == [(1, "a"), (7, "again"), (9, "nine")]
    with pytest.raises(errors.ReplaceWhereMismatchError):
        orders.sql("insert into orders replace where id >= 2 select 1L, 'outside', 1.0")


def test_columns_are_added_renamed_and_dropped(orders: House) -> None:
    orders.sql("alter table orders add column paid boolean comment 'whether' after id")
    orders.sql("alter table orders rename column name to label")
    orders.sql("alter table orders drop column amount")
    assert orders.sql("select * from orders").columns == ["id", "paid", "label"]
    assert orders.rows("select id, label from orders where id = 1") == [(1, "a")]


@pytest.mark.connect
def test_constraints_are_enforced_and_can_be_dropped(orders: House) -> None:
    orders.sql("alter table orders add constraint known check (id < 100)")
    with pytest.raises(errors.CheckViolationError, match="known"):
        orders.sql("insert into orders values (100, 'far', 1)")
    orders.sql("alter table orders drop constraint known")
    orders.sql("insert into orders values (100, 'far', 1)")
    with pytest.raises(errors.NotNullViolationError, match="id"):
        orders.sql("insert into orders values (null, 'none', 1)")


def test_a_column_omitted_by_an_insert_gets_its_default(house: House) -> None:
    house.sql("create table t (id int, kind string default 'plain', at date default date '2024-02-29')")
    house.sql("insert into t (id) values (1)")
    house.sql("merge into t using (select 2 as id) s on t.id = s.id when not matched then insert (id) values (s.id)")
    assert house.rows("select id, kind, cast(at as string) from t") == [(n, "plain", "2024-02-29") for n in (1, 2)]


@pytest.mark.connect(gate=True)
def test_views_show_the_current_rows_of_their_tables(orders: House) -> None:
    orders.sql("create view cheap (number, what) as select id, name from orders where amount < 5 -- cheap ones")
    orders.sql("create temporary view mine as select number from cheap")
    orders.sql("insert into orders values (4, 'd', 2)")
    assert orders.rows("select what from cheap c where c.number > 0") == [("a",), ("d",)]
    assert orders.rows("select * from mine join orders on number = id") == orders.rows(
        "select number, o.* from cheap join orders o on cheap.number = o.id"
    )


def test_table_and_a_name_is_a_query(orders: House) -> None:
    orders.sql("create view cheap as select id from orders where amount < 5")
    every, cheap = orders.rows("select id from orders"), orders.rows("select * from cheap")
    assert orders.rows("table cheap order by cheap.id") == orders.rows("select * from (table cheap)") == cheap
    assert orders.rows("table orders |> select id |> union all table cheap") == sorted([*every, *cheap])
    orders.sql("create table kept changed keys (id) as table orders")
    orders.sql("insert into kept by name replace changed keys (id) table orders")
    assert orders.rows("table kept") == orders.rows("table orders")


def test_tables_can_be_joined_with_tables_of_spark(orders: House) -> None:
    orders.warehouse.spark.range(2, 9).createOrReplaceTempView("numbers")
    query = "with big as (select * from orders where id > 1) select n.id from numbers n join big using (id)"
    assert orders.rows(query) == [(2,), (3,)]
    assert orders.rows("select main.orders.id from main.orders where silt.main.orders.name = 'a'") == [(1,)]


def test_tables_can_be_named_by_their_path(orders: House) -> None:
    place = f"delta.`{orders.place.beside('else where').location}`"
    orders.sql(f"create table {place} as select 1 as a")
    orders.sql(f"insert into {place} values (2)")
    orders.sql(f"update {place} set a = 20 where a = 2")
    orders.sql(f"merge into {place} as t using (select 3 as a) s on t.a = s.a when not matched then insert *")
    orders.sql(f"delete from {place} where a = 1")
    assert orders.rows(f"select * from {place}") == [(20,), (3,)]
    assert orders.sql(f"describe history {place}").count() == 5


def test_the_history_and_the_columns_of_a_table_can_be_queried(orders: House) -> None:
    orders.sql("delete from orders where id = 3")
    history = orders.sql("describe history orders").collect()
    assert [(row.version, row.operation) for row in history] == [(2, "DELETE"), (1, "WRITE"), (0, "CREATE TABLE")]
    assert history[0].operationMetrics["numDeletedRows"] == "1"
    assert orders.sql("describe detail orders").collect()[0].description == "what was sold"
    assert ("id", "bigint", None) in orders.rows("describe orders")
    assert orders.rows("show tables") == [("main", "orders", False)]


def test_the_relations_of_a_schema_are_shown_with_their_kinds(orders: House) -> None:
    orders.sql("create view main.`order ids` as select id from orders")
    table, view = orders.sql("show table extended in main like 'order*'").sort(col("tableName").desc()).collect()
    assert (table.namespace, table.tableName, view.tableName) == ("main", "orders", "order ids")
    assert {"Type: TABLE", "Provider: delta", " |-- id: long (nullable = false)"} <= set(table.information.split("\n"))
    assert {"Type: VIEW", "View Text: select id from orders"} <= set(view.information.split("\n"))


def test_the_partitions_of_a_table_are_shown_including_null(orders: House) -> None:
    orders.sql("create table parts partitioned by (day) as select 1 as id, d as day from values ('a'), (null) as t(d)")
    assert orders.rows("show partitions parts") == [("day=a",), ("day=null",)]


@pytest.mark.parametrize(
    "statement",
    [
        "create schema nowhere.main",
        "select * from nowhere.main.orders",
        "insert into nowhere.main.orders select * from main.orders",
        "create table nowhere.main.orders as select 1 as id",
    ],
)
def test_an_unattached_database_is_named_with_the_attached_ones(orders: House, statement: str) -> None:
    with pytest.raises(errors.SchemaNotFoundError, match=r"nowhere: the database does not exist\. Use one of silt"):
        orders.sql(statement)


def test_statements_on_a_catalog_of_spark_are_passed_to_spark(orders: House) -> None:
    orders.sql("create table spark_catalog.default.theirs using parquet as select 1 as id")
    assert orders.rows("select * from spark_catalog.default.theirs") == [(1,)]
    orders.sql("drop table spark_catalog.default.theirs")


def test_a_rename_of_another_kind_names_the_kind(orders: House) -> None:
    orders.sql("create view seen as select * from orders")
    for statement, message in (("alter table seen", "it is a view, not a table"), ("alter view orders", "is a table")):
        with pytest.raises(errors.RelationNotFoundError, match=message):
            orders.sql(f"{statement} rename to other")


def test_a_table_is_renamed_truncated_and_dropped(orders: House) -> None:
    orders.sql("alter table orders rename to sales")
    orders.sql("truncate table sales")
    assert orders.rows("select * from sales") == []
    orders.sql("drop table sales")
    with pytest.raises(errors.RelationNotFoundError):
        orders.sql("select * from main.sales")
    orders.sql("drop table if exists sales")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("create table `..` (a int)", errors.InvalidNameError),
        ("create table main.`a/b` (a int)", errors.InvalidNameError),
        ("create table `a'b` (a int)", errors.InvalidNameError),
        ("create table `a``b` (a int)", errors.InvalidNameError),
        (f"create table {'n' * 300} (a int)", errors.InvalidNameError),
        ("create schema `..`", errors.InvalidNameError),
        ("create table nowhere.t (a int)", errors.SchemaNotFoundError),
        ("use nowhere", errors.SchemaNotFoundError),
        ("create table orders (a int)", errors.RelationExistsError),
        ("create table void_column as select null as a", errors.TypeMismatchError),
        ("select * from silt.main.missing", errors.RelationNotFoundError),
        ("insert into orders select 1", errors.ColumnNotFoundError),
        ("insert into orders values (array(1), 'x', 1)", errors.TypeMismatchError),
        ("insert into orders values ('one', 'x', 1)", errors.ValueNotCastableError),
        ("insert into orders by name select 1 as nothing", errors.ColumnNotFoundError),
        ("select * from orders version as of 77", errors.VersionNotFoundError),
        ("optimize orders full", errors.UnsupportedStatementError),
        ("create table csv_table (a int) using csv", errors.UnsupportedStatementError),
        ("alter table orders partition (a = 1) compact", errors.UnsupportedStatementError),
        ("merge into orders t using (select 1L id union all select 1L) s on t.id = s.id "
         "when matched then delete when not matched then insert (id) values (s.id)",
         None),
        ("merge into orders t using (select 1L id, 'p' n union all select 1L, 'q') s on t.id = s.id "
         "when matched then update set name = s.n", errors.MultipleSourceRowsError),
        ("set spark.sql.files.ignoreMissingFiles = true", errors.InvalidSettingError),
        ("select 1; select 2", errors.SiltError),
        ("selec 1 from orders", errors.SiltError),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name_and_changes_nothing(
    orders: House, statement: str, error: type[errors.SiltError] | None
) -> None:
    before = orders.rows("select * from orders")
    if error is None:
        orders.sql(statement)
        return
    with pytest.raises(error) as raised:
        orders.sql(statement)
    assert str(raised.value).startswith(f"[{type(raised.value).code}]")
    assert orders.rows("select * from orders") == before
    assert orders.place.store("").list_folders("") == ["main"]


def test_no_statement_on_a_table_of_this_engine_is_passed_to_spark(orders: House) -> None:
    for statement in ("repair table orders", "load data inpath '/tmp/x' into table orders", "lock table main.orders"):
        with pytest.raises(errors.SiltError):
            orders.sql(statement)


@pytest.mark.connect(gate=True)
def test_a_missing_data_file_is_named(orders: House) -> None:
    log = orders.log("orders")
    (victim,) = data_files(log)
    log.store.delete(victim)
    with pytest.raises(errors.DataFileMissingError, match=PurePath(victim).name):
        orders.sql("update orders set name = 'b'")


@pytest.mark.in_folders("in an object store a folder has no name")
def test_a_folder_that_is_not_a_table_is_reported_as_no_table(orders: House) -> None:
    (orders.root / "main" / "stray" / "year=2026").mkdir(parents=True)
    with pytest.raises(errors.NotATableError, match="stray"):
        orders.sql("select * from silt.main.stray")


@pytest.mark.in_folders("in an object store a name is there with its table")
def test_a_table_whose_creation_failed_is_reported_as_not_created(orders: House) -> None:
    creation = "create table late as select id / (id - 1) as ratio from orders"
    with pytest.raises(errors.DataRejectedError):
        orders.sql(creation)
    for text in ("select * from late", "insert into silt.main.late values (1)", "describe late", "drop table late"):
        with pytest.raises(errors.RelationNotFoundError, match=r"silt\.main\.late.* not built yet"):
            orders.sql(text)
    orders.sql("create table late as select 1 as ratio")
    assert orders.rows("select * from late") == [(1,)]


def test_execute_immediate_runs_the_statement_in_its_string(orders: House) -> None:
    assert orders.rows("execute immediate 'select id from orders where id < ' || 2") == [(1,)]
    orders.sql("declare variable change string default 'delete from orders where id = 1'")
    for _ in range(2):
        row = orders.sql("/* by name */ execute immediate change;", txn=("load", 1)).collect()[0]
        assert (row.operation, row.version) == ("DELETE", 2)
    assert row.skipped
    assert orders.rows("select id from orders") == [(2,), (3,)]
    orders.sql("drop temporary variable change")


@pytest.mark.parametrize(
    ("statement", "error", "said"),
    [
        ("execute immediate 'select 1' into x", errors.UnsupportedStatementError, "INTO is not supported"),
        ("execute immediate 'select ?' using 1", errors.UnsupportedStatementError, "USING is not supported"),
        ("execute immediate cast(null as string)", errors.InvalidStatementError, "is null"),
        ("execute immediate 'execute immediate 1'", errors.UnsupportedStatementError, "inside of another statement"),
        ("execute immediate", errors.StatementSyntaxError, "expected a statement as a string"),
        ("execute immediate 'selec 1'", Exception, "selec"),
    ],
)
def test_an_invalid_execute_immediate_is_refused(
    house: House, statement: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        house.sql(statement).collect()
