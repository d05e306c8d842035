"""Quoted texts have Spark's meaning under the session's settings; stored texts have the same meaning for every
session.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.session_settings import quotes_for
from dbt.adapters.silt.engine.kernel.errors import CheckViolationError, StatementSyntaxError
from dbt.adapters.silt.engine.sql.query.quotes import Quotes, constant, for_any_session
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize
from tests.unit.engine.house import House

NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"
BACKSLASHES = "spark.sql.parser.escapedStringLiterals"
CONSECUTIVE = "spark.sql.legacy.consecutiveStringLiterals.enabled"
ALL = tuple(itertools.product((False, True), repeat=3))

# Spark Connect passes Spark's messages about a setting to Python's warnings.
pytestmark = pytest.mark.filterwarnings("ignore:The SQL config .* has been deprecated:UserWarning")

_PARTS = st.sampled_from(["a", "b", "%", "_", "''", '""', *(f"\\{each}" for each in "'\"\\nt0%_d")])
_MORE_PARTS = st.sampled_from([r"\101", r"\777", r"\u0041", r"\u00", r"\U0001F600", r"\Z", "\n", "é", " "])
_SURROGATES = st.sampled_from([r"\ud83d", r"\uDE00", r"\ud83d\ude00", r"\U0000D83D", r"\U0000de00"])
_INSIDE = st.lists(st.one_of(_PARTS, _PARTS, _MORE_PARTS, _SURROGATES), max_size=5).map("".join)
_QUOTED = st.tuples(st.sampled_from(["'{}'", "'{}'", '"{}"', "r'{}'", 'R"{}"']), _INSIDE).map(
    lambda pair: pair[0].format(pair[1])
)


def _is_one_string(text: str) -> bool:
    try:
        first, *others = tokenize(text)
    except StatementSyntaxError:
        return False
    return first.kind in (Kind.STRING, Kind.DOUBLE_QUOTED) and len(others) == 1


def _set(session: SparkSession, quotes: Sequence[bool]) -> None:
    for key, value in zip((NAMES, BACKSLASHES, CONSECUTIVE), quotes, strict=True):
        session.conf.set(key, str(value).lower())


def _values(session: SparkSession, texts: Sequence[str]) -> list[str]:
    return list(session.sql(f"select array({', '.join(texts)})").collect()[0][0])


@pytest.mark.parametrize("chosen", ALL, ids=str)
@settings(max_examples=2, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(texts=st.lists(_QUOTED.filter(_is_one_string), min_size=100, max_size=200))
def test_a_constant_has_sparks_value(session: SparkSession, chosen: tuple[bool, ...], texts: list[str]) -> None:
    _set(session, chosen)
    quotes = Quotes(*chosen)
    tokens = [tokenize(text)[0] for text in texts]
    strings = [each for each in tokens if each.kind is Kind.STRING or not quotes.double_quoted_identifiers]
    if strings:
        assert [quotes.value(each) for each in strings] == _values(session, [each.text for each in strings])
    values = [quotes.value(each) for each in tokens]
    assert _values(session, [quotes.constant(value) for value in values]) == values
    assert _values(session, [constant(value) for value in values]) == values
    kept = [Quotes().value(each) for each in tokens]
    assert _values(session, [for_any_session(each.text) for each in tokens]) == kept


def test_double_quotes_enclose_names_only_in_strict_sessions(session: SparkSession) -> None:
    _set(session, (True, True, False))
    every = """ 'a\\b' "c" '' """
    assert quotes_for(session, every) == Quotes(double_quoted_identifiers=True, escaped_string_literals=True)
    session.conf.set("spark.sql.ansi.enabled", "false")
    assert quotes_for(session, every) == Quotes(escaped_string_literals=True)
    assert quotes_for(session, "select 'a'") == Quotes()


def test_names_in_double_quotes_are_names_in_every_statement(house: House) -> None:
    _set(house.warehouse.spark, (True, False, False))
    house.sql("""create table "my table" ("a b" int, "c" string default 'it''s', constraint "k" check ("a b" > 0))""")
    house.sql("""insert into "my table" ("a b") values (1), (2), (3)""")
    house.sql("""update "main"."my table" set "c" = 'x' where "a b" = 2""")
    house.sql("""delete from "my table" as "t" where "t"."a b" = 3""")
    house.sql(
        """merge into "my table" as "t" using (select 4 as "n""m") as "s" on "t"."a b" = "s"."n""m" """
        """when not matched then insert ("a b") values ("s"."n""m")"""
    )
    house.sql("""alter table "my table" rename column "c" to "c d" """)
    expected = [(1, "it's"), (2, "x"), (4, "it's")]
    assert house.rows("""select "a b", "c d" from "my table" """) == expected
    assert house.rows("""select * from "my table" version as of 0""") == []
    house.sql("""create view "v" as select "a b" as "x""y" from "my table" where "c d" <> 'x' """)
    assert house.rows("""select "x""y" from "v" """) == house.another().rows("""select `x"y` from v""") == [(1,), (4,)]
    house.warehouse.write(house.warehouse.spark.sql('select 9 as "a b"'), '"my table"')
    assert house.warehouse.schema_of('select "a b" from "my table"').names == ["a b"]
    assert house.warehouse.query('select "a b" from "my table" where "a b" > :n', {"n": 4}).collect() == [(9,)]


def test_a_text_stored_by_one_session_is_read_by_sessions_with_other_quotes(house: House) -> None:
    plain, strict = house, house.another()
    _set(strict.warehouse.spark, (True, True, False))
    plain.sql("create table words (word string, first string generated always as (substr(word, 1, 1)))")
    plain.sql(r"""alter table words add constraint no_tab check (word not like "%\t%" and word <> 'it''s')""")
    plain.sql(r"""create view v as select word, "it's \\" as own from words where word rlike "^\\w+$" """)
    plain.sql(r"""create function is_word(word string) returns boolean return word rlike "^\\w+$" """)
    strict.sql(r"""insert into words (word) values ('ab'), ('a\b')""")
    expected = [("ab", "it's \\")]
    assert strict.rows("select * from v") == plain.rows("select * from v") == expected
    assert strict.rows(r"select word from words where is_word(word)") == [("ab",)]
    with pytest.raises(CheckViolationError):
        strict.sql("insert into words (word) values ('a\tb')")
    with pytest.raises(CheckViolationError):
        strict.sql("""insert into words (word) select concat('it', char(39), 's')""")


def test_a_text_stored_by_a_session_with_plain_backslashes_keeps_its_meaning(house: House) -> None:
    plain, strict = house.another(), house
    _set(strict.warehouse.spark, (False, True, False))
    strict.sql(
        r"""create table words (word string, digit string generated always as (regexp_extract(word, '(\d)', 1)),
            note string default 'a\d' comment 'a\tb', constraint only_words check (word rlike '^\w+$'))"""
    )
    strict.sql(r"create view v as select word from words where word rlike '\d' and word not like 'x\_%' escape '\\'")
    strict.sql(r"create function digits(word string default '\1') returns string return regexp_replace(word, '\D', '')")
    for each in (strict, plain):
        each.sql("insert into words (word) values ('a1')")
        each.sql("merge into words using (select 'b2' as w) on word = w when not matched then insert (word) values (w)")
        each.sql("update words set note = default")
        with pytest.raises(CheckViolationError):
            each.sql("insert into words (word) values ('a b')")
        assert each.rows("select * from v") == each.rows("select word from words")
        assert each.rows("select distinct digit, note from words where digit = '1'") == [("1", r"a\d")]
        assert each.rows("select digits('a1b2'), digits()") == [("12", "1")]
        [comment] = [row for row in each.rows("describe table words") if row[0] == "note"]
        assert comment[2] == "a\tb"
    assert strict.rows(r"select count(*) from words where word like '%1' and note = 'a\d'") == [(2,)]
    assert strict.rows(r"select count(*) from words where note = 'a\\d'") == [(0,)]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


@pytest.fixture(autouse=True)
def as_it_was(session: SparkSession):  # type: ignore[no-untyped-def]
    yield
    for key in (NAMES, BACKSLASHES, CONSECUTIVE, "spark.sql.ansi.enabled"):
        session.conf.unset(key)
