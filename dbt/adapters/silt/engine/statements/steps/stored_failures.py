"""Stores the failing rows of an audit in a table of its own, as dbt's `store_failures` does for a test."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.audits import verdicts
from dbt.adapters.silt.engine.audits.audit import Audit, AuditResult
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark import errors as spark_errors
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.target import TableLocation
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.sql.ast import CreateMode, Name
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.engine.statements.resolve.resolve import Cut
from dbt.adapters.silt.engine.statements.steps.context import Context
from dbt.adapters.silt.engine.statements.steps.create_target import create_target_of

_logger = logging.getLogger(__name__)


def parsed(table: str) -> Name:
    """Returns the parts of a table's name in SQL."""
    cursor = Cursor(table, tokenize(table))
    name = cursor.name()
    cursor.finished()
    return name


def check_place(context: Context, stored_in: str | None, table: RelationName | None) -> None:
    """Checks that an audit stores its failing rows elsewhere than in the table whose rows it judges.

    Raises:
        InvalidArgumentError: if it would replace that table.
    """
    if stored_in is not None and context.namespace.name_in_warehouse(parsed(stored_in)) == table:
        raise InvalidArgumentError(
            "the failing rows of an audit cannot replace the table that it judges",
            remedy="Store them in another table: in dbt, give the test another `alias` or `schema`",
            table=str(table),
        )


@dataclass(frozen=True)
class StoredFailures:
    """Stores failing rows of a version that is not committed; they stay if the statement is refused.

    Args:
        context: the context of the statement, in which the table has its name.
        cut: the newest snapshots of the other tables that the statement reads.
    """

    context: Context
    cut: Cut

    def stored(self, log: DeltaLog, made: Snapshot, audit: Audit, result: AuditResult) -> AuditResult:
        """Returns the result of an audit after its failing rows are stored, if it stores them.

        A failure to store them is logged, because it must not hide the verdict.
        """
        if audit.stored_in is None or result.status == "pass":
            return result
        try:
            (sql,) = self.context.resolver.of_future([verdicts.failing_sql(audit)], log, made, self.cut)
            with spark_errors.mapped():
                self._create(_outside_of_statement(self.context), sql, parsed(audit.stored_in))
        except SiltError as error:
            _logger.warning("The failing rows of `%s` are not stored in %s: %s", audit.name, audit.stored_in, error)
            return result
        return replace(result, stored_in=audit.stored_in)

    def _create(self, context: Context, sql: str, name: Name) -> None:
        """Replaces the table by the rows of a resolved query; creates its schema if it is missing."""
        name = (context.namespace.database, *name) if len(name) == 2 else name
        full = context.namespace.name_in_warehouse(name)
        if full is not None:
            context.catalog.create_schema(full.database, full.schema, if_not_exists=True)
        target = create_target_of(context, name, CreateMode.CREATE_OR_REPLACE)
        if target is None:
            raise InvalidArgumentError("it is not a table of the warehouse", table=".".join(name))
        log = target.prepare(context)
        location = TableLocation(log, log.snapshot() if target.log is not None else None)
        alone = replace(context.settings, txn=None, positions=(), build=None, audits=None, judge=None)
        rows = context.spark.sql(sql)
        create.create(context.spark, location, Definition(), rows, CreateMode.CREATE_OR_REPLACE, alone)
        target.finish(context, log)


def _outside_of_statement(context: Context) -> Context:
    """Returns the context without the transaction of the statement alone, which is rolled back with the statement."""
    if not context.transaction.is_of_statement:
        return context
    return replace(context, namespace=replace(context.namespace, catalog=context.transaction.main))
