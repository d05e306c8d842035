"""Finds the likely mistake in SQL that cannot be parsed: a comma, a keyword, or the syntax of another platform."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

_NUMBER: Final = "<number>"
_TIME_TRAVEL: Final = "In Spark, write `t timestamp as of '2026-01-31 10:00:00'`, or `t version as of 1`"
_NO_INDEX: Final = "Leave it out: queries skip files by their statistics, and `optimize ... zorder by` orders the rows"
_NO_REPAIR: Final = "Leave it out: the table's log lists the files of all partitions"
_NO_NEW_PARTITION: Final = "Leave it out: a partition exists if the table has rows with its values"
_NO_VARIABLES: Final = "Write the value in the statement; in dbt, use `var`"
_DELETE: Final = "Write `delete from t where column = value`"
_MERGE: Final = (
    "Write `merge into t using s on t.key = s.key when matched then update set * when not matched then insert *`"
)
_NO_GRANTS: Final = "Leave it out: everyone who can read the warehouse's folder or bucket can read the table"
_ELSEWHERE: Final[Mapping[tuple[str, ...], str]] = {
    ("*", "EXCLUDE"): "In Spark, write `* except (...)`",
    ("*", "REPLACE", "("): "In Spark, write `* except (a), new_value as a`",
    ("*", "RENAME"): "In Spark, write `* except (a), a as new_name`",
    ("APPROXIMATE", "COUNT", "("): "In Spark, write `approx_count_distinct(x)`",
    ("ARRAY", "["): "In Spark, write `array(1, 2)`",
    ("SELECT", "AS", "STRUCT"): "In Spark, write `select struct(...)`",
    ("SAMPLE", "("): "In Spark, write `tablesample (10 percent)`",
    ("SEPARATOR",): "In Spark, write `listagg(x, ',')`",
    ("IN", "UNNEST", "("): "In Spark, write `array_contains(list, x)`",
    ("AT", "("): _TIME_TRAVEL,
    ("BEFORE", "("): _TIME_TRAVEL,
    ("CREATE", "TRANSIENT"): "Leave out TRANSIENT",
    ("ALTER", "SESSION"): "In Spark, write `set time zone 'UTC'`, or `set name = value`",
    ("VARCHAR", "(", "MAX", ")"): "In Spark, the type is `string`",
    ("NVARCHAR", "(", "MAX", ")"): "In Spark, the type is `string`",
    ("IGNORE", "NULLS", "LIMIT"): "In Spark, `array_agg` leaves nulls out; shorten it with `slice(a, 1, n)`",
    ("SELECT", "TOP", _NUMBER): "In Spark, write `limit` at the end of the query",
    ("LIMIT", _NUMBER, "LIMIT", _NUMBER): "Write one `limit`: `dbt show` adds one, unless it has `--limit -1`",
    ("OFFSET", _NUMBER, "LIMIT", _NUMBER): "In Spark, write `limit count offset start`",
    ("LIMIT", _NUMBER, ",", _NUMBER): "In Spark, write `limit count offset start`",
    ("FETCH", "FIRST", _NUMBER): "In Spark, write `limit`",
    ("FETCH", "NEXT", _NUMBER): "In Spark, write `limit`",
    ("DOUBLE", "PRECISION"): "In Spark, the type is `double`",
    ("CHARACTER", "VARYING"): "In Spark, the type is `varchar(n)`, or `string` for any length",
    ("WITH", "TIME", "ZONE"): "In Spark, the type is `timestamp`",
    ("AT", "TIME", "ZONE"): "In Spark, write `convert_timezone('from zone', 'to zone', t)`",
    ("SIMILAR", "TO"): "In Spark, write `rlike`",
    ("ON", "CONFLICT"): _MERGE,
    ("ON", "DUPLICATE", "KEY"): _MERGE,
    ("FOR", "UPDATE"): "Leave it out: a statement that conflicts with another statement is run again",
    ("SAFE_CAST", "("): "In Spark, write `try_cast(x as type)`",
}
"""The remedies for the syntax of other platforms, which Spark cannot parse, by the words that begin it."""

_AT: Final[Mapping[str, str]] = {
    "~": "In Spark, write `rlike` for a regular expression",
    "!": "In Spark, write `not rlike` for a regular expression, and `!=` for unequal values",
    "{": "In Spark, write a struct as `named_struct('a', 1)`, and a map as `map('a', 1)`",
    "#": "In Spark, a comment begins with `--`",
    "$$": "In Spark, a text is in single quotes",
    "$": "Variables `${...}` are not replaced: in dbt, write `{{ var('name') }}` or `{{ env_var('NAME') }}`",
    **dict.fromkeys(
        "\u2018\u2019\u201c\u201d", "Replace typographic quotation marks by ' around text, ` around a name"
    ),
}
"""The remedies for texts at which Spark's parser stops."""

_AFTER_LISTS: Final = frozenset("FROM WHERE HAVING UNION INTERSECT QUALIFY".split())
_WITH_BY: Final = frozenset(("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"))
_AFTER_A_COLUMN: Final = frozenset(("AS", "(", ")", ",", ".", "FROM", ""))
_CLOSING: Final = frozenset((")", ",", ";"))
_KEYWORDS: Final[Mapping[str, str]] = {
    **{word: word for word in ("select", "from", "where", "having", "limit", "join", "union", "qualify")},
    **{f"{word}{by}": f"{word} by" for word in ("group", "order") for by in ("", "by")},
}
_BEGINNINGS: Final = (
    "select with insert update delete merge create drop alter describe show truncate optimize vacuum restore".split()
)
_SIMILAR: Final = 0.75


def remedy(sql: str, at: str = "") -> str | None:
    """Returns the remedy for the likely mistake in a text that Spark cannot parse, if it is known.

    Args:
        sql: the text.
        at: the text at which Spark's parser stopped, if it is known.
    """
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return None
    if at in _AT:
        return _AT[at]
    if tokens[0].text == at and (meant := near_beginning(at)) not in (None, at.lower()):
        return f"Did you mean `{meant}` instead of `{at}`?"
    if at == "[":
        return "In Spark, write a name that needs quotes in backticks, and an array as `array(...)`"
    return _of_another_platform(tokens) or comma_remedy(tokens) or _of_a_clause(tokens, at) or _of_a_keyword(tokens, at)


def comma_remedy(tokens: Sequence[Token]) -> str | None:
    """Returns the remedy for a comma at the end of a list, if a list ends with a comma."""
    for at, token in enumerate(tokens[:-1], start=1):
        if token.word == "," and _ends_a_list(tokens, at):
            place = "at the end" if tokens[at].kind is Kind.END else f"before `{tokens[at].text}`"
            quoted = _OF_MACROS if tokens[at].word == "," else ""
            return f"Remove the comma {place}, or add the missing words after it{quoted}"
    return None


_OF_MACROS: Final = "; a text for a macro of dbt has its own quotes inside: `dbt.split_part('a', \"','\", 1)`"


def _ends_a_list(tokens: Sequence[Token], at: int) -> bool:
    """Returns whether no list can continue with a token, which follows a comma."""
    token, later = tokens[at], tokens[min(at + 1, len(tokens) - 1)]
    if token.kind is Kind.END or token.word in _CLOSING:
        return True
    if token.word in _WITH_BY:
        return later.word == "BY"
    if token.word == "LIMIT":
        return later.kind is Kind.NUMBER
    if token.word == "SELECT":
        is_in_with = at > 1 and tokens[at - 2].word == ")" and any(each.word == "WITH" for each in tokens[:at])
        return is_in_with and later.word not in _AFTER_A_COLUMN
    return token.word in _AFTER_LISTS and (later.is_identifier or later.word == "(") and later.word not in _AFTER_LISTS


_ELEMENTS: Final = frozenset(("UNNEST", "EXPLODE", "POSEXPLODE", "INLINE", "FLATTEN", "GENERATE_SUBSCRIPTS"))


def lateral_remedy(sql: str) -> str | None:
    """Returns the remedy for a query that joins the elements of a table's column without LATERAL, if it does so."""
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return None
    for at in range(1, len(tokens) - 1):
        if tokens[at].word in _ELEMENTS and tokens[at + 1].word == "(" and _is_joined(tokens[:at]):
            return "For each element of an array in a column, write `cross join lateral explode(a) as t(x)`"
    return None


def _is_joined(before: Sequence[Token]) -> bool:
    """Returns whether the next token joins a table to the tables before it, without LATERAL."""
    if before[-1].word == "(":
        before = before[:-2] if before[-2:-1] and before[-2].word == "TABLE" else ()
    if not before or before[-1].word not in ("JOIN", ","):
        return False
    depth = 0
    for token in reversed(before):
        depth += (token.word == ")") - (token.word == "(")
        if depth < 0:
            return False
        if depth == 0 and token.word in ("FROM", "SELECT"):
            return token.word == "FROM"
    return False


def _of_another_platform(tokens: Sequence[Token]) -> str | None:
    words = [_NUMBER if token.kind is Kind.NUMBER else token.word for token in tokens]
    for start in range(len(words)):
        for beginning, what in _ELSEWHERE.items():
            if tuple(words[start : start + len(beginning)]) == beginning:
                return what
    return None


_AGGREGATES: Final = frozenset("ARRAY_AGG COLLECT_LIST GROUP_CONCAT LISTAGG STRING_AGG".split())
_SIDES: Final = frozenset(("LEFT", "RIGHT", "FULL"))


def _of_a_clause(tokens: Sequence[Token], at: str) -> str | None:
    """Returns the remedy if the parser stopped at a clause that is in another place or form than in Spark."""
    words = [token.word for token in tokens]
    stop = next((place for place, token in enumerate(tokens) if place and token.text == at), None)
    if stop is None:
        return None
    before = words[:stop]
    if words[stop : stop + 2] == ["ORDER", "BY"] and _AGGREGATES.intersection(before):
        return "In Spark, write `array_sort(array_agg(x))`, or `listagg(x, ',') within group (order by y)`"
    if words[stop] == "WHERE" and {"GROUP", "HAVING"}.intersection(before):
        return "Write WHERE before GROUP BY and HAVING"
    if before[-1] == "OUTER" and before[-2] in _SIDES:
        return f"Write `{before[-2].lower()} join`"
    if before[-1] == "USING" and "JOIN" in before:
        return f"Write `using ({at})`"
    if before[-1] == "INTO" and before[0] in ("SELECT", "WITH"):
        return "In Spark, write `create table ... as select ...`"
    if before[-1] == ")" and before[0] == "WITH" and words[stop + 1 : stop + 3] == ["AS", "("]:
        return f"Write a comma before `{at}`"
    return None


def _of_a_keyword(tokens: Sequence[Token], at: str) -> str | None:
    """Returns the remedy if the parser stopped after a misspelt keyword that the text does not contain otherwise."""
    words = {token.word for token in tokens}
    for before, token in pairwise(tokens):
        if token.text == at and before.kind is Kind.WORD:
            meant = near_keyword(before.text)
            if meant is not None and meant.partition(" ")[0].upper() not in words:
                return f"Did you mean `{meant}` instead of `{before.text}`?"
    return None


_STATEMENTS: Final[Mapping[tuple[str, ...], str]] = {
    ("CREATE", "MATERIALIZED"): "Use a table instead; in dbt, an incremental model",
    ("CREATE", "INDEX"): _NO_INDEX,
    ("CREATE", "UNIQUE", "INDEX"): _NO_INDEX,
    ("CREATE", "SEQUENCE"): "Declare the column as `bigint generated always as identity`",
    ("GRANT",): _NO_GRANTS,
    ("REVOKE",): _NO_GRANTS,
    ("SHOW", "GRANTS"): _NO_GRANTS,
    ("MSCK",): _NO_REPAIR,
    ("REPAIR",): _NO_REPAIR,
    ("LOAD", "DATA"): "Write `insert into ... select ... from read_files(...)`",
    ("REPLACE", "INTO"): _MERGE,
    ("UPSERT",): _MERGE,
    ("LOCK",): "Leave it out: a statement that conflicts with another statement is run again",
    ("DECLARE",): _NO_VARIABLES,
    ("SET", "VAR"): _NO_VARIABLES,
    ("SET", "VARIABLE"): _NO_VARIABLES,
}
"""The remedies for statements of other platforms, by the words that begin them."""

_CLAUSES: Final[Mapping[tuple[str, ...], str]] = {
    ("CLUSTER", "BY", "AUTO"): "Name the columns that queries filter by: cluster by (column, ...)",
    ("ADD", "PARTITION"): _NO_NEW_PARTITION,
    ("ADD", "IF", "NOT", "EXISTS", "PARTITION"): _NO_NEW_PARTITION,
    ("ADD",): "Write `add column name type`",
    ("DROP", "PARTITION"): _DELETE,
    ("DROP", "IF", "EXISTS", "PARTITION"): _DELETE,
    ("PARTITION",): "Change the rows: write `update t set column = new_value where column = value`",
    ("RECOVER",): _NO_REPAIR,
    ("MODIFY",): "Write `alter column name type new_type`",
    ("REPLACE", "COLUMNS"): "Write `create or replace table`, or drop and add columns",
    ("SET", "LOCATION"): "Copy the table: write `create table new_name deep clone t`",
    ("SET", "SERDEPROPERTIES"): "Leave it out: the format of a table is Delta",
    ("SET", "FILEFORMAT"): "Leave it out: the format of a table is Delta",
    ("SWAP",): "Write `create or replace table ... as select ...`, which replaces a table at one moment",
    ("TEMPORARY",): "Write `create temporary view`",
}
"""The remedies for clauses that a statement does not have here, by their first words; longer beginnings come first."""


def statement_remedy(sql: str) -> str | None:
    """Returns the remedy for a statement that is not supported, if the statement or its first word is known."""
    found = _by_beginning(_STATEMENTS, sql)
    if found is not None:
        return found
    first = sql.split()[0].lower()
    meant = near_beginning(first)
    return None if meant in (None, first) else f"Did you mean `{meant}`?"


def clause_remedy(clause: str) -> str:
    """Returns the remedy for a clause that is not supported."""
    return _by_beginning(_CLAUSES, clause) or "Leave it out"


def _by_beginning(remedies: Mapping[tuple[str, ...], str], text: str) -> str | None:
    words = tuple(text.upper().split())
    return next((what for beginning, what in remedies.items() if words[: len(beginning)] == beginning), None)


def alias_remedy(sql: str, name: str) -> str | None:
    """Returns the remedy if a missing column is an alias of a SELECT list that WHERE uses.

    Args:
        sql: the query.
        name: the missing column.
    """
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return None
    named = [at for at, token in enumerate(tokens) if token.is_identifier and token.identifier.lower() == name.lower()]
    alias = next((at for at in named if at and tokens[at - 1].word == "AS"), None)
    if alias is None or not any(tokens[at].word == "WHERE" for at in range(alias, named[-1])):
        return None
    return (
        f"WHERE cannot use `{name}`, an alias of the SELECT list: write HAVING for an aggregate, QUALIFY for a window "
        "function, or put the query into a subquery"
    )


def selected_strings(sql: str) -> list[str]:
    """Returns the strings in double quotes that are items of a SELECT list before FROM, without an alias.

    They are names on other platforms. Spark returns the string in each row, in a column of that name. The SELECT lists
    after UNION, EXCEPT and INTERSECT are left out, because their items need no alias.
    """
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return []
    found: list[str] = []
    lists: list[tuple[int, list[str]]] = []
    depth, last = 0, ""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += (before.word == "(") - (token.word == ")")
        lists = [each for each in lists if each[0] <= depth]
        if before.word == "SELECT":
            lists = [each for each in lists if each[0] < depth]
            lists += [] if last in _SET_OPERATIONS else [(depth, [])]
        last = before.word
        if not lists or lists[-1][0] != depth:
            continue
        if token.word == "FROM":
            found += lists.pop()[1]
        elif token.kind is Kind.DOUBLE_QUOTED and before.word in _BEFORE_ITEMS and after.word in (",", "FROM"):
            lists[-1][1].append(token.text[1:-1])
    return list(dict.fromkeys(found))


def unknown_units(sql: str) -> list[str]:
    """Returns the literal units of calls of `date_trunc` that Spark does not know, and for which it returns null."""
    try:
        tokens = tokenize(sql)
    except StatementSyntaxError:
        return []
    called = zip(tokens, tokens[1:], tokens[2:], strict=False)
    units = [
        unit.text[1:-1]
        for name, bracket, unit in called
        if name.word == "DATE_TRUNC" and bracket.word == "(" and unit.kind in (Kind.STRING, Kind.DOUBLE_QUOTED)
    ]
    return [each for each in dict.fromkeys(units) if each.upper() not in UNITS]


UNITS: Final = "YEAR YYYY YY QUARTER MONTH MM MON WEEK DAY DD HOUR MINUTE SECOND MILLISECOND MICROSECOND".split()
"""The units that Spark's `date_trunc` knows."""

_SET_OPERATIONS: Final = frozenset(("UNION", "EXCEPT", "MINUS", "INTERSECT", "ALL", "DISTINCT"))
_BEFORE_ITEMS: Final = frozenset(("SELECT", "DISTINCT", "ALL", ","))


def near_keyword(word: str) -> str | None:
    """Returns the keyword that a misspelt word resembles, if any; a keyword itself resembles no other."""
    near = difflib.get_close_matches(word.lower(), list(_KEYWORDS), 1, _SIMILAR)
    return _KEYWORDS[near[0]] if near and word.upper() != _KEYWORDS[near[0]].partition(" ")[0].upper() else None


def near_beginning(word: str) -> str | None:
    """Returns the first word of a statement that a misspelt word resembles, if any."""
    near = difflib.get_close_matches(word.lower(), _BEGINNINGS, 1, _SIMILAR)
    return near[0] if near else None
