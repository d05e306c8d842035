"""Finds the location at which a statement creates a table, prepares it, and finishes it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import ConcurrentCreateError, RelationExistsError, RelationNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, Name
from dbt.adapters.silt.engine.statements.steps.context import Context


@dataclass(frozen=True)
class CreateTarget:
    """The location of a table to create, by name or by path.

    Attributes:
        log: the table that is replaced, if any.
        is_view: whether the table replaces a view.
        is_dropped: whether the open transaction has dropped the table: for the statement it does not exist.
    """

    name: RelationName | None
    path: str | None
    log: DeltaLog | None
    is_view: bool = False
    is_dropped: bool = False

    @property
    def exists(self) -> bool:
        """Whether the statement finds a table there."""
        return self.log is not None and not self.is_dropped

    def mode(self, asked: CreateMode) -> CreateMode:
        """Returns the mode in which a statement creates the table: a table that was dropped is replaced.

        Raises:
            RelationNotFoundError: if the statement only replaces a table, and the transaction has dropped it.
        """
        if not self.is_dropped:
            return asked
        if asked is CreateMode.REPLACE:
            raise RelationNotFoundError("the table to replace does not exist", table=self.label)
        return CreateMode.CREATE_OR_REPLACE

    @property
    def label(self) -> str:
        return str(self.name) if self.name is not None else f"delta.`{self.path}`"

    def prepare(self, context: Context) -> DeltaLog:
        """Returns the table's handle, and creates the folder of a new table.

        Raises:
            ConcurrentCreateError: if another writer has created the table since the lookup.
        """
        if self.log is not None:
            return self.log
        if self.name is not None:
            return self._made(context, self.name)
        log = context.catalog.table_at(str(self.path))
        log.store.make_folder(LOG_FOLDER)
        return log

    def finish(self, context: Context, log: DeltaLog) -> None:
        """Gives the table its name, and drops the view that it replaces, even if an interrupted statement left it.

        Raises:
            ConcurrentCreateError: if another writer has created a table of that name meanwhile; this table is deleted.
        """
        if self.name is None:
            return
        try:
            context.catalog.publish_table(self.name, log, self.is_view)
        except RelationExistsError as error:
            raise _made_meanwhile(self.name) from error

    def _made(self, context: Context, name: RelationName) -> DeltaLog:
        try:
            return context.catalog.new_table(name, replace_view=self.is_view)
        except RelationExistsError as error:
            if context.catalog.find(name) is None:
                raise
            raise _made_meanwhile(name) from error


def _made_meanwhile(name: RelationName) -> ConcurrentCreateError:
    return ConcurrentCreateError("another writer has created it meanwhile", table=str(name))


def create_target_of(context: Context, name: Name, mode: CreateMode) -> CreateTarget | None:
    """Returns the location of the table to create, or None if the name is Spark's.

    CREATE OR REPLACE TABLE may replace a view.

    Raises:
        RelationExistsError: if a view of that name exists, and `mode` is not CREATE OR REPLACE.
        SchemaNotFoundError: if the schema does not exist.
    """
    if ast.is_path(name):
        log = context.catalog.table_at(name[1])
        return CreateTarget(None, name[1], log if log.exists() else None)
    full = context.namespace.writable(name)
    if full is None:
        return None
    entry = context.catalog.find(full)
    if entry is not None and entry.kind is RelationKind.TABLE:
        return CreateTarget(full, None, context.catalog.table(full))
    if entry is not None and mode is not CreateMode.CREATE_OR_REPLACE:
        raise RelationExistsError("a view with that name exists", table=str(full), remedy="Drop the view first")
    dropped = context.catalog.dropped_table(full)
    return CreateTarget(full, None, dropped, is_view=entry is not None, is_dropped=dropped is not None)
