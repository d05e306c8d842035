"""A text that Spark cannot parse has a remedy if its mistake is known, and none if the mistake is only guessed."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.mistakes import (
    alias_remedy,
    clause_remedy,
    lateral_remedy,
    near_beginning,
    remedy,
    selected_strings,
    statement_remedy,
    unknown_units,
)
from dbt.adapters.silt.engine.sql.portable_types import type_remedy


@pytest.mark.parametrize(
    ("sql", "before"),
    [
        ("select a, from t", "`from`"),
        ("select a,\nFROM t where x = 1", "`FROM`"),
        ("select a from t group by a, order by a", "`order`"),
        ("select a from t order by a, limit 5", "`limit`"),
        ("select a from t where a in (1, 2,)", "`)`"),
        ("with c as (select 1), select * from c", "`select`"),
        ("select a, -- the last\n from t", "`from`"),
    ],
)
def test_a_comma_at_the_end_of_a_list_is_named(sql: str, before: str) -> None:
    assert remedy(sql, "x") == f"Remove the comma before {before}, or add the missing words after it"


def test_a_missing_argument_names_the_quotes_that_texts_for_macros_of_dbt_need() -> None:
    said = str(remedy("select split_part(name, ,, 1) from t", ","))
    assert said.startswith("Remove the comma before `,`, or add the missing words after it; a text for a macro of dbt")
    assert said.endswith("""`dbt.split_part('a', "','", 1)`""")


def test_a_comma_at_the_end_of_the_text_is_named() -> None:
    assert remedy("select a, b,  ") == "Remove the comma at the end, or add the missing words after it"


@pytest.mark.parametrize(
    "sql",
    [
        "select a, from from t x y z",
        "select a, `from` b c from t",
        "select a, limit, where from t x y z",
        "select ',', from from t x y z",
        "with a as (select 1), select as (select 2) select * from a x y z",
        "select a from t where a in ('x, from y') b",
        "select a ordered b from t order by a",
        "select a form b from t",
        "select double, precision from t x y z",
        "select exclude(a) from t x y z",
        "select a, select max(b) from t",
        "select 'unclosed",
    ],
)
def test_a_text_with_another_mistake_has_no_remedy(sql: str) -> None:
    assert remedy(sql, "b") is None
    assert remedy(sql, "z") is None


@pytest.mark.parametrize(
    ("sql", "at", "said"),
    [
        ("selct id from orders", "selct", "`select` instead of `selct`"),
        ("select id from orders limit 1, 2", ",", "`limit count offset start`"),
        ("select {'a': 1}", "{", "`named_struct('a', 1)`"),
        ("select id form orders", "orders", "`from` instead of `form`"),
        ("select id from orders wehre id = 1", "id", "`where` instead of `wehre`"),
        ("select id from orders groupby id", "id", "`group by` instead of `groupby`"),
        ("select * exclude (id) from t", "(", r"* except (...)"),
        ("select top 3 * from t", "3", "`limit`"),
        ("select name ~ 'a' from t", "~", "`rlike`"),
        ("select [a] from t", "[", "backticks"),
        ("select cast(a as double precision) from t", "precision", "`double`"),
        ("select safe_cast(a as int) from t", "as", "`try_cast(x as type)`"),
        ("select * exclude id from t", "id", "`* except (...)`"),
        ("select * replace (a + 1 as a) from t", "(", "`* except (a), new_value as a`"),
        ("select * rename (a as b) from t", "(", "`* except (a), a as new_name`"),
        ("select approximate count(distinct a) from t", "(", "`approx_count_distinct(x)`"),
        ("select array[1, 2]", ",", "`array(1, 2)`"),
        ("select as struct a from t", "a", "`select struct(...)`"),
        ("select * from t sample (10)", "(", "`tablesample (10 percent)`"),
        ("select group_concat(a separator ',') from t", "separator", "`listagg(x, ',')`"),
        ("select a from t where a in unnest([1])", "in", "`array_contains(list, x)`"),
        ("select a from t at (offset => -60)", "(", "`t version as of 1`"),
        ("select array_agg(a ignore nulls limit 1) from t", "ignore", "`array_agg` leaves nulls out"),
        ("select array_agg(a order by b) from t", "order", "`array_sort(array_agg(x))`"),
        ("select cast(a as varchar(max)) from t", "max", "the type is `string`"),
        ("select a from t where a !~ 'x'", "!", "`not rlike`"),
        ("select a # the key\nfrom t", "#", "a comment begins with `--`"),
        ("select $$text$$", "$$", "single quotes"),
        ("select \u201cname\u201d from t", "\u201c", "typographic quotation marks"),
        ("select * into copy from t", "copy", "`create table ... as select ...`"),
        ("with a as (select 1) b as (select 2) select * from a", "b", "Write a comma before `b`"),
        ("select count(*) from t group by a where a = 1", "where", "Write WHERE before GROUP BY"),
        ("select * from t left outer u on t.a = u.a", "u", "Write `left join`"),
        ("select * from t join u using id", "id", "Write `using (id)`"),
        ("alter session set timezone = 'UTC'", "session", "`set time zone 'UTC'`"),
        ("select a from t order by a limit 5\n  limit 10", "limit", "`dbt show` adds one, unless it has `--limit -1`"),
    ],
)
def test_the_syntax_of_another_platform_and_a_misspelt_keyword_are_named(sql: str, at: str, said: str) -> None:
    assert said in str(remedy(sql, at))


@pytest.mark.parametrize(
    ("sql", "at"),
    [
        ("select a from t order by b order by c", "order"),
        ("select a from t where b where c", "where"),
        ("insert into t x y", "x"),
        ("select a from t full outer join u z", "z"),
        ("merge into t using u on x y", "y"),
    ],
)
def test_a_clause_in_its_place_has_no_remedy(sql: str, at: str) -> None:
    assert remedy(sql, at) is None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("create materialized view v as select 1", "an incremental model"),
        ("create unique index i on t (id)", "their statistics"),
        ("CREATE SEQUENCE s", "identity"),
        ("grant select on t to bob", "the warehouse's folder"),
        ("show grants on t", "the warehouse's folder"),
        ("updte t set a = 1", "Did you mean `update`?"),
        ("create thing t", None),
        ("explode t", None),
    ],
)
def test_a_statement_of_another_platform_has_an_alternative(sql: str, said: str | None) -> None:
    found = statement_remedy(sql)
    assert found is None if said is None else said in str(found)


def test_a_clause_of_another_platform_has_an_alternative() -> None:
    said = [clause_remedy(text) for text in ("TEMPORARY", "add new int", "modify column a int", "owner to bob")]
    assert said == [
        "Write `create temporary view`",
        "Write `add column name type`",
        "Write `alter column name type new_type`",
        "Leave it out",
    ]


@pytest.mark.parametrize(
    ("sql", "is_alias"),
    [
        ("select id, sum(a) as s from t where s > 1 group by id", True),
        ("select row_number() over (order by a) as S from t where s = 1", True),
        ("select id from t where s > 1", False),
        ("select a as s from t group by s", False),
        ("select a as s, s + 1 from t where a > 1", False),
        ("select 'unclosed", False),
    ],
)
def test_only_an_alias_that_where_uses_is_named(sql: str, is_alias: bool) -> None:
    assert ("QUALIFY" in (alias_remedy(sql, "s") or "")) is is_alias


def test_only_a_word_like_the_beginning_of_a_statement_is_taken_for_it() -> None:
    assert [near_beginning(word) for word in ("selct", "UPDTE", "explode", "grant")] == ["select", "update", None, None]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("number(10, 2)", "`decimal(10, 2)`"),
        ("NUMBER", "`decimal(38, 0)`"),
        ("varchar2(10)", "`varchar(10)`"),
        ("varchar", "`string`"),
        ("datetime", "`timestamp_ntz`"),
        ("datetime(6)", "`timestamp_ntz`"),
        ("int64", "`bigint`"),
        ("unsigned", "`bigint`"),
        ("super", "`variant`"),
        ("jsonb", "`variant`, or `string`"),
    ],
)
def test_a_type_of_another_platform_has_sparks_type(written: str, meant: str) -> None:
    assert str(type_remedy(written)).startswith(f"In Spark, the type is {meant}")


@pytest.mark.parametrize("written", ["int identity(1, 1)", "integer autoincrement", "INT AUTO_INCREMENT"])
def test_a_generated_key_is_written_as_an_identity_column(written: str) -> None:
    assert type_remedy(written) == "In Spark, write `bigint generated always as identity`"


@pytest.mark.parametrize("written", ["geography", "", "number(x)", "blub", "array<geography>"])
def test_an_unknown_type_has_no_remedy(written: str) -> None:
    assert type_remedy(written) is None


@pytest.mark.parametrize(
    "sql",
    [
        "select id, x from orders cross join unnest(items) as t(x)",
        "select id, x from orders o, explode(o.items) as t(x)",
        "select id from orders, table(flatten(items))",
        "select (select max(x) from orders, unnest(items) t(x)) from days",
        "with a as (select 1) select * from a join inline(b) on true",
    ],
)
def test_elements_that_are_joined_without_lateral_are_named(sql: str) -> None:
    assert "`cross join lateral explode(a) as t(x)`" in (lateral_remedy(sql) or "")


@pytest.mark.parametrize(
    "sql",
    [
        "select id, explode(items) from orders",
        "select id from orders cross join lateral explode(items) as t(x)",
        "select id from orders lateral view explode(items) t as x",
        "select * from explode(array(1))",
        "select a from t where f(b, explode(c))",
        "select concat(a, inline(b)) from t",
        "select 'unclosed",
    ],
)
def test_any_other_call_needs_no_lateral(sql: str) -> None:
    assert lateral_remedy(sql) is None


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('select "id", a, "Full Name" from t', ["id", "Full Name"]),
        ('with c as (select distinct "id" from t) select * from c', ["id"]),
        ('select a, (select "b" from u) as b, "c" from t union all select "d" from v', ["b", "c"]),
        ('select id, source from t union all select id, "web" from u', []),
        ("""select 1 as id, 'a' as source union select 2, "web" from u""", []),
        ('select count(*), "id" from t where x = "y"', ["id"]),
        ('select "web" as channel, "x" y from t', []),
        ('select concat("a", "b"), coalesce(a, "b"), a in ("x", "y") as z from t', []),
        ('select "a", "b"', []),
        ('select case when a then "b" else "c" end, a from t where b in ("c", "d")', []),
        ("select 'id' from t", []),
        ("select 'unclosed", []),
    ],
)
def test_names_in_double_quotes_are_found_in_select_lists_only(sql: str, found: list[str]) -> None:
    assert selected_strings(sql) == found


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("strng", "Did you mean `string`?"),
        ("INTT", "Did you mean `int`?"),
        ("array<intt>", "Did you mean `array<int>`?"),
        ("struct<a: bigint, b: map<string, doubl>>", "Did you mean `struct<a: bigint, b: map<string, double>>`?"),
        ("array<text>", "In Spark, write `array<string>`"),
        ("struct<a: int64>", "In Spark, write `struct<a: bigint>`"),
        ("decimal(40,2)", "A decimal has at most 38 digits: write `decimal(38, s)`, or store a string"),
        ("decimal(40)", "A decimal has at most 38 digits: write `decimal(38, s)`, or store a string"),
    ],
)
def test_a_misspelt_type_and_a_decimal_that_is_too_long_have_a_remedy(written: str, meant: str) -> None:
    assert type_remedy(written) == meant


def test_units_for_which_date_trunc_returns_null_are_found() -> None:
    sql = "select date_trunc('dayy', t), Date_Trunc(\"isoweek\", t), date_trunc('MONTH', t), date_trunc(unit, t), 'day'"
    assert unknown_units(sql) == ["dayy", "isoweek"]
    assert unknown_units("select 'open") == []
