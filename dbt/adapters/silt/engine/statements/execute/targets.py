"""The table that a statement changes, and whether its work is there already."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from dbt.adapters.silt.engine.commands.commit import merged
from dbt.adapters.silt.engine.commands.rows.row_changes import Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    InternalError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log import transaction_ids
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.sql.ast import Name, Statement
from dbt.adapters.silt.engine.sql.conditions.predicates import to_predicate
from dbt.adapters.silt.engine.statements.execute import skips
from dbt.adapters.silt.engine.statements.execute.context import Context, Result
from dbt.adapters.silt.engine.statements.resolve.namespace import SparkRelation, WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved


def table_to_change(context: Context, name: Name) -> WarehouseTable | None:
    """The table of ours that a statement changes; None where the name is Spark's.

    Raises:
        RelationNotFoundError: the name is ours and nothing is there.
        UnsupportedStatementError: it is a view.
    """
    meaning = context.namespace.meaning(name)
    if isinstance(meaning, WarehouseTable):
        return meaning
    if isinstance(meaning, SparkRelation):
        return None
    raise UnsupportedStatementError("it is a view, and a view holds no rows to change", table=".".join(name))


def refuse_unsupported(statement: Statement, table: str) -> None:
    """Raises where the statement has a clause that nothing here carries out."""
    if statement.unsupported:
        raise UnsupportedStatementError(
            f"not supported: {', '.join(statement.unsupported)}", table=table, remedy="Leave it out"
        )


def already_applied(context: Context, log: DeltaLog, snapshot: Snapshot, operation: str) -> Outcome | None:
    """The outcome of work that the table holds already: its transaction is at or above the statement's.

    What the same work read of the table before then counts no longer, as after a write of its own.
    """
    txn = context.settings.txn
    if txn is None or not snapshot.holds(txn):
        return None
    _forget_reads(context, log)
    found = transaction_ids.find_commit(log, txn[0])
    done = Outcome(operation, log.name, None, skipped=True, recorded=snapshot.transaction_version(txn[0]))
    if found is not None:
        done = replace(done, version=found.commit.version, emptied_at=found.emptied_at)
    if context.settings.log_skips:
        skips.tell(log, txn, done)
    return done


def is_applied(context: Context, statement: Statement) -> bool:
    """Whether the table that a statement makes or changes holds its work by now; False where that cannot be seen."""
    name = statement.changed_table
    if context.settings.txn is None or name is None:
        return False
    with contextlib.suppress(SiltError):  # why the statement failed is what its caller has to know
        meaning = context.namespace.meaning(name)
        return isinstance(meaning, WarehouseTable) and meaning.log.snapshot().holds(context.settings.txn)
    return False


def identifier(table: WarehouseTable, alias: str | None) -> str:
    """The one identifier by which a command qualifies the target's columns."""
    if alias is not None:
        return alias
    return "__silt_target" if table.name is None else table.name.identifier


def qualifiers(table: WarehouseTable, alias: str | None) -> dict[Name, str]:
    """The names that may qualify a target's columns, each with the identifier that the command uses."""
    if alias is not None or table.name is None:
        return {}
    return {(table.name.database, table.name.schema, table.name.identifier): table.name.identifier}


def rows_of(
    context: Context, table: WarehouseTable, alias: str | None, condition: str | None, snapshot: Snapshot
) -> Rows:
    """The rows that a resolved condition names: its text for Spark, and what it says of columns for skipping."""
    name = identifier(table, alias)
    if condition is None:
        return Rows(name, None, TRUE)
    return Rows(name, condition, to_predicate(condition, snapshot.schema, [(name,)], context.resolver.time_zone))


def changed(context: Context, log: DeltaLog, outcome: Outcome) -> Result:
    """The result of a write; what the same work read of the table before counts no longer."""
    _forget_reads(context, log)
    if context.settings.txn is not None:
        skips.note_applied(log, context.settings.txn)
    return Result(outcome=outcome)


def target_of(log: DeltaLog, resolved: Resolved) -> Target:
    """The pinned table that a command changes."""
    if resolved.target is None:
        raise InternalError("the statement's table was not pinned", table=log.name)
    return Target(log.name, log, resolved.target)


def settings_with(context: Context, resolved: Resolved) -> WriteSettings:
    """The statement's settings, with what its own texts read: of its table, and the versions of all."""
    return replace(
        context.settings,
        reads=merged(context.settings.reads, resolved.target_reads),
        commit=replace(context.settings.commit, read_versions=resolved.versions),
    )


def _forget_reads(context: Context, log: DeltaLog) -> None:
    if context.resolver.read_history is not None:
        context.resolver.read_history.forget(log)
