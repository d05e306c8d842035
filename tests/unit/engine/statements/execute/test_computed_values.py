"""Generated columns and default values, in every statement that writes rows."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    InvalidStatementError,
    NotNullViolationError,
    SiltError,
    TypeMismatchError,
    UnsupportedStatementError,
    ValueNotCastableError,
)
from tests.unit.engine.house import House

ITEMS = "create table items (id int, price int, total int generated always as (id * price) not null)"


@pytest.fixture
def items(house: House) -> House:
    house.sql(ITEMS)
    house.sql("insert into items (id, price) values (2, 10), (3, 10)")
    return house


def test_a_generated_column_omitted_by_an_insert_is_computed(items: House) -> None:
    items.sql("insert into items (price, id) select '5', 4")
    items.sql("insert into items by name select 5 as price, 5 as id")
    items.sql("insert into items values (6, 5, default), (7, 5, default)")
    expected = [(2, 10, 20), (3, 10, 30), (4, 5, 20), (5, 5, 25), (6, 5, 30), (7, 5, 35)]
    assert items.rows("select * from items") == expected
    table = items.delta_rs("items")
    assert sorted(tuple(row.values()) for row in table.to_pyarrow_table().to_pylist()) == expected
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 4)


def test_a_given_value_of_a_generated_column_must_equal_the_computed_value(items: House) -> None:
    items.sql("insert into items values (4, 5, 20)")
    items.sql("insert overwrite items values (1, 1, 1)")
    with pytest.raises(CheckViolationError, match="1 row breaks the rule of the generated column `total`"):
        items.sql("insert into items values (4, 5, 21)")
    with pytest.raises(InvalidStatementError, match="DEFAULT in some rows"):
        items.sql("insert into items values (4, 5, default), (4, 5, 20)")
    assert items.rows("select * from items") == [(1, 1, 1)]


def test_a_generated_column_is_recomputed_when_its_source_columns_change(items: House) -> None:
    items.sql("update items set price = 100 where id = 2")
    items.sql("update items set id = 4, total = default where id = 3")
    source = "using (values (2, 7), (5, 8)) s(id, price) on items.id = s.id"
    items.sql(
        f"merge into items {source} when matched then update set price = s.price "
        "when not matched then insert (id, price) values (s.id, s.price)"
    )
    assert items.rows("select * from items") == [(2, 7, 14), (4, 10, 40), (5, 8, 40)]
    items.sql(
        "merge into items using (values (4, 1), (6, 2)) s(id, price) on items.id = s.id "
        "when matched then update set * when not matched then insert * "
        "when not matched by source and items.id = 5 then update set price = 0"
    )
    assert items.rows("select * from items") == [(2, 7, 14), (4, 1, 4), (5, 0, 0), (6, 2, 12)]
    for set_ in ("total = 3", "price = 2, total = 3"):
        with pytest.raises(CheckViolationError, match="the generated column `total`"):
            items.sql(f"update items set {set_} where id = 2")
        with pytest.raises(CheckViolationError, match="the generated column `total`"):
            items.sql(f"merge into items {source} when matched then update set {set_}")


def test_a_generated_column_is_null_if_its_expression_is_null(house: House) -> None:
    house.sql("create table t (at timestamp, day date generated always as (cast(at as date))) partitioned by (day)")
    house.sql("insert into t (at) values (timestamp'2024-02-29 12:00:00'), (null)")
    assert house.rows("select cast(day as string) from t") == [("2024-02-29",), (None,)]
    with pytest.raises(CheckViolationError):
        house.sql("insert into t values (null, date'2024-02-29')")


def test_the_generated_columns_of_a_table_created_by_a_query_are_computed_or_checked(house: House) -> None:
    columns = "(a int, b int generated always as (a + 1))"
    house.sql(f"create table t {columns} as select 5")
    assert house.rows("select * from t") == [(5, 6)]
    house.sql(f"create or replace table t {columns} as select 6, 7")
    assert house.rows("select * from t") == [(6, 7)]
    with pytest.raises(CheckViolationError):
        house.sql(f"create or replace table t {columns} as select 6, 8")
    with pytest.raises(ColumnNotFoundError):
        house.sql(f"create or replace table t {columns} as select 6, 7, 8")
    ((text,),) = house.rows("show create table t")
    assert "`b` INT GENERATED ALWAYS AS (a + 1)" in str(text)


@pytest.mark.parametrize(
    ("kind", "expression", "error", "problem"),
    [
        ("int", "c + 1", InvalidStatementError, "cannot be resolved"),
        ("int", "other + 1", InvalidStatementError, "cannot be resolved"),
        ("double", "rand()", InvalidStatementError, "deterministic"),
        ("int", "max(a)", InvalidStatementError, "is not allowed in a table's rule"),
        ("int", "row_number() over (order by a)", InvalidStatementError, "is not allowed in a table's rule"),
        ("int", "(select 1)", InvalidStatementError, "it contains a query"),
        ("timestamp", "current_timestamp", InvalidStatementError, "differs from one statement"),
        ("date", "date_add(current_date(), a)", InvalidStatementError, "differs from one statement"),
        ("int", "a +", InvalidStatementError, "cannot be generated"),
        ("bigint", "a", TypeMismatchError, "which is of type int"),
    ],
)
def test_an_expression_that_cannot_generate_a_column_is_refused(
    house: House, kind: str, expression: str, error: type[SiltError], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        house.sql(
            f"create table t (a int, other int generated always as (a), b {kind} generated always as ({expression}))"
        )
    assert house.rows("show tables") == []


def test_the_source_column_of_a_generated_column_cannot_be_altered(items: House) -> None:
    for change in ("drop column price", "rename column price to cost", "alter column price type bigint"):
        with pytest.raises(InvalidStatementError, match="the generated column `total` is computed from it"):
            items.sql(f"alter table items {change}")
    items.sql("alter table items alter column price comment 'each'")
    items.sql("alter table items drop column total")
    items.sql("alter table items rename column price to cost")
    assert items.rows("select * from items") == [(2, 10), (3, 10)]


def test_the_keyword_default_means_the_columns_default(house: House) -> None:
    house.sql("create table t (id int, kind string default 'plain', size int)")
    house.sql("insert into t values (1, default, 3), (2, 'DEFAULT', default)")
    house.sql("insert into t (kind, id) values (default, 3 + 2)")
    house.sql("update t set kind = default, size = 9 where id = 2")
    house.sql(
        "merge into t using (select 1 as id) s on t.id = s.id "
        "when matched then update set size = default when not matched then insert values (s.id, default, default)"
    )
    assert house.rows("select * from t") == [(1, "plain", None), (2, "plain", 9), (5, "plain", None)]


def test_the_keyword_default_may_be_in_the_list_of_a_select_too(items: House) -> None:
    items.sql("create table t (id int, kind string default 'it''s', size int default 7)")
    items.sql("insert into t select id, default, price from items where id = 2")
    items.sql(
        "insert into t (size, id, kind) select default as size, id, `default` from (select 3 id, 'own' `default`)"
    )
    items.sql("insert into t by name select default kind, 4 as id, case when true then 1 end as size")
    items.sql("insert into t with s as (select 5 as id) select distinct id, default, default from s order by id")
    expected = [(2, "it's", 10), (3, "own", 7), (4, "it's", 1), (5, "it's", 7)]
    assert items.rows("select * from t") == expected


def test_default_in_a_select_means_the_computed_value_of_a_generated_column(items: House) -> None:
    items.sql("insert into items select 4, 5, default")
    items.sql("insert into items (total, id, price) select default, 5, 5")
    items.sql("insert into items by name select default as total, 6 as id, 5 as price")
    assert items.rows("select * from items where id > 3") == [(4, 5, 20), (5, 5, 25), (6, 5, 30)]


def test_default_in_a_select_that_belongs_to_no_column_is_refused(items: House) -> None:
    with pytest.raises(InvalidStatementError, match="a star before DEFAULT"):
        items.sql("insert into items select s.*, default from (select 1 as id, 2 as price) s")
    with pytest.raises(InvalidStatementError, match="a DEFAULT has no name"):
        items.sql("insert into items by name select 1 as id, default")


def test_an_added_generated_column_is_computed_for_existing_rows(items: House) -> None:
    items.sql("alter table items add column half double generated always as (price / 2.0d) comment 'of price' after id")
    items.sql("insert into items (id, price) values (4, 5)")
    expected = [(2, 5.0, 10, 20), (3, 5.0, 10, 30), (4, 2.5, 5, 20)]
    assert items.rows("select * from items") == expected
    assert items.rows("select id, half from items version as of 2") == [(2, 5.0), (3, 5.0)]
    with pytest.raises(CheckViolationError, match="the generated column `half`"):
        items.sql("update items set half = 0")
    items.sql("alter table items add columns if not exists (half double generated always as (price / 2.0d), z int)")
    items.sql("alter table items add column twice bigint not null generated always as (cast(id * 2 as bigint))")
    assert items.rows("select id, z, twice from items") == [(2, None, 4), (3, None, 6), (4, None, 8)]


def test_an_invalid_generated_column_is_not_added(items: House) -> None:
    with pytest.raises(InvalidStatementError, match="cannot be generated as total"):
        items.sql("alter table items add column more int generated always as (total + 1)")
    with pytest.raises(TypeMismatchError, match="cannot be generated"):
        items.sql("alter table items add column more string generated always as (id + 1)")
    with pytest.raises(UnsupportedStatementError, match="an identity column cannot be added"):
        items.sql("alter table items add column more bigint generated always as identity")
    with pytest.raises(UnsupportedStatementError, match="cannot become a generated column"):
        items.sql("alter table items change column price price int generated always as (1)")
    assert items.rows("select * from items") == [(2, 10, 20), (3, 10, 30)]


def test_a_default_is_set_changed_and_dropped(house: House) -> None:
    house.sql("create table t (id int, kind string)")
    house.sql("insert into t (id) values (1)")
    house.sql("alter table t alter column kind set default concat('a', 'b')")
    house.sql("insert into t (id) values (2)")
    house.sql("alter table t alter column kind set default 'c'")
    house.sql("insert into t (id) values (3)")
    assert "`kind` STRING DEFAULT 'c'" in str(house.rows("show create table t"))
    house.sql("alter table t alter column kind drop default")
    house.sql("insert into t (id) values (4)")
    assert house.rows("select * from t") == [(1, None), (2, "ab"), (3, "c"), (4, None)]


def test_a_new_column_with_a_default_has_it_in_existing_rows(house: House) -> None:
    house.sql("create table t as select 1 as id")
    house.sql("alter table t add column kind string default 'plain'")
    house.sql("insert into t (id) values (2)")
    assert house.rows("select * from t") == [(1, "plain"), (2, "plain")]


@pytest.mark.parametrize("default", ["other", "id + 1", "array(1)", "max(1) +"])
def test_an_invalid_default_is_refused(house: House, default: str) -> None:
    with pytest.raises(InvalidStatementError):
        house.sql(f"create table t (id int default {default})")
    house.sql("create table t (id int)")
    with pytest.raises(InvalidStatementError):
        house.sql(f"alter table t alter column id set default {default}")


@pytest.mark.parametrize(
    ("type_name", "default"),
    [
        ("tinyint", "300"),
        ("int", "'abc'"),
        ("decimal(3, 2)", "12.5"),
        ("date", "'2020-02-30'"),
        ("array<int>", "array('1', 'x')"),
        ("struct<a: int>", "named_struct('a', 3000000000)"),
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_default_that_its_column_cannot_hold_is_refused(
    house: House, type_name: str, default: str, ansi: str
) -> None:
    house.sql("create table t (id int)")
    house.sql(f"set spark.sql.ansi.enabled = {ansi}")
    refused = "cannot hold its default"
    with pytest.raises(ValueNotCastableError, match=refused):
        house.sql(f"create or replace table t (id int, value {type_name} default {default})")
    with pytest.raises(ValueNotCastableError, match=refused):
        house.sql(f"alter table t add column value {type_name} default {default}")
    house.sql(f"alter table t add column value {type_name}")
    with pytest.raises(ValueNotCastableError, match=refused):
        house.sql(f"alter table t alter column value set default {default}")


@pytest.mark.parametrize(("type_name", "default"), [("tinyint", "'1'"), ("decimal(3, 2)", "1.555"), ("date", "null")])
def test_a_default_of_another_type_is_converted(house: House, type_name: str, default: str) -> None:
    house.sql(f"create table t (id int, value {type_name} default {default})")
    house.sql("insert into t (id) values (1)")
    assert house.rows(f"select value <=> cast({default} as {type_name}) from t") == [(True,)]


def test_a_default_may_stand_before_not_null(house: House) -> None:
    house.sql("create table t (id int, kind string default 'plain' not null, size int default 1 not null comment 'cm')")
    house.sql("insert into t (id) values (1)")
    house.sql("alter table t add column colour string default 'red' not null")
    assert house.rows("select * from t") == [(1, "plain", 1, "red")]
    for column in ("kind", "size", "colour"):
        with pytest.raises(NotNullViolationError, match=column):
            house.sql(f"update t set {column} = null")
