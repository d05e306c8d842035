"""Runs DROP TABLE, and RENAME of a table or view."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import (
    InvalidStatementError,
    RelationNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.statements.execute.views import drop_temporary
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.pass_to_spark import pass_to_spark

_NOTHING = Result()


def drop_table(context: Context, statement: ast.DropTable) -> Result:
    """Runs DROP TABLE: ends the log, deletes the folder. A temporary view of that name takes precedence."""
    if drop_temporary(context, statement.table):
        return _NOTHING
    if ast.is_path(statement.table):
        raise UnsupportedStatementError(
            "a table that is named by its path cannot be dropped",
            table=statement.table[1],
            remedy="Delete its folder when nothing reads it",
        )
    name = context.namespace.name_in_warehouse(statement.table)
    if name is None:
        return pass_to_spark(context, statement)
    context.catalog.drop_table(name, if_exists=statement.if_exists)
    return _NOTHING


def rename(context: Context, statement: ast.Rename) -> Result:
    """Runs ALTER TABLE | VIEW ... RENAME TO; a new name without a schema keeps the old schema."""
    if context.namespace.is_temporary(statement.name):
        return _rename_temporary(context, statement)
    old = context.namespace.name_in_warehouse(statement.name)
    if old is None:
        return pass_to_spark(context, statement)
    new = statement.new_name
    target = old.sibling(new[0]) if len(new) == 1 else context.namespace.writable(new)
    if target is None:
        raise UnsupportedStatementError(
            f"it cannot be renamed to `{'.'.join(new)}`, which is not in a warehouse", table=str(old)
        )
    entry = context.catalog.find(old)
    if entry is None or entry.kind.value != statement.kind.value:
        raise RelationNotFoundError(f"the {statement.kind.value} does not exist", table=str(old))
    context.catalog.rename(old, target)
    return _NOTHING


def _rename_temporary(context: Context, statement: ast.Rename) -> Result:
    """Renames a temporary view that is kept here; Spark renames its own views."""
    kept = context.namespace.temporary.get(statement.name[0].lower())
    if kept is None:
        return pass_to_spark(context, statement)
    new = statement.new_name
    if len(new) != 1 or context.namespace.is_temporary(new):
        raise InvalidStatementError(
            f"a temporary view cannot be renamed to `{'.'.join(new)}`",
            table=statement.name[0],
            remedy="Give a name without a schema, which no other temporary view has",
        )
    context.namespace.temporary[new[0].lower()] = context.namespace.temporary.pop(statement.name[0].lower())
    return _NOTHING
