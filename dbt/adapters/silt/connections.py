"""Connections: how dbt's statements reach the warehouse, and what each of them is counted as."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
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

from dbt.adapters.silt.commit_facts import CommitFacts, find_run_id
from dbt.adapters.silt.commits import SiltResponse
from dbt.adapters.silt.engine.catalog.catalog import Catalog, RelationKind
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log import DeltaLog
from dbt.adapters.silt.engine.kernel.properties import IsolationLevel
from dbt.adapters.silt.engine.statements.tokens import identifiers
from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.handle import SiltCursor, SiltHandle, environment_of
from dbt.adapters.silt.invocation import Invocation
from dbt.adapters.silt.journal import CommitJournal
from dbt.adapters.silt.landed import Landed
from dbt.adapters.silt.query_comments import job_tags, node_tags, without_comment
from dbt.adapters.silt.recording import Recorder
from dbt.adapters.silt.retries import PreviousResults
from dbt.adapters.silt.units import HookScope, Unit, on_run_hook_scope, text_hash

logger = AdapterLogger("Silt")

_CLOCKS_DIFFER_BY = timedelta(hours=1)
"""At most, those of the machine that ran dbt and of the one that looks at its commits."""


@dataclass
class NodeWork:
    """What one thread's node is at.

    Attributes:
        unit: the unit of work that the next statement is.
        scope: the hook whose statements are units of their own.
        replace_tables: whether the view that the next statement makes may take the place of a table.
        landed: the units of work that are done so far.
        tags: the node's.
        batch_id: of the batch, where the node is one of a microbatch model.
        ended: whether its materialization came to its end.
    """

    unit: Unit | None = None
    scope: HookScope | None = None
    replace_tables: bool = False
    landed: Landed = field(default_factory=Landed)
    tags: tuple[str, ...] = ()
    batch_id: str | None = None
    ended: bool = False


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
        self._occurrences: Counter[str] = Counter()
        self._occurrences_lock = threading.Lock()

    # Opening and closing

    def set_connection_name(self, name: str | None = None) -> Connection:
        # dbt asks for a connection, on its main thread, before the first node: from then on this command is a run.
        with self.exception_handler("start the run"):
            self.invocation.connect()
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
        self.invocation.reach(statement)
        unit = self._unit_of(statement)
        facts = self._facts(unit)
        result = warehouse.execute(
            statement,
            unit.txn if unit else None,
            commit_info=facts.commit_info(),
            isolation_level=IsolationLevel(unit.isolation_level) if unit and unit.isolation_level else None,
            user_metadata=unit.user_metadata if unit else None,
            replace_tables=self.work.replace_tables,
        )
        response = SiltResponse.of(result.outcome, unit)
        if result.outcome is not None:
            self._recorder.record(response, facts, self.work.landed)
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
    def work(self) -> NodeWork:
        """This thread's."""
        if not hasattr(self._local, "work"):
            self._local.work = NodeWork()
        return self._local.work

    def begin_node(self, config: Any = None) -> None:
        """Forget what this thread's last node was at; the next one has this configuration."""
        self._local.work = NodeWork(tags=node_tags(config), batch_id=_batch_id(config))

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
        self._recorder.record(response, self._facts(unit), self.work.landed)

    @contextlib.contextmanager
    def piece_of_work(self, node: Any) -> Iterator[None]:
        """What this thread runs in here belongs together: a node, or several hooks, or an operation.

        An error that ends it says what had landed. So does a model of several batches, of which some failed.
        """
        outer, self._local.work = self.work, NodeWork()
        try:
            yield
        except BaseException as error:
            self._say(error, self.work.landed.told_all())
            if self.work.batch_id is not None:
                self._recorder.batches.fail(node.unique_id)
            raise
        finally:
            self._local.work = outer
            if node is not None and getattr(node, "batch", None) is None:
                self._say(None, self._recorder.batches.ended(node.unique_id))

    def end_node(self) -> None:
        """The materialization of this thread's node came to its end."""
        self.work.ended = True

    def leave_node(self) -> None:
        """dbt is through with this thread's node; of a batch that failed, it has passed over the error by now."""
        work, node_id = self.work, get_node_info().get("unique_id")
        if work.batch_id is not None and not work.ended:
            self._recorder.batches.fail(str(node_id))
            self._say(None, work.landed.told(node_id))

    @property
    def handle(self) -> SiltHandle:
        """This thread's open connection's."""
        return self.get_thread_connection().handle

    def _unit_of(self, statement: str) -> Unit | None:
        """The unit of work that a statement is; none outside of a node's own write and of hooks."""
        work = self.work
        if work.unit is not None:
            return work.unit
        scope = work.scope or self._on_run_hook()
        if scope is None:
            return None
        key = f"{scope.prefix}/{text_hash(statement)}"
        with self._occurrences_lock:
            self._occurrences[key] += 1
            return scope.unit(statement, self._occurrences[key])

    def _on_run_hook(self) -> HookScope | None:
        node_id = get_node_info().get("unique_id")
        if not node_id or not self.invocation.writes:
            return None
        return on_run_hook_scope(self.invocation.context, node_id, self.invocation.full_refresh)

    def _facts(self, unit: Unit | None) -> CommitFacts:
        node = get_node_info()
        return CommitFacts(
            invocation_id=self.invocation.id,
            target=str(getattr(self.profile, "target_name", "")),
            run_id=unit.run_id if unit else self.invocation.run_id,
            node_id=node.get("unique_id"),
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
                self._say(error, self.work.landed.told(node.get("unique_id")))
            raise

    def _say(self, error: BaseException | None, message: str | None) -> None:
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
