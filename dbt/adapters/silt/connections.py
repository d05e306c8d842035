"""Connections: how dbt's statements reach the warehouse, and what each of them is counted as."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from typing import Any

import agate
from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.clients.agate_helper import empty_table
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtDatabaseError, DbtInternalError, DbtRuntimeError
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from dbt.adapters.silt.engine.catalog.catalog import Catalog, RelationKind
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.sql.tokens import identifiers
from dbt.adapters.silt.engine.statements.execute.written import Written
from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.records.commit_facts import CommitFacts, find_run_id
from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.records.units import StatementScope, Unit, on_run_hook_scope, run_operation_scope
from dbt.adapters.silt.runs.invocation import Invocation
from dbt.adapters.silt.runs.node_context import NodeContext, StatementUnits, log_of, scope_of_node, table_of
from dbt.adapters.silt.runs.query_comments import job_tags, node_tags, without_comment
from dbt.adapters.silt.runs.recorder import Recorder
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.runs.retry import PreviousResults
from dbt.adapters.silt.runs.skips import skipped, superseded
from dbt.adapters.silt.session.environment import environment_of
from dbt.adapters.silt.session.handle import SiltCursor, SiltHandle

logger = AdapterLogger("Silt")

_CLOCKS_DIFFER_BY = timedelta(hours=1)
"""At most, those of the machine that ran dbt and of the one that looks at its commits."""


class SiltConnectionManager(SQLConnectionManager):
    """The connections of one adapter, one to a thread."""

    TYPE = "silt"

    def __init__(self, profile: Any, mp_context: Any) -> None:
        super().__init__(profile, mp_context)
        self.invocation = Invocation(profile, self._run_id_of_commits)
        self.environment = environment_of(profile.credentials, self.invocation.project_root)
        if self.invocation.queries:
            self.environment.warm_up()
        self._recorder = Recorder(CommitJournal(self.invocation.target_path))
        self._local = threading.local()
        self._units = StatementUnits()

    # Opening and closing

    def set_connection_name(self, name: str | None = None) -> Connection:
        # dbt asks for a connection, on its main thread, before the first node: from then on this command is a run.
        with self.exception_handler("start the run"):
            self.invocation.on_connection()
        return super().set_connection_name(name)

    @property
    def catalog(self) -> Catalog:
        return self.environment.catalog

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        """Give the connection a session; starts Spark at the first."""
        if connection.state == ConnectionState.OPEN:
            return connection
        with self.exception_handler("open a session"):
            connection.handle = self.environment.open(self)
        connection.state = ConnectionState.OPEN
        return connection

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    def cleanup_all(self) -> None:
        super().cleanup_all()
        self.invocation.finish()

    # There are no transactions over several statements: each commits by itself.

    def begin(self) -> Connection:
        return self.get_thread_connection()

    def commit(self) -> Connection:
        return self.get_thread_connection()

    def clear_transaction(self) -> None:
        """Nothing to clear."""

    # Statements

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Run a text's statements; the rows of the last one if they are asked for, at most `limit`."""
        sql = self._add_query_comment(sql)
        with self._telling_of_hook():
            _, cursor = self.add_query(sql, auto_begin)
            with self.exception_handler(sql):
                if fetch:
                    return cursor.response, cursor.agate(limit)
                cursor.drain()
                return cursor.response, empty_table()

    def run(self, warehouse: Warehouse, statement: str) -> tuple[Result, SiltResponse]:
        """Run one statement for a cursor, as the unit of work that it is, and record what it committed."""
        self.invocation.on_statement(statement)
        written, scope = self._place_of(warehouse, statement)
        unit = self._unit_of(statement, written, scope)
        facts = self._facts(unit)
        late = self._overtaken(unit, written, scope)
        if late is not None:
            self._recorder.record(late, facts, self.work.committed)
            return Result(), late
        result = warehouse.execute(
            statement,
            unit.txn if unit else None,
            commit_info=facts.commit_info(),
            isolation_level=IsolationLevel(unit.isolation_level) if unit and unit.isolation_level else None,
            user_metadata=unit.user_metadata if unit else None,
            replace_tables=self.work.replace_tables,
        )
        response = SiltResponse.of(result.outcome, unit)
        if unit is not None:
            self._units.note_done(unit)
        if result.outcome is not None:
            self._recorder.record(response, facts, self.work.committed)
        if response.skipped and unit is not None and written is not None:
            self._explain_skip(response, unit, written)
        return result, response

    def without_comment(self, sql: str) -> str:
        return without_comment(sql, self._query_comment)

    def job_tags(self) -> tuple[str, ...]:
        """What this thread's Spark jobs are tagged with: the node, its own tags, the query comment."""
        return job_tags((get_node_info().get("unique_id"), *self.work.tags, self._query_comment))

    @classmethod
    def get_response(cls, cursor: SiltCursor) -> SiltResponse:
        return cursor.response

    @classmethod
    def data_type_code_to_name(cls, type_code: Any) -> str:
        return str(type_code)

    @contextlib.contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """The one place where errors of the engine and of Spark become dbt's."""
        try:
            yield
        except DbtRuntimeError:
            raise
        except SiltError as error:
            raise DbtDatabaseError(str(error)) from error
        except (PySparkException, Py4JJavaError) as error:
            raise DbtDatabaseError(without_java_stack(_without_plan(error))) from error
        except Exception as error:
            logger.debug(f"Error while running:\n{sql}")
            raise DbtRuntimeError(f"{type(error).__name__}: {error}") from error

    # What a node is at

    @property
    def work(self) -> NodeContext:
        """This thread's."""
        if not hasattr(self._local, "work"):
            self._local.work = NodeContext()
        return self._local.work

    def begin_node(self, config: Any) -> None:
        """The materialization of this thread's node begins, with this configuration."""
        self.work.tags, self.work.batch_id = node_tags(config), _batch_id(config)

    @contextlib.contextmanager
    def doing(self, unit: Unit) -> Iterator[None]:
        """The statement that is run in here is this unit of work."""
        work = self.work
        work.unit = unit
        try:
            yield
        finally:
            work.unit = None

    @contextlib.contextmanager
    def replacing_tables(self) -> Iterator[None]:
        """A view that is made in here may take the place of a table."""
        work = self.work
        work.replace_tables = True
        try:
            yield
        finally:
            work.replace_tables = False

    def note_skip(self, response: SiltResponse, unit: Unit) -> None:
        """Keep that an earlier commit had done a unit of work."""
        self._recorder.record(response, self._facts(unit), self.work.committed)

    @contextlib.contextmanager
    def node_scope(self, node: Any) -> Iterator[None]:
        """What this thread runs in here belongs together: a node, or several hooks, or an operation.

        An error that ends it says what had landed. So does a model of several batches, of which some failed.
        """
        outer, self._local.work = self.work, NodeContext(node)
        try:
            yield
        except BaseException as error:
            message = self.work.committed.take_all_messages()
            self._append_to_error(error, message)
            if message is not None and self.handle.is_cancelled:
                # Of a command that is interrupted, dbt shows no error of a node.
                logger.warning(f"{get_node_info().get('unique_id') or 'Cancelled'}: {message}")
            if self.work.batch_id is not None:
                self._recorder.batches.fail(node.unique_id)
            raise
        finally:
            self._local.work = outer
            if node is not None and getattr(node, "batch", None) is None:
                self._append_to_error(None, self._recorder.batches.ended(node.unique_id))

    def end_node(self) -> None:
        """The materialization of this thread's node came to its end."""
        self.work.ended = True

    def leave_node(self) -> None:
        """dbt is through with this thread's node; of a batch that failed, it has passed over the error by now."""
        work, node_id = self.work, get_node_info().get("unique_id")
        if work.batch_id is not None and not work.ended:
            self._recorder.batches.fail(str(node_id))
            self._append_to_error(None, work.committed.take_message(node_id))

    @property
    def handle(self) -> SiltHandle:
        """This thread's open connection's."""
        return self.get_thread_connection().handle

    def _place_of(self, warehouse: Warehouse, statement: str) -> tuple[Written | None, StatementScope | None]:
        """What a statement changes and where it is run, unless it is a node's own write or leaves nothing behind."""
        if self.work.unit is not None or not self.invocation.has_started:
            return None, None
        written = warehouse.written(statement)
        return (None, None) if written is None else (written, self.work.scope or self._outer_scope())

    def _unit_of(self, statement: str, written: Written | None, scope: StatementScope | None) -> Unit | None:
        """The unit of work that a statement is."""
        work = self.work
        if work.unit is not None:
            return work.unit
        named = work.named.pop(0) if work.named else None
        if named is not None or written is None or scope is None or not work.is_unit(written):
            return named
        return self._units.next(scope, statement)

    def _overtaken(
        self, unit: Unit | None, written: Written | None, scope: StatementScope | None
    ) -> SiltResponse | None:
        """What is reported where a statement comes too late, because its node's own write was there before."""
        node = self.work.node
        if unit is None or written is None or scope is None or node is None or scope.own_write is None:
            return None
        table = table_of(node, self.profile.credentials.database)
        log = log_of(self.catalog, table) if written.table == table else None
        own_write = None if log is None else self._units.own_write_already_done(unit, scope, log)
        return None if log is None or own_write is None else superseded(log, unit, own_write)

    def _explain_skip(self, response: SiltResponse, unit: Unit, written: Written) -> None:
        """Say it where it may surprise; of an operation always, because dbt says nothing of what one did."""
        if self.invocation.operation is not None:
            logger.info(f"{response}; to do it again, give a new run id")
        elif (log := log_of(self.catalog, written.table)) is not None:
            skipped(log, unit)

    def _outer_scope(self) -> StatementScope | None:
        """That of the hook of a run, of the operation, or of the node that this thread is at."""
        context, full_refresh = self.invocation.context, self.invocation.full_refresh
        if self.invocation.operation is not None:
            return run_operation_scope(context, self.invocation.operation)
        if self.work.is_writing_node:
            return scope_of_node(context, self.work.node, full_refresh, self.profile.credentials.database)
        node_id = get_node_info().get("unique_id")
        return on_run_hook_scope(context, node_id, full_refresh) if node_id and self.work.node is None else None

    def _facts(self, unit: Unit | None) -> CommitFacts:
        node = get_node_info()
        return CommitFacts(
            invocation_id=self.invocation.id,
            target=str(getattr(self.profile, "target_name", "")),
            run_id=unit.run_id if unit else self.invocation.run_id,
            node_id=node.get("unique_id") or self.invocation.operation,
            batch_id=self.work.batch_id,
            app_id=unit.app_id if unit else None,
            node_checksum=(unit.checksum if unit else None) or node.get("node_checksum"),
            query_comment=(self._query_comment or "").strip() or None,
        )

    @property
    def _query_comment(self) -> str | None:
        """This thread's; None where there is none, and before dbt has read the project."""
        return self.query_header.comment.query_comment if self.query_header else None

    @contextlib.contextmanager
    def _telling_of_hook(self) -> Iterator[None]:
        """An error in here says what the same on-run hook had committed: nothing above sees it but dbt."""
        try:
            yield
        except DbtRuntimeError as error:
            node = get_node_info()
            if node.get("resource_type") == "operation":
                self._append_to_error(error, self.work.committed.take_message(node.get("unique_id")))
            raise

    def _append_to_error(self, error: BaseException | None, message: str | None) -> None:
        """Add it to the error's own text, where dbt shows that."""
        if message is None:
            return
        if isinstance(error, DbtRuntimeError | DbtInternalError):
            error.msg = f"{error.msg}\n{message}"
        else:
            logger.warning(message)

    def _run_id_of_commits(self, previous: PreviousResults) -> str | None:
        """For `dbt retry`: the run id in the commits of the tables that the results name, else of any other."""
        since = previous.started_at - _CLOCKS_DIFFER_BY
        return find_run_id(self._logs(previous.relations), previous.invocation_id, since)

    def _logs(self, first: tuple[str, ...]) -> Iterator[DeltaLog]:
        """The tables of the warehouse, the named ones first: hooks and operations write to others than a node's own."""
        named = [RelationName(*parts) for parts in map(identifiers, first) if len(parts) == 3]
        found = (self.catalog.find(name) for name in named)
        everywhere = (
            entry
            for database in self.catalog.databases()
            for schema in self.catalog.schemas(database)
            for entry in self.catalog.relations(database, schema)
        )
        for entry in chain(found, everywhere):
            if entry is not None and entry.kind is RelationKind.TABLE:
                yield self.catalog.table(entry.name)


def _batch_id(config: Any) -> str | None:
    batch = getattr(getattr(config, "model", None), "batch", None)
    return batch.id if batch else None


def without_java_stack(text: str) -> str:
    """The message of an error of Spark's, without the lines that say where in Spark it was raised."""
    return text.partition("\nJVM stacktrace:")[0].partition("\n\tat ")[0].strip()


def _without_plan(error: Exception) -> str:
    """The message of an error; that of a query that Spark cannot make sense of ends with its plan, of many lines."""
    return str(error).partition(";\n")[0] if isinstance(error, AnalysisException) else str(error)
