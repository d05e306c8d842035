"""Finds the tables and views that a statement creates, changes, renames or drops, for the records kept about them."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Effect
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace


@dataclass(frozen=True)
class Written:
    """The table that a statement changes; `table` is None if the statement names it by its path."""

    table: RelationName | None
    effect: Effect


def affected_tables(namespace: Namespace, statement: ast.Statement) -> tuple[RelationName, ...]:
    """Returns the names of the affected tables before and after the statement, with the tables of a dropped schema.

    Raises:
        InvalidNameError: if the statement would raise it.
    """
    if isinstance(statement, ast.DropSchema):
        return _tables_of(namespace, statement.name)
    if isinstance(statement, ast.Rename):
        return _renamed(namespace, statement)
    if not isinstance(statement, ast.OnTable | ast.OnObject) or not statement.changes_something:
        return ()
    found = None if ast.is_path(statement.table) else namespace.name_in_warehouse(statement.table)
    return () if found is None else (found,)


def names_in_use(namespace: Namespace, statement: ast.Statement) -> tuple[RelationName, ...]:
    """Returns the names of the warehouse that the statement starts or stops using.

    Raises:
        InvalidNameError: if the statement would raise it.
    """
    if isinstance(statement, ast.MakesTable | ast.DropTable | ast.Rename | ast.DropSchema):
        return affected_tables(namespace, statement)
    if not isinstance(statement, ast.CreateView | ast.DropView):
        return ()
    found = namespace.name_in_warehouse(statement.name)
    return () if found is None else (found,)


def _renamed(namespace: Namespace, statement: ast.Rename) -> tuple[RelationName, ...]:
    old, new = namespace.name_in_warehouse(statement.name), statement.new_name
    if old is None:
        return ()
    target = old.sibling(new[0]) if len(new) == 1 else namespace.name_in_warehouse(new)
    return (old,) if target is None else (old, target)


def _tables_of(namespace: Namespace, name: ast.Name) -> tuple[RelationName, ...]:
    database, schema = (namespace.database, name[0]) if len(name) == 1 else (name[0], name[-1])
    if len(name) > 2 or not namespace.is_database(database) or not namespace.catalog.has_schema(database, schema):
        return ()
    found = namespace.catalog.relations(database, schema)
    return tuple(each.name for each in found if each.kind is RelationKind.TABLE)
