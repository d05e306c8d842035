"""Stored texts keep their meaning between sessions with different quoting; Spark's quoting is tested with Spark."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.sql.query.quotes import (
    SPARKS_DEFAULT,
    Quotes,
    as_read,
    at_rest,
    constant,
    for_any_session,
    for_session,
    without_quoted,
)
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize
from tests.unit.engine.sql.sql_soup import soups

NAMES = Quotes(double_quoted_identifiers=True)
PLAIN_BACKSLASHES = Quotes(escaped_string_literals=True)
ONE_AFTER_THE_OTHER = Quotes(consecutive_string_literals=True)
ALL = tuple(Quotes(*each) for each in itertools.product((False, True), repeat=3))

values = st.text(st.sampled_from("ab'\"\\%_n0u \n"), max_size=8)


def _value(text: str, quotes: Quotes) -> str:
    """Returns the value of a constant expression."""
    tokens = tokenize(text)
    if tokens[0].word == "CAST":
        return bytes.fromhex(tokens[3].text[1:-1]).decode()
    assert all(token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED) for token in tokens[:-1]), text
    assert not (quotes.double_quoted_identifiers and any(token.kind is Kind.DOUBLE_QUOTED for token in tokens))
    return "".join(map(quotes.value, tokens[:-1]))


@given(values, st.sampled_from(ALL))
def test_a_value_is_written_so_that_the_session_reads_it_back(value: str, quotes: Quotes) -> None:
    assert _value(quotes.constant(value), quotes) == value
    assert _value(constant(value), quotes) == value


@given(st.lists(values, min_size=1, max_size=3), st.sampled_from(ALL), st.sampled_from(ALL))
def test_a_stored_constant_means_the_same_to_every_session(parts: list[str], made: Quotes, read: Quotes) -> None:
    given_text = " ".join(filter(lambda text: text[0] in "'\"", map(made.constant, parts))) or "''"
    stored = at_rest(as_read(given_text, made), made)
    assert _value(stored, SPARKS_DEFAULT) == _value(given_text, made)
    assert _value(for_session(stored, read), read) == _value(given_text, made)
    assert _value(for_any_session(stored), read) == _value(given_text, made)


@given(soups(), st.sampled_from(ALL))
def test_any_text_is_converted_or_is_a_syntax_error(text: str, quotes: Quotes) -> None:
    assume("\ufeff" not in text)  # byte order marks are left out
    with contextlib.suppress(StatementSyntaxError):
        stored = at_rest(as_read(text, quotes), quotes)
        assert for_session(for_any_session(stored), quotes) == for_any_session(stored)
    assert as_read(text, SPARKS_DEFAULT) == at_rest(text, SPARKS_DEFAULT) == for_session(text, SPARKS_DEFAULT) == text


def test_names_in_double_quotes_become_names_in_backticks() -> None:
    sql = """select "a""b", "c`d", 'x"y', `e"f` from "t" -- "no name" """
    assert as_read(sql, NAMES) == """select `a"b`, `c``d`, 'x"y', `e"f` from `t` -- "no name" """
    assert as_read(sql, PLAIN_BACKSLASHES) == sql


def test_backslashes_keep_the_meaning_that_the_session_gave_them() -> None:
    assert at_rest(r"a rlike '\d' or b = 'c'", PLAIN_BACKSLASHES) == r"a rlike '\\d' or b = 'c'"
    assert for_session(r"a rlike '\\d'", PLAIN_BACKSLASHES) == r"a rlike '\d'"
    assert for_session("a = 'it''s'", PLAIN_BACKSLASHES) == 'a = "it\'s"'
    assert for_session("a = 'it''s'", ONE_AFTER_THE_OTHER) == r"a = 'it\'s'"


@pytest.mark.parametrize(
    "text", [r"a like 'x' escape '\\'", "date '2020-01-01'", "interval '1 day'", r"f(x, a => 'b')", "x'5C'", "r"]
)
def test_parts_of_literals_and_plain_texts_are_unchanged(text: str) -> None:
    for quotes in ALL:
        assert at_rest(text, quotes) == text
        assert for_session(text, quotes) == text
    assert for_any_session(text) == text


def test_parts_of_literals_lose_their_double_quotes() -> None:
    assert for_session('a like b escape "\\\\" and c = date "2020-01-01"', NAMES) == (
        "a like b escape '\\\\' and c = date '2020-01-01'"
    )


def test_the_arguments_of_the_engines_own_functions_are_stored_unchanged() -> None:
    sql = r"select '\d' from read_files('a\b', sep => '\t')"
    read = as_read(sql, PLAIN_BACKSLASHES)
    assert read == r"select '\d' from read_files('a\\b', sep => '\\t')"
    assert at_rest(read, PLAIN_BACKSLASHES) == r"select '\\d' from read_files('a\\b', sep => '\\t')"
    assert for_session(at_rest(read, PLAIN_BACKSLASHES), PLAIN_BACKSLASHES) == read


def test_adjacent_strings_become_one_constant() -> None:
    assert for_any_session(r"""concat('a' "\n" 'b', c)""") == "concat('a\nb', c)"
    assert for_any_session(r"""concat('a' "'" 'b', c)""") == "concat(cast(X'612762' as string), c)"


def test_quoted_texts_are_omitted() -> None:
    assert without_quoted("""now() || 'now()' || "now()" || `now()`""") == "now() || '' || '' || ''"


def test_a_string_of_the_engine_itself_is_read_with_the_default_quoting() -> None:
    assert _value(string_literal("it's \\"), SPARKS_DEFAULT) == "it's \\"
