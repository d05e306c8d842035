"""Finds parts of the stored text of a view or a SQL function that run code, or that hide the relations it reads.

Another user may have written the catalog, and its SQL runs as the user who reads it. The tokens of the SQL are
searched, not its meaning, so that it is judged before Spark sees it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dbt.adapters.silt.engine.sql.ast import Parameter
from dbt.adapters.silt.engine.sql.query.parts import BEFORE_JOIN
from dbt.adapters.silt.engine.sql.query.references import ScannedText, scanned
from dbt.adapters.silt.engine.sql.query.rule_texts import RUNS_CODE, WITH_OPTIONS_THAT_OPEN_FILES, problem
from dbt.adapters.silt.engine.sql.spans import Tokens, closings
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, syntax_error, tokenize

FILE_FORMATS: Final = frozenset(("parquet", "csv", "json", "orc", "text"))
"""The providers through which stored SQL may read files: they only return rows."""

OTHER_PROVIDERS: Final = frozenset(
    "avro binaryfile console delta hive hudi iceberg image jdbc kafka libsvm memory noop rate rate-micro-batch silt "
    "socket state-metadata statestore xml".split()
)

HIDDEN_SELECT: Final = "`select` as a name, or before a word that is not a column"
"""A SELECT that the scan for names did not see; a syntax error is another possible cause."""

_KEYWORDS: Final = frozenset(
    """
    AND ANTI AS BETWEEN BY CASE CLUSTER CROSS DISTRIBUTE ELSE EXCEPT FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT IS
    JOIN LATERAL LEFT LIKE LIMIT MAP MINUS NATURAL NOT OFFSET ON OR ORDER OUTER PIVOT QUALIFY REDUCE REGEXP RIGHT RLIKE
    SELECT SEMI SET SORT TABLE TABLESAMPLE THEN UNION UNPIVOT USING VALUES WHEN WHERE WINDOW WITH
    """.split()
)
_BEFORE_RELATION: Final = frozenset("CASE LATERAL LEFT MAP NOT RIGHT TABLE VALUES".split())
"""Keywords after FROM, as in FROM VALUES (1) and extract(DAY FROM CASE ... END)."""

_AFTER_NAME: Final = frozenset(", ) ] . = == <=> <> != < > <= >= / % || AS FROM IS".split())
"""Tokens that may follow a name, but not one of these keywords."""

_OF_PATHS: Final = re.compile(r"[/\\:]")
_STRINGS: Final = (Kind.STRING, Kind.DOUBLE_QUOTED)
_IN_TYPES: Final = frozenset("( ) < > , : .".split())
_NOT_IN_TYPES: Final = frozenset(("RETURN", "RETURNS", "DEFAULT", "AS", "SELECT", "WITH", "FROM", "VALUES"))


@lru_cache(maxsize=1024)
def forbidden(sql: str) -> str | None:
    """Returns the forbidden part of a query or body, if any.

    Raises:
        StatementSyntaxError: as raised by `ScannedText`, or if parentheses do not match.
        UnsupportedStatementError: as raised by `ScannedText`.
    """
    text = scanned(sql)
    closed = closings(text.tokens)
    if len(closed) * 2 != sum(token.word in ("(", ")") for token in text.tokens):
        raise syntax_error("parentheses do not match", sql, 0)
    found = (_forbidden_at(text.tokens, at, closed) for at in range(len(text.tokens) - 1))
    return next((each for each in found if each is not None), None) or _unseen(text)


def names_files(name: tuple[str, ...]) -> bool:
    """Returns whether a name that is not a table's asks a provider for files: ``csv.`/data/x.csv` ``."""
    if len(name) != 2:
        return False
    provider = name[0].lower()
    return provider in FILE_FORMATS | OTHER_PROVIDERS or "." in provider or bool(_OF_PATHS.search(name[1]))


@lru_cache(maxsize=1024)
def forbidden_in_signature(parameters: tuple[Parameter, ...], returns: str | None) -> str | None:
    """Returns the forbidden part of the types and defaults of a function, if any.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    types = [each.type for each in parameters] + ([] if returns is None else [returns])
    if any(not _is_type(text) for text in types):
        return "an unknown type"
    defaults = (problem(each.default, with_chance=True) for each in parameters if each.default is not None)
    return next((found for found in defaults if found is not None), None)


def _forbidden_at(tokens: Tokens, at: int, closed: dict[int, int]) -> str | None:
    token, following = tokens[at], tokens[at + 1]
    if token.word == "USING" and (following.kind in _STRINGS or following.word in ("?", ":")):
        return "a script (`using '...'`)"
    if following.word != "(":
        return None
    if token.word == "IDENTIFIER":
        return "`identifier(...)`, which hides a name"
    if token.kind is Kind.DOUBLE_QUOTED:
        return f"the function {token.text}"
    return _call(tokens, at, closed) if token.is_identifier else None


def _call(tokens: Tokens, at: int, closed: dict[int, int]) -> str | None:
    name = tokens[at].identifier.lower()
    if name in RUNS_CODE:
        return f"the function `{name}`"
    most = WITH_OPTIONS_THAT_OPEN_FILES.get(name)
    if most is not None and _arguments(tokens[at + 2 : closed[at + 1]]) > most:
        return f"options of the function `{name}`"
    return None


def _arguments(inside: tuple[Token, ...]) -> int:
    """Returns the number of arguments between the parentheses of a call."""
    depth, commas = 0, 0
    for token in inside:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.word, 0)
        commas += token.word == "," and not depth
    return commas + 1


def _unseen(text: ScannedText) -> str | None:
    """Returns the token sequence that the scan for names may interpret differently from Spark, if any.

    A word that is an operator or begins a clause may also be a name (`select end from having`), so that the scan sees
    no query or no list of relations there.
    """
    seen = {part.at for block in text.scan.blocks for part in block.parts}
    references = {reference.start for reference in text.scan.references}
    is_doubtful = any(_is_doubtful(text.tokens, at) for at in range(len(text.tokens) - 1))
    for at, token in enumerate(text.tokens):
        is_field = at > 0 and text.tokens[at - 1].word == "."
        if token.word == "SELECT" and at not in seen and not is_field:
            return HIDDEN_SELECT
        if token.start not in references and not is_field and _is_relation(text.tokens, at, is_doubtful):
            return f"the path {text.tokens[at + 2].text}"
    return None


def _is_relation(tokens: Tokens, at: int, is_doubtful: bool) -> bool:
    """Returns whether `provider`.`path` begins here, which may be a relation that the scan did not see.

    It is a column if the provider is the name of a relation, the path may be a column's name, and no keyword that is
    perhaps a name has led the scan astray.
    """
    if not tokens[at].is_identifier or tokens[at + 1].word != "." or not tokens[at + 2].is_identifier:
        return False
    if tokens[at + 3].word == ".":  # they qualify a column
        return False
    provider, path = tokens[at].identifier, tokens[at + 2].identifier
    if provider.lower() not in FILE_FORMATS | OTHER_PROVIDERS and "." not in provider:
        return False
    return is_doubtful or bool(_OF_PATHS.search(path))


def _is_doubtful(tokens: Tokens, at: int) -> bool:
    """Returns whether a keyword may be a name: Spark lets relations and columns have such names without quotes."""
    token, following = tokens[at], tokens[at + 1]
    before = tokens[at - 1].word if at else ""
    if token.kind is not Kind.WORD or before == "." or token.word not in _KEYWORDS:
        return False
    if before in ("FROM", "JOIN", "TABLE") and token.word not in _BEFORE_RELATION:
        return True
    if following.word == "JOIN":
        return token.word not in BEFORE_JOIN
    return following.kind is Kind.END or following.word in _AFTER_NAME


def _is_type(text: str) -> bool:
    tokens = tokenize(f"({text}\n)")
    if closings(tokens).get(0) != len(tokens) - 2:
        return False
    return not any(each.word in _NOT_IN_TYPES for each in tokens) and all(
        each.is_identifier or each.kind in (Kind.NUMBER, Kind.STRING, Kind.END) or each.word in _IN_TYPES
        for each in tokens
    )
