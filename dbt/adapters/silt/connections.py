"""dbt's contract of a connection: opens, cancels and closes connections, runs SQL and maps errors."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql.connections import SQLConnectionManager
from dbt_common.clients.agate_helper import empty_table
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.command_server import idle_time
from dbt.adapters.silt.dbt_seams import interruption
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records import locations
from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.runs import ending
from dbt.adapters.silt.runs.current_node import CurrentNode
from dbt.adapters.silt.runs.logical_run.invocation import Invocation
from dbt.adapters.silt.runs.logical_run.publication import RunPublication
from dbt.adapters.silt.runs.logical_run.retry import run_id_of_commits
from dbt.adapters.silt.runs.recorder import Recorder
from dbt.adapters.silt.runs.submission import Submission
from dbt.adapters.silt.runs.tests_not_run import ReusedTests
from dbt.adapters.silt.session.command_sessions import CommandSessions
from dbt.adapters.silt.status_lines import choice

if TYPE_CHECKING:
    import agate

    from dbt.adapters.silt.credentials import SiltCredentials
    from dbt.adapters.silt.dbt_seams import run_again
    from dbt.adapters.silt.duckdb_file import file as duckdb_file
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.engine.statements.resolve import stored_code
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.runs import statement_runner
    from dbt.adapters.silt.runs.response import SiltResponse
    from dbt.adapters.silt.session import early_spark, errors
    from dbt.adapters.silt.session import environment as environments
    from dbt.adapters.silt.session.handle import SiltCursor, SiltHandle
else:
    duckdb_file = lazy_module("dbt.adapters.silt.duckdb_file.file")
    stored_code = lazy_module("dbt.adapters.silt.engine.statements.resolve.stored_code")
    run_again = lazy_module("dbt.adapters.silt.dbt_seams.run_again")
    statement_runner = lazy_module("dbt.adapters.silt.runs.statement_runner")
    early_spark = lazy_module("dbt.adapters.silt.session.early_spark")
    environments = lazy_module("dbt.adapters.silt.session.environment")
    errors = lazy_module("dbt.adapters.silt.session.errors")

logger = AdapterLogger("Silt")


class SiltConnectionManager(SQLConnectionManager):
    """Manages the connections of an adapter: each thread has its own."""

    TYPE = "silt"

    def __init__(self, profile: Any, mp_context: Any) -> None:
        super().__init__(profile, mp_context)
        self.invocation = Invocation(profile, lambda previous: run_id_of_commits(self.catalog, previous))
        idle_time.send(cast("SiltCredentials", profile.credentials).keep_alive_time)
        self._recorder = Recorder(CommitJournal(self.invocation.target_path))
        self.node = CurrentNode(self._recorder.batches)
        self.sessions = CommandSessions(profile, self.invocation, self._new_runner)
        self.publication = RunPublication(self.invocation, profile.credentials, self.sessions)
        add_callback_to_manager(self.node.on_event)
        ending.end_quickly()
        self._display = choice.display_of(profile.credentials.spark_conf)
        self._cancelled: list[Connection] = []
        self.reused_tests = ReusedTests()
        self._new_folders = self._find_new_folders() if self.invocation.queries else {}
        if self.invocation.queries:
            # Spark's start takes as long as dbt takes to read a project, and does not depend on the project.
            threading.Thread(target=self.sessions.warm_up, name="silt-warm-up", daemon=True).start()

    def _new_runner(self) -> statement_runner.StatementRunner:
        return statement_runner.StatementRunner(
            self.invocation,
            self.node,
            self._recorder,
            target=str(getattr(self.profile, "target_name", "")),
            database=self.profile.credentials.database,
            query_comment=self._query_comment,
        )

    # Opening and closing

    def set_connection_name(self, name: str | None = None) -> Connection:
        # dbt asks for a connection, on its main thread, before the first node: from then on this command is a run.
        self.publication.begin()
        self.log_new_folder(self.profile.credentials.database)
        return super().set_connection_name(name)

    def _find_new_folders(self) -> dict[str, str]:
        """Returns, by database, the missing folders that this command creates if it writes to them."""
        given = cast("SiltCredentials", self.profile.credentials)
        return locations.new_folders(
            locations.locations(given.database, given.warehouse, given.databases, self.invocation.project_root)
        )

    def log_new_folder(self, database: str) -> None:
        """Logs once that this command creates the folder of a database, because its path may contain a mistake."""
        folder = self._new_folders.pop(database, None)
        if folder is not None:
            field = "warehouse" if database == self.profile.credentials.database else "databases"
            logger.info(f"New warehouse at {folder} (`{field}` in the profile): the folder did not exist")

    @property
    def catalog(self) -> Catalog:
        self.node.context.looks += 1
        return self.publication.catalog

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        """Gives the connection a session; the first starts Spark, unless the command may do without it."""
        if connection.state == ConnectionState.OPEN:
            return connection
        with self.exception_handler("open a session"):
            connection.handle = self.sessions.environment.open(
                self.sessions.runner,
                self._display,
                self.sessions.declared_files(),
                self.invocation.may_need_no_spark,
                self.invocation.on_session,
                self.publication.branch,
                lambda: self._check_wanted(connection),
            )
        connection.state = ConnectionState.OPEN
        self._check_wanted(connection)
        return connection

    def _check_wanted(self, connection: Connection) -> None:
        if interruption.is_ending() or any(each is connection for each in self._cancelled):
            raise DbtRuntimeError("cancelled: the command was stopped before this session opened")

    def cancel_open(self) -> list[str]:
        """Cancels the connections of other threads, and refuses those that are not open yet; returns their names.

        dbt's own method would open these first, and so wait until Spark has started.
        """
        own = self.get_if_exists()
        with self.lock:
            others = [each for each in self.thread_connections.values() if each is not own]
        self._cancelled += others
        for each in others:
            if each.state == ConnectionState.OPEN:
                self.cancel(each)
        return [each.name for each in others if each.name is not None]

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    def cleanup_all(self) -> None:
        super().cleanup_all()
        if self._display is not None:
            self._display.stop()
        self.reused_tests.sum_up()
        self.invocation.finish(self.publication.end)
        self.publication.raise_failure()

    # Each statement commits by itself, so these methods of dbt have no effect.

    def begin(self) -> Connection:  # type: ignore[override]  # as dbt's own for SQL
        return self.get_thread_connection()

    def commit(self) -> Connection:  # type: ignore[override]
        return self.get_thread_connection()

    def clear_transaction(self) -> None:
        """Does nothing: each statement commits by itself."""

    # Statements

    def execute(
        self,
        sql: str,
        auto_begin: bool = False,
        fetch: bool = False,
        limit: int | None = None,
        unit: Unit | None = None,
        replace_tables: bool = False,
    ) -> tuple[AdapterResponse, agate.Table]:
        """Runs the statements of SQL text, and returns at most `limit` rows of the last statement if `fetch` is set.

        Args:
            unit: the unit of work, if the text is the node's own write.
            replace_tables: whether a view that is created may replace a table.
        """
        with self.node.hook_errors():
            _, cursor = self._submit(Submission(sql, unit, replace_tables), auto_begin)
            with self.exception_handler(sql):
                if fetch:
                    return cursor.response, cursor.agate(limit)
                cursor.drain()
                return cursor.response, empty_table()  # type: ignore[no-untyped-call]

    def add_select_query(self, sql: str) -> tuple[Connection, SiltCursor]:
        return self._submit(Submission(sql))

    def _submit(self, submission: Submission, auto_begin: bool = False) -> tuple[Connection, SiltCursor]:
        """Submits the SQL: dbt logs it with the query comment, and the cursor runs it without the comment."""
        self.node.context.looks += 1
        return self.add_query(self._add_query_comment(submission.text), auto_begin, submission)

    def _query_comment(self) -> str | None:
        """Returns this thread's query comment, if any; dbt creates it when it has read the project."""
        return self.query_header.comment.query_comment if self.query_header else None

    @classmethod
    def get_response(cls, cursor: SiltCursor) -> SiltResponse:
        return cursor.response

    @classmethod
    def data_type_code_to_name(cls, type_code: Any) -> str:
        return str(type_code)

    @contextlib.contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turns errors of the engine and of Spark into dbt's; nothing else does."""
        try:
            yield
        except DbtRuntimeError:
            raise
        except Exception as error:
            explained = self.publication.explained(self.node.explained(error))
            known = errors.as_dbt_error(explained, lambda: self.handle.warehouse.catalog)
            if known is not None:
                raise known from error
            logger.debug(f"Error while running:\n{sql}")
            raise DbtRuntimeError(f"{type(error).__name__}: {error}") from error

    @property
    def handle(self) -> SiltHandle:
        """The handle of this thread's open connection."""
        handle: SiltHandle = self.get_thread_connection().handle
        return handle
