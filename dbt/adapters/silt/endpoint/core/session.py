"""The session of a client: its state, and how it runs a statement."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.endpoint.core.answers import NO_ROWS, Answer, Column, answer_of
from dbt.adapters.silt.endpoint.core.exactly_once import RUN_ID, RunUnits, WritingStatement, checked_run_id
from dbt.adapters.silt.endpoint.core.house import MAX_ROWS, MAX_SECONDS, Client, House, Limits, too_large
from dbt.adapters.silt.endpoint.core.publication import PUBLISH, SessionPublication
from dbt.adapters.silt.engine.answers.connection import AnswersWithoutSpark
from dbt.adapters.silt.engine.answers.sessions import change_no_answer, changes_session
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.grammar.session import immediate
from dbt.adapters.silt.engine.statements.execute.dataframe_write import WriteOptions
from dbt.adapters.silt.engine.statements.steps.context import Result
from dbt.adapters.silt.engine.statements.transactions.session_transaction import BRANCH_SETTING
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.records.known_runs import OF_SESSION
from dbt.adapters.silt.runs.fetch import fetchable
from dbt.adapters.silt.session.stages import stages_of
from dbt.adapters.silt.session.statement_process import MetastoreEntries
from dbt.adapters.silt.status_lines.line import Stages

if TYPE_CHECKING:
    from typing import Unpack

_DEFAULT = "default"
_SPARKLESS = (RUN_ID, MAX_ROWS, MAX_SECONDS)
"""The endpoint's own settings, which change no answer."""


class Session:
    """The session of a client: current schema, temporary views, settings, transaction, branch and run id.

    Attributes:
        id: a secret, by which the client's connections name it.
        client: the client.
        limits: the limits of its statements, which the session may have lowered.
    """

    def __init__(
        self, house: House, client: Client, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.id = secrets.token_hex(16)
        self.client, self.limits, self._most = client, limits, limits
        self.last_used = clock()
        self._house, self._clock = house, clock
        self._lock = threading.RLock()
        self._users = 0
        self._warehouse: Warehouse | None = None
        self._answers: AnswersWithoutSpark | None = house.environment.answers()
        self._units = RunUnits(house.target)
        whose = f"{OF_SESSION}{client}"
        self._publication = SessionPublication(house.environment.catalog, house.current[0], house.target, whose)
        self._stages: Callable[[], Stages] | None = None
        self._has_ended = False

    def take_over(self, other: Session, clone: Callable[[SparkSession], SparkSession]) -> None:
        """Makes this new session a clone of another: with its schema, views, settings, limits, run and branch.

        Args:
            clone: clones a session of Spark.

        Raises:
            InvalidStatementError: if a transaction is open in the other session.
            SiltError: if the branch of its run cannot be opened.
        """
        with other.busy():
            house, published = other._opened(), other._publication
            self._warehouse = house.for_clone(clone)
            self.limits, self._answers, self._units = other.limits, other._answers, other._units.copied()
            self._publication.mode = published.mode
            if published.run_id is not None:
                self._warehouse.join(published.database, None)
                self._publication.begin(self._warehouse)  # the run waits for both sessions

    @property
    def warehouse(self) -> Warehouse:
        """The engine in this session, which is opened when it is first needed; on the branch of its run, if it has one.

        Raises:
            SparkEndedError: if the session's Spark has ended.
            SiltError: if Spark cannot be started, the branch cannot be opened, or the session has ended.
        """
        house = self._opened()
        if self._publication.is_pending:
            with self._lock:
                if self._publication.is_pending:
                    self._publication.begin(house)
        return house

    def _opened(self) -> Warehouse:
        if self._warehouse is None:
            with self._lock:
                if self._has_ended:
                    raise ended()
                self._warehouse = self._warehouse or self._house.open()
        self._house.environment.check_living(self._warehouse)
        return self._warehouse

    @property
    def current(self) -> tuple[str, str]:
        """The current database and schema."""
        return self._house.current if self._warehouse is None else self._warehouse.current

    @property
    def catalog(self) -> Catalog:
        """The relations that this session sees, as of now, without Spark."""
        house = self._warehouse
        return (self._house.environment.catalog if house is None else house.catalog).for_statement()

    @property
    def is_idle(self) -> bool:
        """Whether no statement runs or waits."""
        return self._users == 0

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keeps the session from expiring until the block ends."""
        self._users += 1
        try:
            yield
            self._publication.note(failed=False)
        except Exception:
            self._publication.note(failed=True)
            raise
        finally:
            self._users -= 1
            self.last_used = self._clock()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Waits for the running statement, and lets others wait until the block ends."""
        with self.in_use(), self._lock:
            yield

    def check(self, statement: ast.Statement) -> None:
        """Checks that the limits allow a statement.

        Raises:
            ReadOnlyStorageError: if it would change something, and the session is read-only.
        """
        if not self.limits.is_read_only:
            return
        is_temporary = isinstance(statement, ast.CreateView) and statement.scope is not ast.ViewScope.PERSISTENT
        joins = isinstance(statement, ast.SetSetting) and statement.key in (BRANCH_SETTING, PUBLISH)
        if joins or isinstance(statement, ast.Begin) or (statement.changes_something and not is_temporary):
            raise _read_only(f"`{' '.join(statement.text.split()[:2])}`")

    def run(self, text: str) -> Answer:
        """Runs a statement, and returns its result.

        Raises:
            SiltError: if it failed; `problem_of` describes it for a client.
        """
        with self.busy():
            return self._quick(text) or self._run(text)

    def _quick(self, text: str) -> Answer | None:
        """Returns the answer to a query that needs no Spark, unless statements have changed the session."""
        if self._answers is None:
            return None
        database, schema = self.current
        known = replace(self._answers, catalog=self.catalog, database=database, schema=schema)
        query = known.prepared(text)
        most = self.limits.most_rows
        rows = None if query is None else known.rows(query, None if most is None else most + 1)
        return None if rows is None else self._limited(answer_of(rows))

    def _run(self, text: str) -> Answer:
        result = self.execute(text)
        if result.dataframe is None and result.outcome is None:
            return NO_ROWS
        return replace(self._fetched(result.rows(self._opened().spark)), outcome=result.outcome)

    def execute(self, text: str, statement: ast.Statement | None = None) -> Result:
        """Runs a statement as `run` does, and returns a query's rows, not yet computed, or the outcome of a change.

        The caller holds `busy()`.

        Args:
            statement: the parsed text, if the caller has parsed it.
        """
        house = self._opened()
        statement = statement or house.parsed(text)
        self.check(statement)
        if self._means_default(statement):
            return Result()
        if statement.changes_session or changes_session(statement):
            self._note_change(statement)
        if isinstance(statement, (ast.SetSetting, ast.ResetSetting)):
            self.limits = self._most.after(statement, self.limits)
            self._settle(house, self._publication.on_setting(statement, house))
        elif not isinstance(statement, ast.Use):
            house = self.warehouse
        written = WritingStatement.of(text)
        if immediate(written.text) is not None:
            written = replace(written, text=statement.text)
        with self._noting(statement.changes_something, written.text):
            return self._execute(house, statement, written)

    def _execute(self, house: Warehouse, statement: ast.Statement, written: WritingStatement) -> Result:
        entries = MetastoreEntries(house, self._house.environment.registration())
        names = entries.names(statement)
        unit, run_id = None, None
        if house.written(statement) is not None and (run_id := self._run_id(house)):
            unit = self._units.unit(run_id, written)
        info = self._units.commit_info(run_id, unit, written, str(self.client))
        result = house.execute(statement, None if unit is None else unit.txn, commit_info=info)
        if unit is not None:
            self._units.note_done(unit)
        tuple(entries.settle(names))
        return result

    def _run_id(self, house: Warehouse) -> str | None:
        """Returns the logical run of the session, if its settings name one."""
        given = house.spark.conf.get(RUN_ID, None)
        return checked_run_id(given) if given else None

    def _settle(self, house: Warehouse, names: Collection[RelationName]) -> None:
        """Registers the tables that the session has published."""
        if names:
            tuple(MetastoreEntries(house, self._house.environment.registration()).settle(tuple(names)))

    @contextlib.contextmanager
    def _noting(self, is_change: bool, what: str) -> Iterator[None]:
        """Notes whether a change succeeds, which decides whether the session's run is published."""
        try:
            yield
        except Exception:
            if is_change:
                self._publication.note_change(what, failed=True)
            raise
        self._publication.note_change(what, failed=False)

    def write(self, rows: DataFrame, table: str, mode: str, **options: Unpack[WriteOptions]) -> Outcome:
        """Writes the rows of a DataFrame of this session; arguments and errors are as for `Warehouse.write`.

        The caller holds `busy()`.
        """
        if self.limits.is_read_only:
            raise _read_only("a write of rows")
        with self._noting(is_change=True, what=f"{mode} {table}"):
            house = self.warehouse
            info = self._units.commit_info(self._run_id(house), None, WritingStatement(""), str(self.client))
            return house.write(rows, table, mode=mode, commit_info=info, **options)

    def _means_default(self, statement: ast.Statement) -> bool:
        """Returns whether it is the `use default` that tools send at connect, and the warehouse has no such schema."""
        is_default = isinstance(statement, ast.Use) and tuple(map(str.lower, statement.name)) == (_DEFAULT,)
        return is_default and not self.catalog.has_schema(self.current[0], _DEFAULT)

    def _note_change(self, statement: ast.Statement) -> None:
        is_harmless = isinstance(statement, ast.Use) or (
            isinstance(statement, ast.SetSetting)
            and (statement.value is None or statement.key in _SPARKLESS or _is_harmless(statement.key or ""))
        )
        if not is_harmless:
            self._answers = None

    def _fetched(self, frame: DataFrame) -> Answer:
        if not frame.columns:
            frame.collect()
            return NO_ROWS
        columns = tuple(Column(each.name, each.dataType.simpleString()) for each in frame.schema.fields)
        most = self.limits.most_rows
        rows = fetchable(frame if most is None else frame.limit(most + 1)).toArrow()
        return self._limited(Answer(columns, rows))

    def _limited(self, answer: Answer) -> Answer:
        most = self.limits.most_rows
        if most is not None and answer.rows.num_rows > most:
            raise too_large(most)
        return answer

    def interrupt(self) -> None:
        """Stops the Spark jobs of this session."""
        if self._warehouse is not None:
            with contextlib.suppress(*SPARKS):  # a Spark that has ended runs no jobs
                self._warehouse.spark.interruptAll()

    def progress(self) -> Stages:
        """Returns the progress of the Spark jobs of this session."""
        if self._warehouse is None:
            return Stages()
        self._stages = self._stages or stages_of(self._warehouse.spark)
        return self._stages()

    def close(self, problem: str = "") -> None:
        """Ends the session: rolls back its open transaction, publishes its run, and releases its session of Spark.

        Args:
            problem: why it has not done its work, as the end of a sentence, so that its run is held; empty if its
                client has ended it.

        Raises:
            SiltError: if its run could not be published; the session is closed.
        """
        with self._lock:
            house, self._warehouse, self._has_ended = self._warehouse, None, True
            if house is None:
                return
            try:
                house.roll_back()
                self._settle(house, self._publication.end(problem)[1])
            finally:
                self._house.environment.release(house)


def _read_only(what: str) -> errors.ReadOnlyStorageError:
    return errors.ReadOnlyStorageError(
        f"the endpoint is read-only, so it does not run {what}",
        remedy="Only query it, or start the endpoint with `--no-read-only`",
    )


def _is_harmless(key: str) -> bool:
    return change_no_answer({key: ""}) and key != "spark.sql.session.timeZone"


def ended() -> errors.InvalidStatementError:
    """Returns the error for a session that is not open."""
    return errors.InvalidStatementError(
        "the session does not exist: it was closed, or was idle for too long", remedy="Connect again"
    )
