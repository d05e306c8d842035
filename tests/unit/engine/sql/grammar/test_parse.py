"""The parser's result for each kind of statement."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import example, given

from dbt.adapters.silt.engine.kernel.errors import SiltError, StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from tests.unit.engine.sql.sql_fixtures import pairs, shown
from tests.unit.engine.sql.sql_soup import openings, soups


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        *pairs("tables"),
        *pairs("alterations"),
        *pairs("rows"),
        *pairs("views_and_schemas"),
        *pairs("questions"),
        *pairs("session_and_maintenance"),
    ],
)
def test_a_statement_is_parsed_as_expected(sql: str, expected: str) -> None:
    assert shown(parse(sql)) == expected


@pytest.mark.parametrize(("sql", "expected"), pairs("refused"))
def test_an_invalid_statement_is_refused_with_its_error(sql: str, expected: str) -> None:
    with pytest.raises((StatementSyntaxError, UnsupportedStatementError)) as caught:
        parse(sql)
    assert caught.value.problem == expected


def test_a_syntax_error_names_the_line_and_the_column() -> None:
    with pytest.raises(StatementSyntaxError) as caught:
        parse("create table t (\n  a int,\n  b int not nul\n)")
    assert caught.value.details == {"line": 3, "column": 9}
    assert "near `" in str(caught.value)


def test_comments_around_a_statement_and_trailing_semicolons_are_not_part_of_it() -> None:
    statement = parse('/* {"app": "dbt"} */\n-- first; comment\nselect 1 -- why; not\n;; /* after */')
    assert statement == ast.Query(text="select 1")


def test_comments_and_hints_inside_a_query_are_kept() -> None:
    text = "insert into t select /*+ broadcast(s) */ a, -- a\n '/* no comment */' from s"
    statement = parse(text)
    assert isinstance(statement, ast.Insert)
    assert statement.query == text.removeprefix("insert into t ")


def test_keywords_are_recognised_in_any_case_and_names_keep_their_case() -> None:
    assert parse("DELETE From Main.`My Table` As T WHERE T.Id = 1") == parse(
        "DELETE From Main.`My Table` As T WHERE T.Id = 1"
    )
    assert shown(parse("dElEtE fRoM Main.`My Table` T wHeRe T.Id = 1")) == (
        "Delete(table=('Main', 'My Table'), alias='T', condition='T.Id = 1')"
    )


def test_a_query_keyword_in_a_string_or_in_backticks_is_not_a_keyword() -> None:
    statement = parse("update t set `where` = 'where x', b = 2 where `set` = ' where '")
    assert shown(statement) == (
        "Update(table=('t'), assignments=(Assignment(column=('where'), value=\"'where x'\"), "
        "Assignment(column=('b'), value='2')), condition=\"`set` = ' where '\")"
    )


def test_a_statement_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UnsupportedStatementError):
        parse("explain " * 3000 + "select 1")


@given(soups() | openings())
@example("create table t (a")
@example("insert into t replace where")
@example("with a")
@example("merge into t using")
@example("`")
@example("describe")
def test_parsing_any_text_fails_only_with_a_silt_error(sql: str) -> None:
    try:
        statement = parse(sql)
    except SiltError:
        return
    assert statement.text in sql or statement.text == ""


@given(openings())
def test_every_text_in_a_parsed_statement_is_cut_from_the_users_text(sql: str) -> None:
    try:
        statement = parse(sql)
    except SiltError:
        return
    if sql.lstrip().lower().startswith("with"):
        return  # the common table expressions move
    for name in ("query", "condition"):
        text = getattr(statement, name, None)
        assert text is None or text in sql
    assert dataclasses.is_dataclass(statement)
