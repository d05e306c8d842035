"""Lists and replaces the expressions of DELETE, UPDATE and MERGE: conditions and values, as SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from dbt.adapters.silt.engine.sql.ast import (
    Assignment,
    Delete,
    InsertValues,
    Merge,
    MergeAction,
    MergeClause,
    Update,
    UpdateSet,
)

RowStatement = TypeVar("RowStatement", bound=Delete | Update | Merge)


def expressions(statement: Delete | Update | Merge) -> tuple[str, ...]:
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
    if isinstance(statement, Update):
        changed["assignments"] = _assignments(statement.assignments, change)
    elif isinstance(statement, Merge):
        changed["clauses"] = tuple(_clause(clause, change) for clause in statement.clauses)
    return replace(statement, **changed)


def _assignments(assignments: tuple[Assignment, ...], change: Callable[[str], str]) -> tuple[Assignment, ...]:
    return tuple(Assignment(each.column, change(each.value)) for each in assignments)


def _clause(clause: MergeClause, change: Callable[[str], str]) -> MergeClause:
    condition = None if clause.condition is None else change(clause.condition)
    return MergeClause(clause.kind, _action(clause.action, change), condition)


def _action(action: MergeAction, change: Callable[[str], str]) -> MergeAction:
    if isinstance(action, UpdateSet):
        return UpdateSet(_assignments(action.assignments, change))
    if isinstance(action, InsertValues):
        return InsertValues(action.columns, tuple(change(value) for value in action.values))
    return action
