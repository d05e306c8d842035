"""Carries out DROP TABLE, and RENAME of a table or view."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import (
    RelationNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.pass_to_spark import pass_to_spark

_NOTHING = Result()


def drop_table(context: Context, statement: ast.DropTable) -> Result:
    """DROP TABLE: the log ends, the folder goes."""
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
    """ALTER TABLE | VIEW ... RENAME TO; a new name without a schema stays in the old one's."""
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
        raise RelationNotFoundError(f"there is no such {statement.kind.value}", table=str(old))
    context.catalog.rename(old, target)
    return _NOTHING
