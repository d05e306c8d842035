"""The effects of statements: whether they may change something, and the table that they change."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.ast import Effect
from dbt.adapters.silt.engine.sql.grammar.parse import parse


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
def test_a_reading_statement_changes_nothing(text: str) -> None:
    assert not parse(text).changes_something


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
def test_a_writing_or_unknown_statement_may_change_something(text: str) -> None:
    assert parse(text).changes_something


@pytest.mark.parametrize(
    "text",
    [
        "create table a.b (id bigint)",
        "create table if not exists a.b as select 1 as id",
        "create or replace table a.b as select 1 as id",
        "create table a.b like a.c",
        "create or replace table a.b shallow clone a.c",
        "insert into a.b values (1)",
        "with c as (select 1) insert overwrite a.b select * from c",
        "insert into a.b replace where id = 1 select 1",
        "delete from a.b",
        "update a.b set id = 1",
        "merge into a.b as t using a.c as s on t.id = s.id when matched then delete",
        "truncate table a.b",
        "restore table a.b to version as of 1",
    ],
)
def test_statements_that_write_rows_or_create_a_table_have_the_effect_rows(text: str) -> None:
    statement = parse(text)
    assert (statement.effect, statement.changed_table) == (Effect.ROWS, ("a", "b"))


@pytest.mark.parametrize(
    "text",
    [
        "alter table a.b add columns (c int)",
        "alter table a.b drop columns (c)",
        "alter table a.b rename column c to d",
        "alter table a.b add constraint some check (id > 0)",
        "alter table a.b drop constraint some",
        "alter table a.b set tblproperties ('k' = 'v')",
        "comment on table a.b is 'text'",
        "comment on column a.b.c is 'text'",
    ],
)
def test_statements_that_change_a_tables_metadata_have_the_effect_metadata(text: str) -> None:
    statement = parse(text)
    assert (statement.effect, statement.changed_table) == (Effect.METADATA, ("a", "b"))


@pytest.mark.parametrize(
    "text",
    [
        "select * from a.b",
        "describe history a.b",
        "create or replace view a.b as select 1 as id",
        "alter view a.b set tblproperties ('k' = 'v')",
        "create or replace temporary view b as select 1 as id",
        "create schema if not exists a",
        "comment on schema a is 'text'",
        "create function a.f() returns int return 1",
        "optimize a.b",
        "vacuum a.b",
        "drop table a.b",
        "alter table a.b rename to a.c",
        "set spark.sql.shuffle.partitions = 2",
        "use a",
    ],
)
def test_other_statements_have_neither_effect(text: str) -> None:
    assert parse(text).changed_table is None
