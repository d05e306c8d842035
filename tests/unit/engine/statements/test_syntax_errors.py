"""A mistake in a statement is reported as a syntax error with its position, even if later words could be names."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError, StatementSyntaxError
from tests.unit.engine.house import House


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("select count(*) from (select /x from t)", r"at or near '/' \(line 1, column 30, near `select count"),
        ("select 1\nfrom (select\n  /x from t)", r"at or near '/' \(line 3, column 3, near"),
        ("select * from my-table", r"must be back quoted as: `my-table` \(line 1, column 17, near"),
        ("select x from missing order x", r"at or near 'x'"),
        ("explain select 1 from (select /x from t)", "at or near '/'"),
        ("create table u as select * from (select /x from t)", "at or near '/'"),
        ("create or replace view v as select * from (select /x from t)", "at or near '/'"),
        ("create temporary view v as select * from (select /x from t)", "at or near '/'"),
        ("insert into t select * from (select /x from t)", "at or near '/'"),
        ("insert into t replace where x = 1 select * from (select /x from t)", "at or near '/'"),
        ("insert into values (1)", "expected a query"),
        ("delete from t where x in (select y from (select /x from t))", r"at or near '/' \(line 1, column 29"),
        ("update t set x = (select max(y) from (select /x from t))", "at or near '/'"),
        ("merge into t using (select * from (select /x from t)) s on t.x = s.x when matched then delete", "near '/'"),
        ("merge into t using t s on t.x in (select y from (select /x from t)) when matched then delete", "near '/'"),
        ("optimize t where x in (select y from (select /x from t))", "at or near '/'"),
    ],
)
def test_a_mistake_that_turns_keywords_into_names_is_a_syntax_error(house: House, statement: str, said: str) -> None:
    house.sql("create table t (x int)")
    with pytest.raises(StatementSyntaxError, match=said) as caught:
        house.fetched(statement)
    assert str(caught.value).startswith("[SILT_SYNTAX] ")
    assert str(caught.value).endswith("Correct the statement.")


@pytest.mark.parametrize(
    "statement",
    [
        'select * from "t"',
        'select * from t join "t" on true',
        'select x from main."t"',
        'select x as "t" from t',
        'create table u as select * from "t"',
        'create table "t" (x int)',
        'create view "t" as select 1',
        'insert into "t" select 1',
        'update "t" set x = 1',
        'delete from "t"',
        'merge into "t" using t s on true when matched then delete',
        'merge into t using "t" on true when matched then delete',
        'alter table "t" add column y int',
        'alter table t add column "t" int',
        'drop table "t"',
        'describe "t"',
        'truncate table "t"',
    ],
)
def test_a_name_in_double_quotes_is_reported_as_a_string(house: House, statement: str) -> None:
    house.sql("create table t (x int)")
    with pytest.raises(StatementSyntaxError, match=r'"t".*double quotes enclose a string: .* in backticks, `t`'):
        house.fetched(statement)


def test_every_programming_interface_reports_a_mistake(house: House) -> None:
    query = "select * from (select /x from t)"
    with pytest.raises(StatementSyntaxError, match="near '/'"):
        house.warehouse.schema_of(query)
    with pytest.raises(StatementSyntaxError, match="near '/'"):
        house.warehouse.query(f"{query} where y = :y", {"y": 1})
    with pytest.raises(StatementSyntaxError, match="near '/'"):
        house.warehouse.tables(["t where x in (select y from (select /x from t))"])


@pytest.mark.parametrize(
    "statement",
    [
        "select * from missing",
        "select * from missing version as of 3",
        "select * from missing@v3",
        "select * from missing where x = :x",
        "select * from missing where d = date'2024-99-99'",
        "select * from table_changes('missing', 1)",
        "with c as (select * from missing) select * from c",
        "from missing |> where x = 1",
        "insert into t replace using (x) select * from missing",
        "insert into missing select 1",
        "merge into t using (select * from missing) s (x) on t.x = s.x when matched then delete",
        "merge into t using missing version as of 1 s on t.x = s.x when matched then delete",
        "update t set x = (select max(x) from missing)",
        "optimize t where x in (select x from missing)",
        "create table u shallow clone missing",
        "restore missing to version as of 0",
    ],
)
def test_a_missing_table_in_a_correct_statement_is_reported_as_missing(house: House, statement: str) -> None:
    house.sql("create table t (x int)")
    with pytest.raises(RelationNotFoundError, match=r"silt\.main\.missing: the table or view does not exist"):
        house.fetched(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "\ufeffselect * from t",
        "\ufeff-- a comment\nselect * from t",
        "\n\ufeff \ufeffselect * from (\n\ufeffselect * from t)",
        "with c as (\ufeffselect * from t) select * from c",
    ],
)
def test_a_byte_order_mark_counts_as_a_space(house: House, statement: str) -> None:
    house.sql("\ufeffcreate table t as \ufeffselect 1 as x")
    house.sql("\ufeffcreate view v as\n\ufeffselect * from t")
    assert house.rows(statement) == house.rows("select * from v") == [(1,)]


def test_a_byte_order_mark_in_quotes_is_part_of_the_string(house: House) -> None:
    house.sql("create table t as select '\ufeffa' as x")
    assert house.rows("\ufeffselect x, length('\ufeff') as `\ufeff` from t") == [("\ufeffa", 1)]
    assert house.sql("\ufeffselect x as `\ufeff` from t").columns == ["\ufeff"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("oders", "Did you mean `main.orders`? If not, build the model that creates it."),
        ("main.Order", "Did you mean `main.orders`? If not, build the model that creates it."),
        ("payments", "Did you mean `staging.payments`? If not, build the model that creates it."),
        ("paymnts", "Did you mean `staging.payments`? If not, build the model that creates it."),
        ("elsewhere.payments", "Did you mean `staging.payments`? If not, build the model that creates it."),
        ("x", "Check the name, or build the model that creates it."),
    ],
)
def test_a_missing_table_is_reported_with_similar_names(house: House, name: str, meant: str) -> None:
    house.sql("create schema staging")
    for each in ("main.orders", "staging.payments"):
        house.sql(f"create table {each} (x int)")
    for statement in (f"select * from {name}", f"insert into {name} select 1", f"delete from {name}"):
        with pytest.raises(RelationNotFoundError) as caught:
            house.fetched(statement)
        assert str(caught.value).endswith(meant)
