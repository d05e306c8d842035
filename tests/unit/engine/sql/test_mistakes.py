"""A text that Spark cannot parse has a remedy if its mistake is known, and none if the mistake is only guessed."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.sql.foreign_names import type_remedy
from dbt.adapters.silt.engine.sql.mistakes import lateral_remedy, near_beginning, remedy


@pytest.mark.parametrize(
    ("sql", "before"),
    [
        ("select a, from t", "`from`"),
        ("select a,\nFROM t where x = 1", "`FROM`"),
        ("select a from t group by a, order by a", "`order`"),
        ("select a from t order by a, limit 5", "`limit`"),
        ("select a from t where a in (1, 2,)", "`)`"),
        ("select a,, b from t", "`,`"),
        ("with c as (select 1), select * from c", "`select`"),
        ("select a, -- the last\n from t", "`from`"),
    ],
)
def test_a_comma_at_the_end_of_a_list_is_named(sql: str, before: str) -> None:
    assert remedy(sql, "x") == f"Remove the comma before {before}, or add what is missing after it"


def test_a_comma_at_the_end_of_the_text_is_named() -> None:
    assert remedy("select a, b,  ") == "Remove the comma at the end, or add what is missing after it"


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
    ],
)
def test_the_syntax_of_another_platform_and_a_misspelt_keyword_are_named(sql: str, at: str, said: str) -> None:
    assert said in str(remedy(sql, at))


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
    ],
)
def test_a_type_of_another_platform_has_sparks_type(written: str, meant: str) -> None:
    assert str(type_remedy(written)).startswith(f"In Spark, the type is {meant}")


@pytest.mark.parametrize("written", ["geography", "array<text>", "struct<a: int64>", "", "number(x)", "blub"])
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
