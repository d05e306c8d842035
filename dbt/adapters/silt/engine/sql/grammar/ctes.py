"""The grammar of WITH before INSERT, DELETE, UPDATE and MERGE.

The common table expressions move into every query of the statement that could use them, so that each query and
condition is self-contained.
"""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.sql.ast import Delete, Insert, InsertDirectory, Merge, MergeSource, Statement, Update
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.grammar.expressions import with_expressions
from dbt.adapters.silt.engine.sql.spans import closing, starts_query, starts_query_in_parentheses
from dbt.adapters.silt.engine.sql.tokens import tokenize


def take_ctes(cursor: Cursor) -> str:
    """Steps over WITH and its common table expressions, and returns their text."""
    first = cursor.at_token
    cursor.expect("WITH")
    cursor.optional_keyword("RECURSIVE")
    cursor.separated(_skip_one)
    return cursor.cut(first, cursor.at_token)


def pushed_down(statement: Statement, ctes: str) -> Statement:
    """Returns the statement with the common table expressions in all of its queries."""
    if isinstance(statement, (Insert, InsertDirectory)):
        return replace(statement, query=_before(ctes, statement.query))
    if isinstance(statement, Delete | Update | Merge):
        statement = with_expressions(statement, lambda text: _within(ctes, text))
    if isinstance(statement, Merge):
        return replace(statement, source=_source(ctes, statement.source))
    return statement


def _skip_one(cursor: Cursor) -> None:
    cursor.identifier("the name of a common table expression")
    if cursor.at("(") and not starts_query_in_parentheses(cursor.tokens, cursor.at_token):
        cursor.group()
    if cursor.take("MAX", "RECURSION", "LEVEL"):
        cursor.until("AS", "(", what="a number")
    cursor.take("AS")
    cursor.group()


def _before(ctes: str, query: str) -> str:
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
            pieces.append(_before(ctes, expression[tokens[index].end : tokens[last].start]))
            done, index = tokens[last].start, last
        index += 1
    return "".join(pieces) + expression[done:]


def _source(ctes: str, source: MergeSource) -> MergeSource:
    """Returns the source as a query, because its name may be a common table expression's."""
    alias = source.name[-1] if source.alias is None and source.name else source.alias
    return MergeSource(_before(ctes, source.query), alias=alias)
