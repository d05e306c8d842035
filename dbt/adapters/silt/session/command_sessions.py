"""Opens the warehouse, sessions and entries in other catalogs for a dbt command, outside of the branch of its run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Container, Iterator
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.runs.logical_run.invocation import PUBLISHING_COMMANDS, Invocation

if TYPE_CHECKING:
    from dbt.adapters.silt.credentials import SiltCredentials
    from dbt.adapters.silt.duckdb_file import file as duckdb_file
    from dbt.adapters.silt.engine.catalog import upkeep
    from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
    from dbt.adapters.silt.engine.statements.resolve import stored_code
    from dbt.adapters.silt.runs.statement_runner import StatementRunner
    from dbt.adapters.silt.session import early_spark, errors, registration
    from dbt.adapters.silt.session import environment as environments
else:
    duckdb_file = lazy_module("dbt.adapters.silt.duckdb_file.file")
    upkeep = lazy_module("dbt.adapters.silt.engine.catalog.upkeep")
    stored_code = lazy_module("dbt.adapters.silt.engine.statements.resolve.stored_code")
    early_spark = lazy_module("dbt.adapters.silt.session.early_spark")
    environments = lazy_module("dbt.adapters.silt.session.environment")
    errors = lazy_module("dbt.adapters.silt.session.errors")

logger = AdapterLogger("Silt")


class CommandSessions:
    """The sessions of a dbt command.

    Args:
        profile: the configuration of the command.
        invocation: the command.
        new_runner: returns a new runner of the command's statements.

    Attributes:
        declared_files: returns the files that the project's views may read.
    """

    def __init__(self, profile: Any, invocation: Invocation, new_runner: Callable[[], StatementRunner]) -> None:
        self._credentials: SiltCredentials = profile.credentials
        self._invocation = invocation
        self._new_runner = new_runner
        self._lock = threading.Lock()
        self._runner: StatementRunner | None = None
        self._registration: registration.Registration | None = None
        self.declared_files: Callable[[], Container[str]] = tuple

    @property
    def environment(self) -> environments.Environment:
        """The environment of the profile, loaded with the first statement."""
        return environments.environment_of(self._credentials, self._invocation.project_root)

    def warm_up(self) -> None:
        """Starts Spark, unless all queries of the command may be answered without it."""
        if self._invocation.starts_spark_early:
            root = self._invocation.project_root
            failure = early_spark.start(self._credentials, root, meanwhile=lambda: environments.environment_of)
            self.environment.warm_up(failure)
        elif not self.environment.can_answer:
            self.environment.warm_up()

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse, without the changes of the run."""
        return self.environment.catalog

    @property
    def published(self) -> Catalog:
        """The relations of the warehouse, also if the profile has a branch."""
        return self.environment.published

    def forget_branch(self) -> None:
        """Finds the profile's branch again when it is next used: it may continue on another branch since."""
        if self._credentials.branch:
            self.environment.forget_branch()

    @property
    def listed_files(self) -> Container[str]:
        """The files that this process lists if a log names them."""
        return stored_code.NamedFiles(self.declared_files())

    @property
    def runner(self) -> StatementRunner:
        """The runner of the command's statements."""
        with self._lock:
            if self._runner is None:
                self._runner = self._new_runner()
            return self._runner

    def begin_again(self) -> None:
        """Counts the statements of nodes that run again from the beginning, as for a command."""
        with self._lock:
            self._runner = None

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

    def register(self, published: Collection[RelationName]) -> None:
        """Registers published tables in the profile's metastore, if any; a failure is only a warning."""
        if published and not self._credentials.branch and self.registration is not None:
            for warning in self.registration.settle_committed(sorted(published)):
                logger.warning(warning)

    def run_later(self, statement: LaterStatement) -> None:
        """Runs a statement of this run in a session outside of its branch.

        Raises:
            DbtRuntimeError: if it fails.
        """
        self.forget_branch()
        handle = self.environment.open(self.runner, None, self.declared_files())
        try:
            with self.dbt_errors():
                response = handle.run_later(statement, self._invocation.run.run_id)
        finally:
            handle.close()
        logger.info(f"After the publication: {statement.text.splitlines()[0]:.80}: {response}")

    @contextlib.contextmanager
    def dbt_errors(self) -> Iterator[None]:
        """Turns errors of the engine and of Spark into dbt's."""
        try:
            yield
        except DbtRuntimeError:
            raise
        except Exception as error:
            known = errors.as_dbt_error(error, lambda: self.catalog)
            raise (known or DbtRuntimeError(f"{type(error).__name__}: {error}")) from error

    def keep_up(self) -> str | None:
        """Keeps up the tables of the warehouse, as the profile says, if this command builds; returns a line about it. A
        failure is only a warning.
        """
        given = self._credentials
        if given.branch or self._invocation.which not in PUBLISHING_COMMANDS:
            return None
        try:
            in_use = ProjectRecords.of(self._invocation.target_path).tables_in_use(self._invocation.id)
            names, budget = upkeep.tables_of(self.catalog, given.database), str(given.upkeep["budget"])
            statement = upkeep.statement_for(self.catalog, names, budget, in_use)
            done = "nothing to do" if statement is None else self._note_of(statement)
        except Exception as error:
            known = errors.as_dbt_error(error, lambda: self.catalog) or error
            logger.warning(f"The tables are committed, but the upkeep has ended early: {known}")
            return None
        logger.info(f"Upkeep: {done}")
        return done

    def _note_of(self, statement: str) -> str:
        """Runs a maintenance statement outside of the run; returns its effect as a line."""
        handle = self.environment.open(self.runner, None, self.declared_files())
        try:
            return handle.warehouse.execute(handle.warehouse.parsed(statement)).note
        finally:
            handle.close()

    def write_duckdb_file(self) -> None:
        """Replaces the profile's file of DuckDB, if any; a failure is only a warning."""
        if self._credentials.duckdb_file is None or self._credentials.branch:  # the file shows the visible tables
            return
        target = (self._invocation.project_root / self._credentials.duckdb_file).absolute()
        try:
            shown, left_out = duckdb_file.write_tables(target, self.catalog, self._credentials.database)
        except SiltError as error:
            logger.warning(f"The tables are committed, but `duckdb_file` is not written: {error}")
            return
        without = f", left out: {len(left_out)}; `silt catalog duckdb` says why" if left_out else ""
        logger.info(f"{target} is written (tables: {len(shown)}{without})")
