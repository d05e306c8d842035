"""Which statements leave something in a table of ours that doing them once more would do twice."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.statements.execute.written import Effect, effect_of, name_of


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
def test_rows_and_the_making_of_a_table(text: str) -> None:
    statement = parse(text)
    assert (effect_of(statement), name_of(statement)) == (Effect.ROWS, ("a", "b"))


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
def test_the_shape_of_a_table(text: str) -> None:
    statement = parse(text)
    assert (effect_of(statement), name_of(statement)) == (Effect.METADATA, ("a", "b"))


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
def test_nothing_of_either(text: str) -> None:
    assert effect_of(parse(text)) is None
