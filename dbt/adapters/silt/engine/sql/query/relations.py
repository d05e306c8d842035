"""Finds the ends of a relation's name, time travel, sample and rows in a list of tokens."""

from __future__ import annotations

import re

from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.spans import Tokens, after_group, after_time_travel
from dbt.adapters.silt.engine.sql.tokens import Kind


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
