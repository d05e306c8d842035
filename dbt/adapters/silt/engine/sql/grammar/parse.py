"""Parses SQL into a statement.

The grammar is small: it knows the frame of each statement (which table, which clauses) and keeps queries, expressions
and types as text, so that Spark sees what the user wrote. It does not guess at unrecognised text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from dbt.adapters.silt.engine.kernel.errors import EmptyStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Explain, Name, Query, Statement, Unrecognised
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.grammar import alter, ddl, dml, insert, maintenance, session, show
from dbt.adapters.silt.engine.sql.grammar.clauses import take_ctes, with_expressions
from dbt.adapters.silt.engine.sql.grammar.insert import refuse_multi_insert
from dbt.adapters.silt.engine.sql.spans import closing, starts_query
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, begins_script, syntax_error, tokenize


@lru_cache(maxsize=128)
def parse(text: str) -> Statement:
    """Returns the statement in SQL text, without comments around it and a semicolon after it.

    Raises:
        EmptyStatementError: if the text is empty.
        StatementSyntaxError: if the statement is missing, is followed by a second statement, or ends too early or too
            late; the message names line, column and the text nearby.
        UnsupportedStatementError: if it hides the tables that it works on, or is of a kind that Spark itself runs in
            parts.
    """
    try:
        return _statement(text, _only_statement(text))
    except RecursionError as error:
        raise UnsupportedStatementError("it is nested too deeply", remedy="Split the statement") from error


def _only_statement(text: str) -> tuple[Token, ...]:
    tokens = tokenize(text)
    if begins_script(tokens):
        raise UnsupportedStatementError("SQL scripts cannot be run", remedy="Send its statements one at a time")
    for index, token in enumerate(tokens):
        if token.word == ";":
            second = next((t for t in tokens[index:] if t.word != ";"), tokens[-1])
            if second.kind is not Kind.END:
                raise syntax_error("a second statement begins here; send one at a time", text, second.start)
            tokens = (*tokens[:index], Token(Kind.END, "", "", token.start, token.start))
            break
    if len(tokens) == 1:
        if not text.strip():
            raise EmptyStatementError("the text is empty")
        raise syntax_error("the statement is missing", text, tokens[0].start)
    return tokens


def _statement(source: str, tokens: tuple[Token, ...]) -> Statement:
    cursor = Cursor(source, tokens)
    word = tokens[0].word
    if word in _QUERIES:
        return _query(cursor)
    if word == "EXPLAIN":
        return _explain(cursor)
    family = _FAMILIES.get(word)
    statement = None if family is None else family(cursor)
    if statement is None:
        return _unrecognised(cursor)
    cursor.finished()
    return statement


def _query(cursor: Cursor) -> Statement:
    """Parses a query, or a change of rows after a WITH."""
    if cursor.at("WITH"):
        ctes = take_ctes(cursor)
        change = _FAMILIES[cursor.token.word](cursor) if cursor.token.word in _CHANGES else None
        if change is not None:
            cursor.finished()
            return _pushed_down(change, ctes)
    refuse_multi_insert(cursor)
    if not cursor.at_end:
        cursor.rest()
    return Query(text=cursor.statement)


def _explain(cursor: Cursor) -> Statement:
    cursor.expect("EXPLAIN")
    mode = cursor.take_any("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
    if cursor.at_end:
        raise cursor.expected("a statement")
    inner = _statement(cursor.source, cursor.tokens[cursor.at_token :])
    return Explain(text=cursor.statement, statement=inner, mode=None if mode is None else mode.lower())


def _copy(cursor: Cursor) -> Statement:
    """Refuses COPY INTO, which Spark does not have: Databricks keeps the list of loaded files.

    Raises:
        UnsupportedStatementError: always.
    """
    cursor.expect("COPY")
    cursor.expect("INTO")
    raise UnsupportedStatementError(
        "COPY INTO is a Databricks statement, and is not supported",
        remedy="Write `insert into ... select ... from read_files(...)`",
    )


def _unrecognised(cursor: Cursor) -> Statement:
    """Returns an opaque statement that records only the names it mentions.

    Raises:
        UnsupportedStatementError: if it can work on tables that its text does not name.
    """
    mentions: dict[Name, None] = {}
    inner = Cursor(cursor.source, cursor.tokens)
    while not inner.at_end:
        if inner.token.is_identifier:
            mentions[_mentioned(inner)] = None
        else:
            inner.at_token += 1
    if cursor.tokens[0].word == "EXECUTE":
        raise UnsupportedStatementError(
            "EXECUTE IMMEDIATE inside of another statement hides its statement from this engine",
            remedy="Write the statement itself",
        )
    return Unrecognised(text=cursor.statement, mentions=tuple(mentions))


def _mentioned(cursor: Cursor) -> Name:
    if cursor.at("IDENTIFIER", "("):
        cursor.name()
    parts = [cursor.identifier()]
    while cursor.at(".") and cursor.ahead(1).is_identifier:
        cursor.at_token += 1
        parts.append(cursor.identifier())
    return tuple(parts)


_QUERIES = frozenset(("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(", "MAP", "REDUCE"))
_CHANGES = frozenset(("INSERT", "DELETE", "UPDATE", "MERGE"))
"""The first words of the statements that can follow a WITH."""

_FAMILIES: FirstWords = {
    "COPY": _copy,
    **ddl.FIRST_WORDS,
    **alter.FIRST_WORDS,
    **insert.FIRST_WORDS,
    **dml.FIRST_WORDS,
    **show.FIRST_WORDS,
    **session.FIRST_WORDS,
    **maintenance.FIRST_WORDS,
}


def _pushed_down(statement: ast.Statement, ctes: str) -> ast.Statement:
    """Returns the statement with the common table expressions in all of its queries."""
    if isinstance(statement, (ast.Insert, ast.InsertDirectory)):
        return replace(statement, query=_with_ctes(ctes, statement.query))
    if isinstance(statement, ast.Delete | ast.Update | ast.Merge):
        statement = with_expressions(statement, lambda text: _within(ctes, text))
    if isinstance(statement, ast.Merge):
        return replace(statement, source=_source(ctes, statement.source))
    return statement


def _with_ctes(ctes: str, query: str) -> str:
    return f"{ctes} ({query})" if tokenize(query)[0].word == "WITH" else f"{ctes} {query}"


def _within(ctes: str, expression: str) -> str:
    """Returns the expression with the common table expressions in its outermost subqueries."""
    tokens = tokenize(expression)
    pieces: list[str] = []
    done = index = 0
    while index < len(tokens):
        if tokens[index].word == "(" and starts_query(tokens, index + 1):
            last = closing(tokens, index)
            pieces.append(expression[done : tokens[index].end])
            pieces.append(_with_ctes(ctes, expression[tokens[index].end : tokens[last].start]))
            done, index = tokens[last].start, last
        index += 1
    return "".join(pieces) + expression[done:]


def _source(ctes: str, source: ast.MergeSource) -> ast.MergeSource:
    """Returns the source as a query, because its name may be a common table expression's."""
    alias = source.name[-1] if source.alias is None and source.name else source.alias
    return ast.MergeSource(_with_ctes(ctes, source.query), alias=alias)
