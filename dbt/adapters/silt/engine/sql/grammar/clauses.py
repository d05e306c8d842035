"""The grammar of WITH and CHANGED KEYS, and the expressions in the clauses of DELETE, UPDATE and MERGE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.mistakes import comma_remedy
from dbt.adapters.silt.engine.sql.spans import starts_query_in_parentheses


def take_ctes(cursor: Cursor) -> str:
    """Steps over WITH and its common table expressions, and returns their text."""
    first = cursor.at_token
    cursor.expect("WITH")
    cursor.optional_keyword("RECURSIVE")
    cursor.separated(_skip_one)
    return cursor.cut(first, cursor.at_token)


def _skip_one(cursor: Cursor) -> None:
    if cursor.at("SELECT") and cursor.ahead(1).word not in ("AS", "("):
        raise cursor.error("expected a common table expression, found `select`", comma_remedy(cursor.tokens))
    cursor.identifier("the name of a common table expression")
    if cursor.at("(") and not starts_query_in_parentheses(cursor.tokens, cursor.at_token):
        cursor.group()
    if cursor.take("MAX", "RECURSION", "LEVEL"):
        cursor.until("AS", "(", what="a number")
    cursor.take("AS")
    cursor.group()


def changed_keys(cursor: Cursor) -> ast.ChangedKeys:
    """Parses (columns) [MAPPED TO input (columns), ...] [OR REPLACE ALL], after CHANGED KEYS."""
    columns = cursor.listed(Cursor.column)
    inputs = cursor.separated(_input) if cursor.take("MAPPED", "TO") else ()
    return ast.ChangedKeys(columns, inputs, cursor.take("OR", "REPLACE", "ALL"))


def _input(cursor: Cursor) -> tuple[ast.Name, tuple[str, ...]]:
    return cursor.name(), cursor.listed(Cursor.column)


RowStatement = TypeVar("RowStatement", bound=ast.Delete | ast.Update | ast.Merge)


def expressions(statement: ast.Delete | ast.Update | ast.Merge) -> tuple[str, ...]:
    """Returns the text of each expression, once; the source of a MERGE is a query and is not included."""
    found: dict[str, None] = {}

    def note(text: str) -> str:
        found[text] = None
        return text

    with_expressions(statement, note)
    return tuple(found)


def with_expressions(statement: RowStatement, change: Callable[[str], str]) -> RowStatement:
    """Returns the statement with each of its expressions changed."""
    changed: dict[str, Any] = {"condition": None if statement.condition is None else change(statement.condition)}
    if isinstance(statement, ast.Update):
        changed["assignments"] = _assignments(statement.assignments, change)
    elif isinstance(statement, ast.Merge):
        changed["clauses"] = tuple(_clause(clause, change) for clause in statement.clauses)
    return replace(statement, **changed)


def _assignments(assignments: tuple[ast.Assignment, ...], change: Callable[[str], str]) -> tuple[ast.Assignment, ...]:
    return tuple(ast.Assignment(each.column, change(each.value)) for each in assignments)


def _clause(clause: ast.MergeClause, change: Callable[[str], str]) -> ast.MergeClause:
    condition = None if clause.condition is None else change(clause.condition)
    return ast.MergeClause(clause.kind, _action(clause.action, change), condition)


def _action(action: ast.MergeAction, change: Callable[[str], str]) -> ast.MergeAction:
    if isinstance(action, ast.UpdateSet):
        return ast.UpdateSet(_assignments(action.assignments, change))
    if isinstance(action, ast.InsertValues):
        return ast.InsertValues(action.columns, tuple(change(value) for value in action.values))
    return action
