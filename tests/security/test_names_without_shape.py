"""Names with invisible characters look like other names: no statement creates one."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError
from tests.unit.engine.house import House

STATEMENTS = (
    "create table `a{}` (id int)",
    "create table u (`a{}` int)",
    "create table u (s struct<`a{}`: int>)",
    "create table u (s array<struct<b: map<string, struct<`a{}`: int>>>>)",
    "create table u (id int, constraint `a{}` check (id > 0))",
    "create table u (id int, constraint `a{}` primary key (id))",
    "create table u (id int) partitioned by (`a{}` string)",
    "create table u as select 1 as `a{}`",
    "create or replace table t as select named_struct('a{}', 1) as s",
    "create table u as select array(named_struct('b', named_struct('a{}', 1))) as s",
    "create table u as select from_json('', 'struct<`a{}`: int>') as s",
    "create schema `a{}`",
    "create view `a{}` as select 1 as id",
    "create view v (`a{}`) as select 1 as id",
    "create view v as select 1 as `a{}`",
    "create function `a{}`(x int) returns int return x",
    "create function f(`a{}` int) returns int return 1",
    "create function f(x int) returns table (`a{}` int) return select 1",
    "alter table t rename to `a{}`",
    "alter table t add columns (`a{}` int)",
    "alter table t add columns (n struct<`a{}`: int>)",
    "alter table t add columns (s.`a{}` int)",
    "alter table t rename column id to `a{}`",
    "alter table t rename column s.b to `a{}`",
    "alter table t add constraint `a{}` check (id > 0)",
    "alter table t add constraint `a{}` primary key (id)",
    "alter view w rename to `a{}`",
    "insert with schema evolution into t select 1 as id, named_struct('b', 1) as s, 2 as `a{}`",
    "insert with schema evolution into t select 1 as id, named_struct('b', 1, 'a{}', 2) as s",
    "merge with schema evolution into t using (select 9 as id, 1 as `a{}`) as n on t.id = n.id "
    "when not matched then insert *",
)


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\ufeff", "\u00ad", "\U000e0041"], ids=ascii)
def test_no_statement_creates_a_name_with_invisible_characters(house: House, character: str) -> None:
    house.sql("create table t (id int, s struct<b: int>)")
    house.sql("create view w as select 1 as id")
    version = house.log("t").snapshot().version
    taken = []
    for statement in STATEMENTS:
        try:
            house.sql(statement.format(character))
        except InvalidNameError as error:
            assert character not in str(error), statement
        except Exception as error:
            taken.append((statement, repr(error)[:150]))
        else:
            taken.append((statement, "taken"))
        for each in ("table if exists u", "view if exists v", "function if exists f"):
            house.sql(f"drop {each}")
    assert "\n".join(map(str, taken)) == ""
    assert house.log("t").snapshot().version == version
