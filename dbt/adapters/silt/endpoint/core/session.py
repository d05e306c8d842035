"""The session of a client: its state, and how it runs a statement."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from dbt.adapters.silt.endpoint.core.answers import NO_ROWS, Answer, Column, answer_of
from dbt.adapters.silt.endpoint.core.exactly_once import RUN_ID, RunUnits, WritingStatement
from dbt.adapters.silt.engine.answers.connection import AnswersWithoutSpark
from dbt.adapters.silt.engine.answers.sessions import change_no_answer, changes_session
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.statements.execute.dataframe_write import WriteOptions
from dbt.adapters.silt.engine.statements.steps.context import Result
from dbt.adapters.silt.engine.statements.transactions.session_transaction import BRANCH_SETTING
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.environment import Environment
from dbt.adapters.silt.session.fetch import fetchable
from dbt.adapters.silt.session.statement_process import MetastoreEntries

if TYPE_CHECKING:
    from typing import Unpack

_CLIENT = "the statement of a client"
_DEFAULT = "default"


@dataclass(frozen=True)
class Client:
    """A client, as its connection describes it.

    Attributes:
        user: the name that it gives; not an identity: all clients share a token.
        program: the door, and the client's own name if it states one.
    """

    user: str
    program: str


@dataclass(frozen=True)
class Limits:
    """The limits of all sessions.

    Attributes:
        is_read_only: whether statements may only read, and create temporary views.
        most_rows: the maximum number of rows of a result; None for all.
        idle_seconds: after how long without a statement a session ends.
        most_sessions: how many sessions may be open.
    """

    is_read_only: bool = False
    most_rows: int | None = None
    idle_seconds: float = 3600
    most_sessions: int = 100


@dataclass(frozen=True)
class House:
    """The warehouse that sessions work on.

    Attributes:
        environment: the warehouse of the profile, with its Spark.
        current: the database and schema of new sessions.
        target: the name of the profile's target, for the facts of commits.
        declared: the files that the project declares, which its views may read.
    """

    environment: Environment
    current: tuple[str, str]
    target: str = "endpoint"
    declared: Container[str] = ()

    def open(self) -> Warehouse:
        """Opens a session of Spark, which is started if it does not run."""
        return self.environment.warehouse(self.declared).for_client(_CLIENT)


class Session:
    """The session of a client: current schema, temporary views, settings, transaction, branch and run id.

    Attributes:
        id: a secret, by which the client's connections name it.
        client: the client.
        limits: the limits of its statements.
    """

    def __init__(
        self, house: House, client: Client, limits: Limits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.id = secrets.token_hex(16)
        self.client, self.limits = client, limits
        self.last_used = clock()
        self._house, self._clock = house, clock
        self._lock = threading.RLock()
        self._users = 0
        self._warehouse: Warehouse | None = None
        self._answers: AnswersWithoutSpark | None = house.environment.answers()
        self._units = RunUnits(house.target)
        self._has_ended = False

    @property
    def warehouse(self) -> Warehouse:
        """The engine in this session, which is opened when it is first needed.

        Raises:
            SiltError: if Spark cannot be started, or the session has ended.
        """
        if self._warehouse is None:
            with self._lock:
                if self._has_ended:
                    raise ended()
                self._warehouse = self._warehouse or self._house.open()
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
        joins = isinstance(statement, ast.SetSetting) and statement.key == BRANCH_SETTING
        if joins or isinstance(statement, ast.Begin) or (statement.changes_something and not is_temporary):
            raise _read_only(f"`{' '.join(statement.text.split()[:2])}`")

    def run(self, text: str) -> Answer:
        """Runs a statement, and returns its result.

        Raises:
            SiltError: if it failed; `problem_of` describes it for a client.
        """
        with self.busy():
            return self._quick(text) or self._run(self.warehouse, text)

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

    def _run(self, house: Warehouse, text: str) -> Answer:
        result = self.execute(text)
        if result.dataframe is None and result.outcome is None:
            return NO_ROWS
        return replace(self._fetched(result.rows(house.spark)), outcome=result.outcome)

    def execute(self, text: str, statement: ast.Statement | None = None) -> Result:
        """Runs a statement as `run` does, and returns a query's rows, not yet computed, or the outcome of a change.

        The caller holds `busy()`.

        Args:
            statement: the parsed text, if the caller has parsed it.
        """
        house = self.warehouse
        statement = statement or house.parsed(text)
        self.check(statement)
        if self._means_default(statement):
            return Result()
        if statement.changes_session or changes_session(statement):
            self._note_change(statement)
        entries = MetastoreEntries(house, self._house.environment.registration())
        names = entries.names(statement)
        written = WritingStatement.of(text)
        unit = None
        if house.written(statement) is not None and (run_id := house.spark.conf.get(RUN_ID, None)):
            unit = self._units.unit(run_id.strip("'\""), written)
        client = {"user": self.client.user, "program": self.client.program}
        info = self._units.commit_info(unit, written, client)
        result = house.execute(statement, None if unit is None else unit.txn, commit_info=info)
        if unit is not None:
            self._units.note_done(unit)
        tuple(entries.settle(names))
        return result

    def write(self, rows: DataFrame, table: str, mode: str, **options: Unpack[WriteOptions]) -> Outcome:
        """Writes the rows of a DataFrame of this session; arguments and errors are as for `Warehouse.write`.

        The caller holds `busy()`.
        """
        if self.limits.is_read_only:
            raise _read_only("a write of rows")
        return self.warehouse.write(rows, table, mode=mode, **options)

    def _means_default(self, statement: ast.Statement) -> bool:
        """Returns whether it is the `use default` that tools send at connect, and the warehouse has no such schema."""
        is_default = isinstance(statement, ast.Use) and tuple(map(str.lower, statement.name)) == (_DEFAULT,)
        return is_default and not self.catalog.has_schema(self.current[0], _DEFAULT)

    def _note_change(self, statement: ast.Statement) -> None:
        is_harmless = isinstance(statement, ast.Use) or (
            isinstance(statement, ast.SetSetting)
            and (statement.value is None or statement.key == RUN_ID or _is_harmless(statement.key or ""))
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
            raise errors.ResultTooLargeError(
                f"the query has more than {most:,} rows, the most that this endpoint returns"
            )
        return answer

    def interrupt(self) -> None:
        """Stops the Spark jobs of this session."""
        if self._warehouse is not None:
            with contextlib.suppress(*SPARKS):  # a Spark that has ended runs no jobs
                self._warehouse.spark.interruptAll()

    def close(self) -> None:
        """Ends the session: rolls back its open transaction, and releases its session of Spark."""
        with self._lock:
            house, self._warehouse, self._has_ended = self._warehouse, None, True
        if house is not None:
            house.roll_back()
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
        "there is no such session: it was closed, or was idle for too long", remedy="Connect again"
    )
