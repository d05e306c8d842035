"""Finds the ends of groups, values, intervals, time travel and relations in a list of tokens, and replaces spans."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.tokens import Kind, Token

Tokens = tuple[Token, ...]


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


def closing(tokens: Tokens, at: int) -> int:
    """Returns the index of the parenthesis that closes the group at `at`, or of the END token if it is not closed."""
    depth = 0
    for index in range(at, len(tokens)):
        word = tokens[index].word
        if word == "(":
            depth += 1
        elif word == ")":
            depth -= 1
            if depth == 0:
                return index
    return len(tokens) - 1


def closings(tokens: Tokens) -> dict[int, int]:
    """Returns the index of the closing parenthesis of each opening parenthesis that is closed."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.word == "(":
            opened.append(index)
        elif token.word == ")" and opened:
            found[opened.pop()] = index
    return found


def after_group(tokens: Tokens, at: int) -> int:
    """Returns the index after the group in parentheses that opens at `at`, at most the index of the END token."""
    return min(closing(tokens, at) + 1, len(tokens) - 1)


def starts_query(tokens: Tokens, at: int) -> bool:
    """Returns whether a query begins at this token, with SELECT, WITH, FROM, VALUES or TABLE as a keyword."""
    word = tokens[at].word
    if word not in _AFTER_START:
        return False
    following = tokens[at + 1]
    if following.kind is Kind.SYMBOL:
        return following.word in _AFTER_START[word]
    if word in ("SELECT", "VALUES"):
        is_operator = following.word in _OPERATORS and not (word == "SELECT" and is_column_name(tokens, at + 1))
        return following.kind is not Kind.END and not is_operator
    return following.is_identifier and following.word not in _OPERATORS


def starts_query_in_parentheses(tokens: Tokens, at: int) -> bool:
    """Returns whether the parentheses that open at this token contain a query, itself perhaps in parentheses."""
    while tokens[at].word == "(":
        at += 1
    return starts_query(tokens, at)


def is_column_name(tokens: Tokens, at: int) -> bool:
    """Returns whether this keyword is a column's name, which Spark does not require to be quoted.

    A comma, a closing parenthesis, AS, a comparison or a clause may follow the name, but not the keyword.
    """
    following = tokens[at + 1]
    is_end = tokens[at].word == "END" and following.kind is Kind.SYMBOL and following.word not in ("(", ".")
    return is_end or following.kind is Kind.END or following.word in _AFTER_COLUMN


_AFTER_COLUMN = frozenset((",", ")", "]", "=", "==", "<=>", "<>", "!=", "<", ">", "<=", ">=")) | frozenset(
    ("FROM", "AS", "IS", "HAVING")
)
_AFTER_START = {
    "SELECT": frozenset("(*-+~!:?"),
    "WITH": frozenset(""),
    "FROM": frozenset("("),
    "VALUES": frozenset("(-:?"),
    "TABLE": frozenset(""),
}
_OPERATORS = frozenset(
    "AND OR IS IN LIKE ILIKE RLIKE REGEXP BETWEEN AS DIV COLLATE THEN ELSE END WHEN ASC DESC NULLS ESCAPE".split()
)


def after_time_travel(tokens: Tokens, at: int) -> tuple[str, int, int] | None:
    """Finds [FOR] VERSION | TIMESTAMP AS OF expression, if it begins at `at`.

    Returns:
        "version" or "timestamp", the index of the expression's first token, and the index after it; or None.
    """
    if tokens[at].word == "FOR":
        at += 1
    kind = _TIME_TRAVEL.get(tokens[at].word)
    if kind is None or tokens[at + 1].word != "AS" or tokens[at + 2].word != "OF":
        return None
    return kind, at + 3, after_value(tokens, at + 3)


_TIME_TRAVEL = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "timestamp",
    "SYSTEM_TIME": "timestamp",
}


def after_value(tokens: Tokens, at: int) -> int:
    """Returns the index after the value expression that begins here: operands joined by arithmetic operators."""
    while True:
        while tokens[at].word in ("-", "+", "~"):
            at += 1
        at = _after_operand(tokens, at)
        if tokens[at].word not in _ARITHMETIC:
            return at
        at += 1


_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "||", "DIV", "&", "|", "^", "<<"))


def _after_operand(tokens: Tokens, at: int) -> int:
    token = tokens[at]
    if token.kind is Kind.END or token.word in (")", ","):
        return at
    if token.word == "CASE":
        at = _after_case(tokens, at)
    elif token.word == "INTERVAL":
        at = _after_interval(tokens, at + 1)
    elif token.word == "(":
        at = after_group(tokens, at)
    elif token.kind is Kind.STRING or token.kind is Kind.DOUBLE_QUOTED:
        while tokens[at].kind in (Kind.STRING, Kind.DOUBLE_QUOTED):
            at += 1
    elif token.kind is Kind.WORD and tokens[at + 1].kind is Kind.STRING and token.word in _TYPED_LITERALS:
        at += 2
    else:
        at += 1
    return _after_suffixes(tokens, at)


_TYPED_LITERALS = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIME", "X"))


def _after_suffixes(tokens: Tokens, at: int) -> int:
    """Returns the index after `.field`, `(arguments)`, `[index]` and `::type`."""
    while True:
        word = tokens[at].word
        if word == "." and tokens[at + 1].is_identifier:
            at += 2
        elif word == "(":
            at = after_group(tokens, at)
        elif word == "[":
            while tokens[at].word != "]" and tokens[at].kind is not Kind.END:
                at += 1
            at = min(at + 1, len(tokens) - 1)
        elif word == "::" and tokens[at + 1].kind is not Kind.END:
            at += 2
        else:
            return at


def _after_case(tokens: Tokens, at: int) -> int:
    depth = 0
    while tokens[at].kind is not Kind.END:
        depth += {"CASE": 1, "END": -1}.get(tokens[at].word, 0)
        at += 1
        if depth == 0:
            break
    return at


def _after_interval(tokens: Tokens, at: int) -> int:
    """Returns the index after `1 day 2 hours`, `'1' day`, `'1-2' year to month` or `'1 day'`."""
    if tokens[at].word in ("-", "+"):
        at += 1
    while tokens[at].kind in (Kind.NUMBER, Kind.STRING):
        at += 1
        if tokens[at].word in _UNITS:
            at += 1
        if tokens[at].word == "TO" and tokens[at + 1].word in _UNITS:
            at += 2
    return at


_UNITS = frozenset(
    unit + plural
    for unit in "NANOSECOND MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split()
    for plural in ("", "S")
)


def after_name(tokens: Tokens, at: int) -> int:
    """Returns the index after the simple or dotted name that begins here."""
    while tokens[at + 1].word == "." and tokens[at + 2].is_identifier:
        at += 2
    return at + 1


def after_sample(tokens: Tokens, at: int) -> int:
    """Returns the index after TABLESAMPLE (...) [REPEATABLE (...)], if it begins here."""
    if tokens[at].word == "TABLESAMPLE":
        while tokens[at].word != "(" and tokens[at].kind is not Kind.END:
            at += 1
        at = after_group(tokens, at)
        if tokens[at].word == "REPEATABLE" and tokens[at + 1].word == "(":
            at = after_group(tokens, at + 1)
    return at


def has_rows(tokens: Tokens, at: int) -> bool:
    """Returns whether VALUES is followed by rows; before a name, VALUES is a table and the name its alias."""
    token, following = tokens[at], tokens[min(at + 1, len(tokens) - 1)]
    if token.kind is Kind.WORD:
        return following.word == "(" or following.kind is Kind.STRING or token.word in ("NULL", "TRUE", "FALSE")
    return token.kind in (Kind.NUMBER, Kind.STRING, Kind.DOUBLE_QUOTED) or token.word in ("(", "-", "?", ":")


def travelled(text: str, tokens: Tokens, parts: Name, at: int) -> tuple[Name, str | None, str | None, int]:
    """Returns the name without `@v12` or `@yyyyMMddHHmmssSSS`, its version and timestamp, and the index after it."""
    found = after_time_travel(tokens, at)
    if found is not None:
        kind, first, at = found
        text = text[tokens[first].start : tokens[at - 1].end]
        return parts, *((text, None) if kind == "version" else (None, text)), at
    last, behind = parts[-1], at
    if tokens[at].word == "@" and tokens[at].start == tokens[at - 1].end and tokens[at + 1].start == tokens[at].end:
        last, behind = f"{last}@{tokens[at + 1].text}", at + 2
    elif tokens[at - 1].kind is not Kind.QUOTED:
        return parts, None, None, at
    suffix = _SUFFIX.fullmatch(last)
    if suffix is None:
        return parts, None, None, at
    timestamp = None if suffix["time"] is None else _timestamp(suffix["time"])
    return (*parts[:-1], suffix["name"]), suffix["version"], timestamp, behind


_SUFFIX = re.compile(r"(?P<name>.+)@(?:[vV](?P<version>[0-9]+)|(?P<time>[0-9]{17}))", re.DOTALL)


def _timestamp(digits: str) -> str:
    """Returns the SQL of Delta's `yyyyMMddHHmmssSSS`."""
    year, month, day, hour, minute, second, millis = (
        digits[start:end] for start, end in ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14), (14, 17))
    )
    return f"'{year}-{month}-{day} {hour}:{minute}:{second}.{millis}'"


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns the edited text; an edit inside the span of another edit is lost with that span."""
    pieces: list[str] = []
    done = 0
    for start, end, new in _outermost(edits):
        pieces += (text[done:start], new)
        done = end
    return "".join(pieces) + text[done:]


def moved(positions: Iterable[int], edits: Iterable[Edit]) -> Mapping[int, int]:
    """Maps positions in the text to positions in the edited text; positions in replaced spans are omitted."""
    kept = _outermost(edits)
    ends = [edit.end for edit in kept]
    shifts = [0, *accumulate(len(edit.new) - (edit.end - edit.start) for edit in kept)]
    after = {position: bisect_right(ends, position) for position in positions}
    is_left = {at: count == len(kept) or at < kept[count].start for at, count in after.items()}
    return {position: position + shifts[count] for position, count in after.items() if is_left[position]}


def _outermost(edits: Iterable[Edit]) -> list[Edit]:
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda each: (each.start, each.start != each.end, -each.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
