"""Finds the names by which a statement's expressions qualify the columns of its table."""

from __future__ import annotations

from dbt.adapters.silt.engine.commands.rows.file_rows import Rows
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions.predicates import to_predicate
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.steps.context import Context

SOURCE_ALIAS = "__silt_source"
"""Qualifies the columns of a query that has no alias."""


def identifier(table: WarehouseTable, alias: str | None) -> str:
    """Returns the single identifier by which a command qualifies the table's columns."""
    if alias is not None:
        return alias
    return "__silt_target" if table.name is None else table.name.identifier


def qualifiers(table: WarehouseTable, alias: str | None) -> dict[Name, str]:
    """Returns the longer names that may qualify the table's columns -> the identifier that the command uses."""
    if alias is not None or table.name is None:
        return {}
    return {(table.name.database, table.name.schema, table.name.identifier): table.name.identifier}


def rows_of(
    context: Context, table: WarehouseTable, alias: str | None, condition: str | None, snapshot: Snapshot
) -> Rows:
    """Returns the rows that a pinned condition selects, or all rows if it is None."""
    name = identifier(table, alias)
    if condition is None:
        return Rows(name, None, TRUE)
    return Rows(name, condition, to_predicate(condition, snapshot.schema, [(name,)], context.resolver.time_zone))
