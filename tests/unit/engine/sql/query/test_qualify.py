"""Qualifies the unqualified names of one table's columns in an expression, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError
from dbt.adapters.silt.engine.sql.query.column_names import Scope
from tests.unit.engine.sql.sql_soup import soups

SCOPE = Scope(
    "s",
    (
        *("id", "Name", "s", "struct col", "xs", "größe", "back`quote", "x"),
        *("day", "date", "end", "desc", "key", "type", "interval", "user", "order", "both", "current_date", "not"),
    ),
    "t",
    "WHEN NOT MATCHED",
)

NAMES = [
    ("id", "`s`.id"),
    ("NAME", "`s`.NAME"),
    ("`struct col`.a", "`s`.`struct col`.a"),
    ("`back``quote`", "`s`.`back``quote`"),
    ("größe + GRÖSSE + GRÖßE", "`s`.größe + GRÖSSE + `s`.GRÖßE"),
    ("s.id", "s.id"),
    ("`S`.`id`", "`S`.`id`"),
    ("s", "`s`.s"),
    ("s.s.id", "s.s.id"),
    ("other.id + other", "other.id + other"),
    ("id.a.b + other", "`s`.id.a.b + other"),
    ("coalesce(id, s.id, 0) + length(name)", "coalesce(`s`.id, s.id, 0) + length(`s`.name)"),
    ("-id * ~ day", "-`s`.id * ~ `s`.day"),
    ("((id))", "((`s`.id))"),
    ("user = 'x' and key", "`s`.user = 'x' and `s`.key"),
    ("desc", "`s`.desc"),
]
LITERALS = [
    ("'id' || other /* id */", "'id' || other /* id */"),
    ("\"id\" || 'it''s id'", "\"id\" || 'it''s id'"),
    ("id -- day\n + day", "`s`.id -- day\n + `s`.day"),
    ("r'id' || x'00'", "r'id' || x'00'"),
    ("date '2020-01-01' < date", "date '2020-01-01' < `s`.date"),
    ("day + interval 1 day", "`s`.day + interval 1 day"),
    ("interval '1' day + interval", "interval '1' day + `s`.interval"),
    ("interval -1 day 2 day", "interval -1 day 2 day"),
    ("current_date", "current_date"),
    ("current_date()", "current_date()"),
    ("null is not null", "null is not null"),
]
CALLS = [
    ("id(day)", "id(`s`.day)"),
    ("id.day(key)", "id.day(`s`.key)"),
    ("f(id => key, day => 1)", "f(id => `s`.key, day => 1)"),
    ("extract(day from date)", "extract(day from `s`.date)"),
    ("dateadd(day, 1, date)", "dateadd(day, 1, `s`.date)"),
    ("date_add(day, 1)", "date_add(`s`.day, 1)"),
    ("datediff(day, date, f(1, 2))", "datediff(day, `s`.date, f(1, 2))"),
    ("trim(both name from key)", "trim(both `s`.name from `s`.key)"),
    ("trim(both from key)", "trim(both from `s`.key)"),
    ("trim(name from key) || trim(from id)", "trim(`s`.name from `s`.key) || trim(from `s`.id)"),
    ("substring(name from id for 2)", "substring(`s`.name from `s`.id for 2)"),
    ("struct(id as day, key)", "struct(`s`.id as day, `s`.key)"),
    ("named_struct('day', day).day.id", "named_struct('day', `s`.day).day.id"),
    ("xs[0].id + xs[id]", "`s`.xs[0].id + `s`.xs[`s`.id]"),
    ("count(*) + count(distinct id)", "count(*) + count(distinct `s`.id)"),
    ("struct(s.*, xs.*)", "struct(s.*, `s`.xs.*)"),
    ("sum(id) filter (where key)", "sum(`s`.id) filter (where `s`.key)"),
]
TYPES = [
    ("cast(id as date)", "cast(`s`.id as date)"),
    ("cast(id as array<date>)", "cast(`s`.id as array<date>)"),
    ("try_cast(xs as map<date, struct<day: date>>)[key]", "try_cast(`s`.xs as map<date, struct<day: date>>)[`s`.key]"),
    ("id::date + date", "`s`.id::date + `s`.date"),
    ("xs::array<struct<day: date>> = key", "`s`.xs::array<struct<day: date>> = `s`.key"),
    ("id::int < key", "`s`.id::int < `s`.key"),
    ("id::decimal(10, 2) + key", "`s`.id::decimal(10, 2) + `s`.key"),
]
LAMBDAS = [
    ("transform(xs, id -> id + s.id)", "transform(`s`.xs, id -> id + s.id)"),
    ("transform(xs, x -> x + id)", "transform(`s`.xs, x -> x + `s`.id)"),
    ("transform(xs, ID -> id.day) || id", "transform(`s`.xs, ID -> id.day) || `s`.id"),
    ("transform(xs, `id` -> id)", "transform(`s`.xs, `id` -> id)"),
    (
        "aggregate(id, 0, (id, x) -> id + x + day, x -> id)",
        "aggregate(`s`.id, 0, (id, x) -> id + x + `s`.day, x -> `s`.id)",
    ),
    ("filter(xs, x -> exists(x, id -> id) or id)", "filter(`s`.xs, x -> exists(x, id -> id) or `s`.id)"),
    ("filter(xs, t -> t.id > id)", "filter(`s`.xs, t -> t.id > `s`.id)"),
]
CONDITIONS = [
    ("case when id then day else key end", "case when `s`.id then `s`.day else `s`.key end"),
    ("case id when 1 then end end", "case `s`.id when 1 then `s`.end end"),
    ("id between day and key or not user", "`s`.id between `s`.day and `s`.key or not `s`.user"),
    ("id not between day and key", "`s`.id not between `s`.day and `s`.key"),
    ("id ! in (day, 1)", "`s`.id ! in (`s`.day, 1)"),
    ("id is not distinct from day", "`s`.id is not distinct from `s`.day"),
    ("name not like key escape '/'", "`s`.name not like `s`.key escape '/'"),
    ("(id, day) = (key, 1)", "(`s`.id, `s`.day) = (`s`.key, 1)"),
    ("id <=> day", "`s`.id <=> `s`.day"),
]
SUBQUERIES = [
    ("id in (select id from names)", "`s`.id in (select id from names)"),
    ("exists (select 1 where id) and id", "exists (select 1 where id) and `s`.id"),
    ("((select id from t)) + id", "((select id from t)) + `s`.id"),
    ("(with c as (select id) select id from c) + id", "(with c as (select id) select id from c) + `s`.id"),
    ("select id from t where t.id", "select id from t where t.id"),
]
NOT_SURE = [
    ("not sql at all (", "not sql at all ("),
    ("'not closed || id", "'not closed || id"),
    ("id day", "id day"),
    ("", ""),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [*NAMES, *LITERALS, *CALLS, *TYPES, *LAMBDAS, *CONDITIONS, *SUBQUERIES, *NOT_SURE],
)
def test_unqualified_names_of_one_sides_columns_get_its_alias(text: str, expected: str) -> None:
    assert SCOPE.qualify(text) == expected


@pytest.mark.parametrize("text", ["t.id + 1", "`T`.`id`", "f(x, t.*)", "case when t.id then 1 end", "x[t.id]"])
def test_a_column_of_the_other_side_is_refused(text: str) -> None:
    with pytest.raises(ColumnNotFoundError, match="WHEN NOT MATCHED cannot refer to"):
        SCOPE.qualify(text)


@given(soups())
def test_any_text_only_gains_qualifiers_and_a_second_time_gains_none(text: str) -> None:
    scope = Scope("q", ("a", "b", "source"), "other", "A clause")
    once = scope.qualify(text)
    assert re.sub(r"`q`\.", "", once) == text
    assert scope.qualify(once) == once


def _expressions() -> st.SearchStrategy[tuple[str, str]]:
    """Draws expressions, each with its expected result."""
    leaf = st.sampled_from(
        [("id", "`s`.id"), ("`day`", "`s`.`day`")]
        + [(text, text) for text in ("s.id", "1", "'id'", "other", "date '2020-01-01'", "interval 1 day")]
    )
    frames = (
        *("({})", "f({}, {})", "cast({} as date)", "case when {} then {} else {} end", "{} + {}", "not {}"),
        *("{} and {}", "{} in ({}, {})", "{} between {} and {}", "struct({} as day)", "{} /* id */ || {}"),
        *("f(id => {})", "extract(day from {})", "named_struct('id', {}).id", "transform(xs_, p -> p + {})"),
        *("{} is not null", "(select id from z)", "{} not like {}"),
    )

    def framed(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
        def fill(frame: str, parts: list[tuple[str, str]]) -> tuple[str, str]:
            given, wanted = zip(*parts, strict=True)
            return frame.format(*given), frame.format(*wanted)

        return st.builds(fill, st.sampled_from(frames), st.lists(inner, min_size=3, max_size=3))

    return st.recursive(leaf, framed, max_leaves=12)


@given(_expressions())
def test_names_are_qualified_at_any_depth(pair: tuple[str, str]) -> None:
    text, expected = pair
    assert SCOPE.qualify(text) == expected
