"""Tokens equal those of Spark's lexer, and have spans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import SiltError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.tokens import Kind, is_exact_string, string_value, tokenize
from tests.calls import calls_of
from tests.unit.engine.sql.sql_soup import soups


def _texts(sql: str) -> list[str]:
    return [token.text for token in tokenize(sql)[:-1]]


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("a.5b", ["a", ".", "5b"]),
        ("1L 2S 3Y 1.5BD .5 1. 1e3 1.e-2D 1e+5F", ["1L", "2S", "3Y", "1.5BD", ".5", "1.", "1e3", "1.e-2D", "1e+5F"]),
        ("2.3W", ["2", ".", "3W"]),
        ("1a.2b", ["1a", ".", "2b"]),
        ("db.123abc.t", ["db", ".", "123abc", ".", "t"]),
        ("t@v12", ["t", "@", "v12"]),
        ("array<array<int>>", ["array", "<", "array", "<", "int", ">", ">"]),
        (
            "a<=>b!=c<>d||e|>f->g=>h::i",
            ["a", "<=>", "b", "!=", "c", "<>", "d", "||", "e", "|>", "f", "->", "g", "=>", "h", "::", "i"],
        ),
        ("'it''s' 'a\\'b' '\\\\' x", ["'it''s'", "'a\\'b'", "'\\\\'", "x"]),
        ("r'a\\' R\"b\\\" r 'c'", ["r'a\\'", 'R"b\\"', "r", "'c'"]),
        ("`a``b`.`c d`", ["`a``b`", ".", "`c d`"]),
        ("a--b\nc", ["a", "c"]),
        ("a --b \\\n still a comment\nc", ["a", "c"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a /**/ b", ["a", "b"]),
        ("select /*+ x(t) */ a", ["select", "/*+ x(t) */", "a"]),
        ("größe 日本 _x a\u00a0b", ["größe", "日本", "_x", "a", "b"]),
        ("abc://x/y-z?a=b.c", ["abc://x/y-z?a=b.c"]),
        ("{{ x }} {# y #}", ["{", "{", "x", "}", "}", "{", "#", "y", "#", "}"]),
    ],
)
def test_a_text_is_split_into_the_tokens_of_spark(sql: str, texts: list[str]) -> None:
    assert _texts(sql) == texts


@pytest.mark.parametrize("sql", ["'a", "`a", '"a', "/* a", "r'a", "/*+ a", "/* a /* b */", "'a\\'", "`a``"])
def test_an_unclosed_string_comment_or_name_is_an_error(sql: str) -> None:
    with pytest.raises(StatementSyntaxError, match="is not closed"):
        tokenize(sql)


def test_text_that_was_not_written_in_utf_8_is_an_error() -> None:
    latin = b"select 1,\n 'caf\xe9'".decode(errors="surrogateescape")
    with pytest.raises(
        StatementSyntaxError, match=r"this is not a character in UTF-8 \(line 2, column 6, .*caf.udce9"
    ) as raised:
        parse(latin)
    assert str(raised.value).encode()


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a'", "a"),
        ("'it''s'", "it's"),
        ("'a\"\"b'", 'a""b'),
        ('"a""b\'\'c"', "a\"b''c"),
        (r"'\n\t\r\b\0\Z'", "\n\t\r\b\0\x1a"),
        (r"'\%\_\x\'\\'", r"\%\_x'" + "\\"),
        (r"'\101\u0041\U0001F600'", "AA😀"),
        (r"r'\n'", r"\n"),
        (r"'\ud83d\uDE00 \uD83D\U0000de00'", "😀 😀"),
        (r"'\ude00\ud83dx\U0000D83D'", "??x?"),
        (r"'\\ud83d \U00110000 \u12'", r"\ud83d \U00110000 u12"),
    ],
)
def test_the_value_of_a_string_equals_that_of_spark(literal: str, value: str) -> None:
    assert string_value(tokenize(literal)[0]) == value


@pytest.mark.parametrize(
    ("literal", "exact"),
    [("'a'", True), ("''", True), ("'it''s'", False), (r"'\n'", False), ('"a"', False), ("r'a'", False)],
)
def test_a_string_is_exact_if_no_setting_affects_its_value(literal: str, exact: bool) -> None:
    assert is_exact_string(tokenize(literal)[0]) is exact


def test_a_keyword_is_a_word_without_quotes() -> None:
    assert [token.word for token in tokenize("From `from` 'from' \"from\"")] == ["FROM", "", "", "", ""]


@given(st.text(min_size=1))
def test_a_quoted_identifier_reads_back_as_itself(name: str) -> None:
    token = tokenize(quote(name))[0]
    assert (token.kind, token.identifier) == (Kind.QUOTED, name)


@given(soups())
def test_tokens_cover_the_text_except_for_spaces_and_comments(sql: str) -> None:
    try:
        tokens = tokenize(sql)
    except SiltError:
        return
    position = 0
    for token in tokens:
        between = sql[position : token.start]
        assert not between.strip() or "--" in between or "/*" in between
        assert sql[token.start : token.end] == token.text
        position = token.end
    assert tokens[-1].kind is Kind.END


@pytest.mark.parametrize("read", [parse, table_references])
def test_reading_a_query_three_times_as_long_takes_three_times_the_work(read: Callable[[str], object]) -> None:
    read(_union(10))  # created only once
    short, long = (calls_of(partial(read, _union(lines))) for lines in (100, 300))
    assert long < 3.2 * short


def test_every_table_of_a_long_query_is_found() -> None:
    assert len(table_references(_union(300))) == 300


def _union(lines: int) -> str:
    selects = (f"select t.a_{n}, coalesce(t.b_{n}, 'x') from s.t_{n} t where t.c = {n}" for n in range(lines))
    return "\nunion all\n".join(selects)
