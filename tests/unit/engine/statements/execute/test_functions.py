"""Functions of a warehouse: created, called from every kind of statement, changed and dropped."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    FunctionNotFoundError,
    InvalidStatementError,
    RelationExistsError,
    RelationNotFoundError,
    SchemaNotFoundError,
    UnsupportedStatementError,
)
from tests.unit.engine.house import House, side_by_side


@pytest.fixture
def shop(house: House) -> House:
    """Four orders, and two functions, one of which reads the orders."""
    house.sql("create table main.orders as select id, id * 10 as amount from range(4)")
    house.sql("create function main.twice(x double) returns double return x * 2")
    house.sql(
        "create function main.below(top bigint default 3) returns bigint "
        "return select count(*) from orders o where o.id < top"
    )
    return house


def value(house: House, query: str) -> object:
    [(found,)] = house.rows(query)
    return found


def test_a_function_is_called_by_any_of_its_names_in_any_case(shop: House) -> None:
    assert shop.rows("select silt.main.twice(1), `main`.`TWICE`(2), Twice(x => 3), twice(twice(1))") == [(2, 4, 6, 4)]
    assert shop.another().rows("select main.twice(1), 'main.twice(1)'") == [(2, "main.twice(1)")]


def test_a_function_reads_the_newest_version_of_its_tables_at_each_call(shop: House) -> None:
    assert shop.rows("select main.below(), below(2), (select max(id) from main.orders)") == [(3, 2, 3)]
    shop.sql("insert into main.orders select 0, main.twice(4)")
    assert value(shop, "select below(2)") == 3
    assert shop.rows("select id, below(id) from main.orders where below(id) > 3") == [(3, 4)]


def test_functions_can_be_called_in_functions_views_and_tables(shop: House) -> None:
    shop.sql("create schema other")
    shop.sql("create function other.more(x double) returns double return silt.main.twice(x) + main.below()")
    shop.sql("create view main.v as select id, twice(id) as t, other.more(id) as m from orders where twice(id) > 2")
    assert shop.rows("select * from main.v") == [(2, 4.0, 7.0), (3, 6.0, 9.0)]
    shop.sql("use other")
    assert shop.rows("select t from main.v") == [(4.0,), (6.0,)], "the view's own schema is looked in"
    with pytest.raises(RelationNotFoundError):
        shop.sql("select twice(1)")
    assert value(shop, "select more(1)") == 5.0


def test_every_statement_that_changes_rows_may_call_functions(shop: House) -> None:
    shop.sql("update main.orders set amount = main.twice(amount) where main.twice(id) = 2")
    shop.sql("delete from main.orders where main.below(id) = 2")
    shop.sql(
        "merge into main.orders o using (select 3 as id, main.twice(1) as amount) s on twice(o.id) = twice(s.id) "
        "when matched then update set amount = twice(s.amount) when not matched then insert *"
    )
    assert shop.rows("select * from main.orders") == [(0, 0), (1, 20), (3, 4)]
    shop.sql("insert into main.orders replace where id = main.twice(0) select 0, 7")
    shop.sql("create table main.copied as select id, main.twice(amount) as amount from main.orders")
    assert shop.rows("select * from main.copied") == [(0, 14.0), (1, 40.0), (3, 8.0)]


def test_an_unnamed_column_of_a_call_has_the_functions_name(shop: House) -> None:
    assert shop.sql("select main.twice(1)").columns == ["silt.main.twice(1)"]
    shop.sql("create view main.v as select twice(id) from orders")
    assert shop.sql("select * from main.v").columns == ["silt.main.twice(id)"]


def test_a_function_may_return_a_table(shop: House) -> None:
    shop.sql(
        "create function main.first_orders(n bigint) returns table (a bigint, b bigint) "
        "return select id, amount from orders where id < n"
    )
    assert shop.rows("select first_orders.a, first_orders.b from main.first_orders(2)") == [(0, 0), (1, 10)]
    assert shop.rows("select o.id, x.b from orders o, lateral first_orders(o.id) as x where o.id < 3") == [
        (1, 0),
        (2, 0),
        (2, 10),
    ]


def test_parameters_may_be_qualified_by_the_functions_name(shop: House) -> None:
    shop.sql(
        "create function main.own(id bigint) returns bigint return select max(id) from orders o where o.id < own.id"
    )
    assert shop.rows("select own(2), own(3)") == [(1, 2)]
    shop.sql("create function main.part(part struct<a: int>) returns int return part.a")
    assert value(shop, "select part(named_struct('a', 5))") == 5


def test_sparks_built_in_functions_take_precedence_over_the_warehouses(shop: House) -> None:
    shop.sql("create function main.upper(x string) returns string return 'ours'")
    shop.sql("create temporary function twice(x int) returns int return -x")
    assert shop.rows("select upper('a'), main.upper('a'), twice(1), main.twice(1)") == [("A", "ours", -1, 2.0)]


def test_a_function_and_a_table_may_share_a_name(shop: House) -> None:
    shop.sql("create table main.twice as select 3 as twice")
    assert shop.rows("select twice, twice(twice), twice.twice from twice") == [(3, 6.0, 3)]
    shop.sql("drop function main.twice")
    assert shop.rows("select * from main.twice") == [(3,)]


def test_an_existing_function_is_created_again_only_with_or_replace(shop: House) -> None:
    with pytest.raises(RelationExistsError, match="or replace"):
        shop.sql("create function main.twice(x int) returns int return 0")
    shop.sql("create function if not exists main.twice(x int) returns int return 0")
    assert value(shop, "select twice(1)") == 2
    other = shop.another()
    assert value(other, "select main.twice(1)") == 2
    shop.sql("create or replace function main.twice(x string) returns string return x || x")
    assert [value(each, "select main.twice('a')") for each in (shop, other)] == ["aa", "aa"]


def test_dropping_a_schema_drops_its_functions(shop: House) -> None:
    shop.sql("create schema gone")
    shop.sql("create function gone.f() return 1")
    with pytest.raises(RelationExistsError):
        shop.sql("drop schema gone")
    shop.sql("drop schema gone cascade")
    shop.sql("create schema gone")
    with pytest.raises(RelationNotFoundError, match="the function does not exist"):
        shop.sql("select gone.f()")
    with pytest.raises(RelationNotFoundError):
        shop.sql("drop function gone.f")
    shop.sql("drop function if exists gone.f")


def test_the_error_for_a_missing_function_names_similar_relations_and_functions(shop: House) -> None:
    with pytest.raises(RelationNotFoundError, match=r"silt\.main\.twise: .*call silt\.main\.twice"):
        shop.sql("select main.twise(1)")
    with pytest.raises(FunctionNotFoundError, match=r"nothing_like_it` does not exist\. Check the name"):
        shop.sql("select nothing_like_it(1)")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("select cuont(id) from main.orders", r"the function `cuont` does not exist\. Did you mean `count`"),
        ("select twise(1)", r"the function `twise` does not exist\. Did you mean .*`twice`"),
        ("select iff(true, 1, 2)", r"the function `iff` does not exist\. In Spark, write if\(\.\.\.\) or case\."),
        ("select * from rang(3)", r"the function `rang` does not exist\. Did you mean `range`"),
        ("create table t as select cuont(1) as x", "`count`"),
        ("create view v as select cuont(1) as x", "`count`"),
        ("create function main.f(x int) returns int return cuont(x)", "`count`"),
        ("insert into numbers select cuont(1)", "`count`"),
        ("update numbers set x = twise(1)", "`twice`"),
        ("delete from numbers where x = (select cuont(1))", "`count`"),
        ("merge into numbers n using (select cuont(1) as y) on x = y when matched then delete", "`count`"),
    ],
)
def test_the_error_for_an_unknown_function_names_similar_functions(shop: House, statement: str, said: str) -> None:
    shop.sql("create table numbers as select 1 as x")
    with pytest.raises(FunctionNotFoundError, match=said) as caught:
        shop.fetched(statement)
    assert str(caught.value).startswith("[SILT_FUNCTION_NOT_FOUND] ")


def test_the_error_names_similar_functions_in_every_programming_interface(shop: House) -> None:
    for call in (
        lambda: shop.warehouse.schema_of("select cuont(1)"),
        lambda: shop.warehouse.query("select cuont(:x)", {"x": 1}),
        lambda: shop.warehouse.tables(["rang(3)"]),
    ):
        with pytest.raises(FunctionNotFoundError, match="Did you mean"):
            call()


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("create function main.f(x int) returns int return y", ColumnNotFoundError),
        ("create function main.f(x int) returns int return select a from nothing", RelationNotFoundError),
        ("create function main.f(x int) returns int return main.nothing(x)", RelationNotFoundError),
        ("create function main.f(x int) returns int return f(x - 1)", InvalidStatementError),
        ("create function main.f(x int) returns int return silt.main.F(x - 1)", InvalidStatementError),
        ("create function main.f(x int) returns int return select a from passing", InvalidStatementError),
        ("create function main.f(x int) returns bigint return sum(x)", InvalidStatementError),
        ("create function nowhere.f(x int) returns int return x", SchemaNotFoundError),
        ("create function main.f(x int) returns int language scala as 'x'", UnsupportedStatementError),
        ("create function main.f as 'a.b.C'", UnsupportedStatementError),
    ],
)
def test_a_function_that_cannot_be_called_is_not_stored(shop: House, statement: str, error: type[Exception]) -> None:
    shop.sql("create temporary view passing as select 1 as a")
    with pytest.raises(error):
        shop.sql(statement)
    assert "silt.main.f" not in [row[0] for row in shop.rows("show user functions in main")]


def test_functions_that_call_each_other_are_refused(shop: House) -> None:
    shop.sql("create function main.more(x double) returns double return twice(x) + 1")
    with pytest.raises(InvalidStatementError, match=r"main\.twice\(\) -> silt\.main\.more\(\) -> silt\.main\.twice"):
        shop.sql("create or replace function main.twice(x double) returns double return more(x)")
    assert value(shop, "select more(1)") == 3


@pytest.mark.parametrize(
    "statement",
    [
        "alter table main.orders add constraint positive check (main.twice(amount) >= 0)",
        "create table main.t (a int, check (twice(a) > 1))",
        "create table main.t (a int default main.twice(1))",
        "create table main.t (a int, b double generated always as (main.twice(a)))",
        "alter table main.orders add column c double default twice(1)",
        "alter table main.orders alter column amount set default twice(1)",
        "create temporary function f(x int) returns double return main.twice(x)",
        "create temporary function f(x int) returns bigint return select count(*) from main.orders",
    ],
)
def test_objects_of_spark_that_outlive_the_warehouse_cannot_call_its_functions(shop: House, statement: str) -> None:
    with pytest.raises(UnsupportedStatementError):
        shop.sql(statement)


def test_a_temporary_view_may_call_functions(shop: House) -> None:
    shop.sql("create temporary view doubled as select main.twice(21) as x")
    assert value(shop, "select x from doubled") == 42
    shop.sql("create or replace function main.twice(x double) returns double return x * -2")
    assert value(shop, "select x from doubled") == -42


def test_functions_are_shown_and_described(shop: House) -> None:
    shop.sql(
        "create function main.third(x int comment 'a number') returns int deterministic comment 'of it' return x / 3"
    )
    assert shop.rows("show user functions in silt.main") == [
        ("silt.main.below",),
        ("silt.main.third",),
        ("silt.main.twice",),
    ]
    assert shop.rows("show functions like 'tw*|uppe*'") == [("silt.main.twice",), ("upper",)]
    assert [row[0].split(":")[0] for row in shop.sql("describe function below").collect()] == [
        "Function",
        "Type",
        "Input",
        "Returns",
    ]
    text = "\n".join(row[0] for row in shop.sql("describe function extended main.third").collect())
    for fact in ("silt.main.third", "x int 'a number'", "of it", "true", "x / 3"):
        assert fact in text
    assert "Upper" in str(shop.rows("describe function upper"))


def test_concurrent_readers_see_a_replaced_function_either_old_or_new(shop: House) -> None:
    """Each of two definitions has one value for all rows, whichever a reader finds."""
    shop.sql("create function main.flag() returns string return 'old'")
    reader = shop.another()
    results: set[object] = set()

    def replace() -> None:
        for text in ("new", "old", "new"):
            shop.sql(f"create or replace function main.flag() returns string return '{text}'")

    def read() -> None:
        for _ in range(4):
            rows = reader.rows("select distinct main.flag() from range(3)")
            assert len(rows) == 1
            results.update(row[0] for row in rows)

    side_by_side([replace, read])
    assert results <= {"old", "new"}
    assert value(reader, "select main.flag()") == "new"
