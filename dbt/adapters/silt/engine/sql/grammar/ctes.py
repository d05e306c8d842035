"""WITH in front of INSERT, DELETE, UPDATE and MERGE.

The common table expressions move into every query of the statement that could use them, so that each query and each
condition of a statement stands on its own.
"""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.sql.ast import (
    Assignment,
    Delete,
    Insert,
    InsertDirectory,
    InsertValues,
    Merge,
    MergeAction,
    MergeClause,
    MergeSource,
    Statement,
    Update,
    UpdateSet,
)
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.spans import closing, starts_query, starts_query_in_parentheses
from dbt.adapters.silt.engine.sql.tokens import tokenize


def take_ctes(cursor: Cursor) -> str:
    """Step over WITH and its common table expressions, and give their text."""
    first = cursor.at_token
    cursor.expect("WITH")
    cursor.optional_keyword("RECURSIVE")
    cursor.separated(_skip_one)
    return cursor.cut(first, cursor.at_token)


def pushed_down(statement: Statement, ctes: str) -> Statement:
    """The statement with the common table expressions in all of its queries."""
    if isinstance(statement, (Insert, InsertDirectory)):
        return replace(statement, query=_before(ctes, statement.query))
    if isinstance(statement, Delete):
        return replace(statement, condition=_optional(ctes, statement.condition))
    if isinstance(statement, Update):
        condition = _optional(ctes, statement.condition)
        return replace(statement, condition=condition, assignments=_assignments(ctes, statement.assignments))
    if isinstance(statement, Merge):
        return replace(
            statement,
            source=_source(ctes, statement.source),
            condition=_within(ctes, statement.condition),
            clauses=tuple(_clause(ctes, clause) for clause in statement.clauses),
        )
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
    """The expression with the common table expressions in its outermost subqueries."""
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


def _optional(ctes: str, expression: str | None) -> str | None:
    return None if expression is None else _within(ctes, expression)


def _assignments(ctes: str, assignments: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
    return tuple(Assignment(a.column, _within(ctes, a.value)) for a in assignments)


def _source(ctes: str, source: MergeSource) -> MergeSource:
    """The source as a query, for its name may be that of a common table expression."""
    alias = source.name[-1] if source.alias is None and source.name else source.alias
    return MergeSource(_before(ctes, source.query), alias=alias)


def _clause(ctes: str, clause: MergeClause) -> MergeClause:
    return MergeClause(clause.kind, _action(ctes, clause.action), _optional(ctes, clause.condition))


def _action(ctes: str, action: MergeAction) -> MergeAction:
    if isinstance(action, UpdateSet):
        return UpdateSet(_assignments(ctes, action.assignments))
    if isinstance(action, InsertValues):
        return InsertValues(action.columns, tuple(_within(ctes, value) for value in action.values))
    return action
