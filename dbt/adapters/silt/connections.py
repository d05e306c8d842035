"""dbt's contract of a connection: opens, cancels and closes connections, runs SQL and maps errors."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql.connections import SQLConnectionManager
from dbt_common.clients.agate_helper import empty_table
from dbt_common.events.event_manager_client import add_callback_to_manager
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.command_server import idle_time
from dbt.adapters.silt.dbt_seams import interruption
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SiltError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records import locations
from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.runs import ending
from dbt.adapters.silt.runs.current_node import CurrentNode
from dbt.adapters.silt.runs.logical_run.invocation import Invocation
from dbt.adapters.silt.runs.logical_run.publication import PublicationSettings, RunPublication
from dbt.adapters.silt.runs.logical_run.publish_mode import PublishMode, publish_mode
from dbt.adapters.silt.runs.logical_run.retry import run_id_of_commits
from dbt.adapters.silt.runs.recorder import Recorder
from dbt.adapters.silt.runs.submission import Submission
from dbt.adapters.silt.runs.tests_not_run import ReusedTests
from dbt.adapters.silt.status_lines import choice

if TYPE_CHECKING:
    import agate

    from dbt.adapters.silt.credentials import SiltCredentials
    from dbt.adapters.silt.dbt_seams import run_again
    from dbt.adapters.silt.dbt_seams.dbt_command import CommandEnd
    from dbt.adapters.silt.duckdb_file import file as duckdb_file
    from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
    from dbt.adapters.silt.engine.statements.resolve import stored_code
    from dbt.adapters.silt.materializations.reuse import ProjectFacts
    from dbt.adapters.silt.records.units import Unit
    from dbt.adapters.silt.runs import statement_runner
    from dbt.adapters.silt.runs.response import SiltResponse
    from dbt.adapters.silt.session import early_spark, errors, registration
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
        self.publication = self._find_publication()
        self._lock = threading.Lock()
        if self.publication.is_on:
            run_again.ask_adapters()
        self._runner: statement_runner.StatementRunner | None = None
        self._registration: registration.Registration | None = None
        add_callback_to_manager(self.node.on_event)
        ending.end_quickly()
        self.declared_files: Callable[[], Container[str]] = tuple
        self.project_facts: Callable[[], ProjectFacts]
        self._display = choice.display_of(profile.credentials.spark_conf)
        self._cancelled: list[Connection] = []
        self.reused_tests = ReusedTests()
        self._new_folders = self._find_new_folders() if self.invocation.queries else {}
        if self.invocation.queries:
            # Spark's start takes as long as dbt takes to read a project, and does not depend on the project.
            threading.Thread(target=self._warm_up, name="silt-warm-up", daemon=True).start()

    def _find_publication(self) -> RunPublication:
        """Returns the publication of this command's changes.

        Raises:
            DbtRuntimeError: if the variable `silt_publish` is invalid.
        """
        given = cast("SiltCredentials", self.profile.credentials)
        try:
            mode = publish_mode(self.invocation.variables, given.publish)
            if given.branch and mode is not PublishMode.AT_ONCE:
                problem = f"a command on the branch `{given.branch}` cannot publish: `silt merge` publishes the branch"
                raise InvalidSettingError(problem, remedy="Leave the variable `silt_publish` out")
        except InvalidSettingError as error:
            raise DbtRuntimeError(str(error)) from error
        names = (given.database, given.schema)
        settings = PublicationSettings(
            mode, *names, given.publish_attempts, given.held_inputs == "newest", given.branch
        )
        return RunPublication(self.invocation, settings, lambda: self.environment.catalog, self._run_later)

    @property
    def again(self) -> run_again.Again | None:
        """Returns which nodes of a command that is published run again before it ends; None for other commands."""
        return self._run_again if self.publication.is_on else None

    def first(self, ran: run_again.RanNodes) -> frozenset[str]:
        """Returns the nodes that this command has to run whole, selected or not."""
        with self.exception_handler("start the run"):
            return self.publication.first(replace(ran, files=self.listed_files))

    def _run_again(self, ran: run_again.RanNodes) -> frozenset[str]:
        """Returns the nodes that this command runs again, as if it had been typed again."""
        chosen = self.publication.again(replace(ran, files=self.listed_files))
        if chosen:
            with self._lock:
                self._runner = None  # it counts the statements of a command
        return chosen

    @property
    def listed_files(self) -> Container[str]:
        """The files that this process lists if a log names them."""
        return stored_code.NamedFiles(self.declared_files())

    # Loaded with the first statement

    @property
    def environment(self) -> environments.Environment:
        credentials = cast("SiltCredentials", self.profile.credentials)
        return environments.environment_of(credentials, self.invocation.project_root)

    def _warm_up(self) -> None:
        if self.invocation.starts_spark_early:
            given, root = cast("SiltCredentials", self.profile.credentials), self.invocation.project_root
            failure = early_spark.start(given, root, meanwhile=lambda: environments.environment_of)
            self.environment.warm_up(failure)
        elif not self.environment.can_answer:
            self.environment.warm_up()

    @property
    def runner(self) -> statement_runner.StatementRunner:
        with self._lock:
            if self._runner is None:
                self._runner = statement_runner.StatementRunner(
                    self.invocation,
                    self.node,
                    self._recorder,
                    target=str(getattr(self.profile, "target_name", "")),
                    database=self.profile.credentials.database,
                    query_comment=self._query_comment,
                )
            return self._runner

    def take_changed_name(self, name: RelationName) -> bool:
        """Returns whether this command has created or dropped a relation of that name since the previous call."""
        return self._runner is not None and self._runner.take_changed_name(name)

    @property
    def registration(self) -> registration.Registration | None:
        """Returns this command's entries in the profile's metastore, if any."""
        with self._lock:
            if self._registration is None:
                self._registration = self.environment.registration()
            return self._registration

    # Opening and closing

    def set_connection_name(self, name: str | None = None) -> Connection:
        # dbt asks for a connection, on its main thread, before the first node: from then on this command is a run.
        with self.exception_handler("start the run"):
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

    def _run_later(self, statement: LaterStatement) -> None:
        """Runs a statement of this run in a session outside of its branch."""
        handle = self.environment.open(self.runner, None, self.declared_files())
        try:
            response = handle.run_later(statement, self.invocation.run.run_id)
        except Exception as error:
            known = errors.as_dbt_error(error, lambda: self.environment.catalog)
            raise (known or DbtRuntimeError(f"{type(error).__name__}: {error}")) from error
        finally:
            handle.close()
        logger.info(f"After the publication: {statement.text.splitlines()[0]:.80}: {response}")

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        """Gives the connection a session; the first starts Spark, unless the command may do without it."""
        if connection.state == ConnectionState.OPEN:
            return connection
        with self.exception_handler("open a session"):
            connection.handle = self.environment.open(
                self.runner,
                self._display,
                self.declared_files(),
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
        self.invocation.finish(self._end_run)
        self._register_published()
        self.publication.raise_failure()

    def _end_run(self, end: CommandEnd) -> CommandEnd:
        """Publishes the changes of the run, if it is published, and shows the visible tables in the profile's file."""
        decided = self.publication.end(end)
        if not end.interrupted:
            self._write_duckdb_file()
        return decided

    def _write_duckdb_file(self) -> None:
        """Replaces the profile's file of DuckDB, if any; a failure is only a warning."""
        given = cast("SiltCredentials", self.profile.credentials)
        if given.duckdb_file is None or given.branch:  # the file shows the visible tables
            return
        target = (self.invocation.project_root / given.duckdb_file).absolute()
        try:
            shown, left_out = duckdb_file.write_tables(target, self.environment.catalog, given.database)
        except SiltError as error:
            logger.warning(f"The tables are committed, but `duckdb_file` is not written: {error}")
            return
        without = f", left out: {len(left_out)}; `silt catalog duckdb` says why" if left_out else ""
        logger.info(f"{target} is written (tables: {len(shown)}{without})")

    def _register_published(self) -> None:
        """Registers the published tables in the profile's metastore, if any; a failure is only a warning."""
        names = sorted(self.publication.published)
        if names and self.registration is not None:
            for warning in self.registration.settle_committed(names):
                logger.warning(warning)

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
