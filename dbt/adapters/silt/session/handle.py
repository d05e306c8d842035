"""The handle and the cursor of a dbt connection: answers without Spark, or a session of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import agate
import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.answers.connection import AnswersWithoutSpark
from dbt.adapters.silt.engine.answers.data_tests import PreparedTest
from dbt.adapters.silt.engine.answers.quick import Prepared
from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement, statement_of_run
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.records.units import FIRST, Unit
from dbt.adapters.silt.runs.agate_tables import rows_of, to_agate
from dbt.adapters.silt.runs.fetch import fetchable
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.runs.submission import Submission
from dbt.adapters.silt.session.spark import SessionPool

if TYPE_CHECKING:
    from dbt.adapters.silt.runs.statement_runner import StatementRunner
    from dbt.adapters.silt.status_lines.display import StatusLine


@dataclass(frozen=True)
class OpenSession:
    """A session of Spark that belongs to a single connection.

    Attributes:
        line: the status line that shows running statements, if any.
        is_lost: returns whether its Spark has ended, and another can be started.
    """

    pool: SessionPool
    spark: SparkSession
    warehouse: Warehouse
    line: StatusLine | None = None
    is_lost: Callable[[], bool] = lambda: False


class SiltHandle:
    """An open connection. Its session opens, and Spark starts, with the first statement that needs it.

    Args:
        opening: opens the session; raises the errors of `Environment.open`.
        answers: answers queries without a session, until it is open, if the command only reads.
    """

    def __init__(
        self, opening: Callable[[], OpenSession], runner: StatementRunner, answers: AnswersWithoutSpark | None = None
    ) -> None:
        self.runner = runner
        self._opening = opening
        self._opened: OpenSession | None = None
        self._answers = answers
        self._answered: list[str] = []
        self._read: dict[DeltaLog, Snapshot] = {}
        self._is_used = False
        self._cancelled = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    @property
    def session(self) -> SparkSession:
        return self.opened().spark

    @property
    def warehouse(self) -> Warehouse:
        return self.opened().warehouse

    def opened(self) -> OpenSession:
        """Returns the session, which is opened if it is not open yet; raises as `Environment.open`."""
        if self._opened is None:
            self._opened = self._opening()
            for text in self._answered:
                # A later write depends on what these queries have read, so they need not be run again.
                with contextlib.suppress(SiltError):
                    self.runner.run(self._opened.warehouse, text)
        return self._opened

    def to_use(self) -> OpenSession:
        """Returns the session for a statement; opens another if its Spark has ended before the first statement."""
        opened = self.opened()
        if not self._is_used and opened.is_lost():
            self._opened = None
            opened = self.opened()
        self._is_used = True
        return opened

    def prepared(self, text: str) -> Prepared | PreparedTest | None:
        """Returns the query, if it can be answered without the session, and nothing may have changed the session."""
        return None if self._answers is None or self._opened is not None else self._answers.prepared(text)

    def answer(self, query: Prepared | PreparedTest, text: str, most: int | None = None) -> pa.Table | None:
        """Returns the rows of a prepared query as `SiltCursor.arrow`, unless Spark has to run it.

        Args:
            text: the query.
            most: the maximum number of rows to return; by default all.
        """
        assert self._answers is not None
        self._check_not_cancelled()
        rows = self._answers.rows(query, most)
        if rows is not None:
            self._answered.append(text)
            self._read |= query.tables
            self.runner.note_answer(text, self._read)
        return rows

    def cursor(self) -> SiltCursor:
        return SiltCursor(self)

    def run_later(self, statement: LaterStatement, run_id: str) -> SiltResponse:
        """Runs a statement that was left to the time after the publication of a run, alone in its session; a change of
        a table is recorded in it, so it is made once.
        """
        if statement.is_stored:
            stored = self.warehouse.for_stored(statement_of_run(run_id))
            self._opened = replace(self.opened(), warehouse=stored)
        warehouse, cursor = self.warehouse, self.cursor()
        is_change = warehouse.written(warehouse.parsed(statement.text)) is not None
        cursor.execute("", Submission(statement.text, Unit(statement.app_id, FIRST, run_id) if is_change else None))
        cursor.drain()
        return cursor.response

    def cancel(self) -> None:
        """Stops the running statement and refuses further statements; a stopped statement commits nothing."""
        self._cancelled.set()
        threading.Thread(target=self._interrupt, name="silt-cancel", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def close(self) -> None:
        """Returns the session to the pool, and discards its temporary views and settings."""
        if self._opened is not None:
            self._opened.pool.release(self._opened.spark)

    def rollback(self) -> None:
        """Does nothing: a failed statement has committed nothing."""

    @contextlib.contextmanager
    def busy(self, text: str = "") -> Iterator[None]:
        """Lets `cancel` stop the block, tags its Spark jobs, and shows its progress.

        Args:
            text: the statement that runs in the block, if any.

        Raises:
            DbtRuntimeError: if the connection was cancelled.
        """
        self._idle.clear()
        try:
            self._check_not_cancelled()
            self.to_use()
            with self._tagged(self.runner.job_tags()), self._shown(text):
                yield
        except Exception:
            self._check_not_cancelled()
            raise
        finally:
            self._idle.set()

    def _shown(self, text: str) -> AbstractContextManager[None]:
        line = self.opened().line
        return contextlib.nullcontext() if line is None else line.running(self.runner.label(), text)

    @contextlib.contextmanager
    def _tagged(self, tags: tuple[str, ...]) -> Iterator[None]:
        for tag in tags:
            self.session.addTag(tag)
        try:
            yield
        finally:
            for tag in tags:
                self.session.removeTag(tag)

    def _check_not_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise DbtRuntimeError("cancelled: the statement was stopped, and nothing of it was committed")

    def _interrupt(self) -> None:
        # Repeatedly: a statement runs several Spark jobs, and the next may start after the last was stopped.
        with contextlib.suppress(*SPARKS):  # a Spark that has ended runs no jobs
            while not self._idle.wait(_INTERRUPT_SECONDS):
                if self._opened is not None:
                    self._opened.spark.interruptAll()


_INTERRUPT_SECONDS = 0.1


class SiltCursor:
    """Runs the statements of SQL text in turn; the results are the results of the last statement."""

    def __init__(self, handle: SiltHandle) -> None:
        self._handle = handle
        self._frame: DataFrame | None = None
        self._prepared: Prepared | PreparedTest | None = None
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._text = ""
        self.response = SiltResponse("OK", code="OK")

    def execute(self, sql: str, bindings: Any = None) -> None:
        """Runs each statement of SQL text.

        Args:
            sql: the text, unless `bindings` contains it.
            bindings: a Submission, which is run instead of `sql`: dbt passes bindings on unchanged.

        Raises:
            DbtRuntimeError: if there are bindings in DB-API's sense.
            SiltError: if the warehouse refuses a statement or cannot run it.
        """
        if bindings and not isinstance(bindings, Submission):
            raise DbtRuntimeError("silt takes no bindings: write the values into the statement")
        given = bindings or Submission(sql)
        for statement, unit in given.units:
            self.drain()
            self._text = statement
            self._prepared = self._handle.prepared(statement) if unit is None else None
            if self._prepared is None:
                self._run(statement, unit, given.replace_tables)
            else:
                self.response = SiltResponse("OK", code="OK")

    def _run(self, statement: str, unit: Unit | None = None, replace_tables: bool = False) -> None:
        with self._handle.busy(statement):
            result, self.response = self._handle.runner.run(
                self._handle.warehouse, statement, unit, replace_tables=replace_tables
            )
        self._frame = result.dataframe

    def _answer(self, limit: int | None) -> pa.Table | None:
        """Returns the rows of a query that is answered without Spark; None if Spark's frame is the result."""
        query, self._prepared = self._prepared, None
        if query is None:
            return None
        rows = self._handle.answer(query, self._text, limit)
        if rows is None:
            self._run(self._text)
        return rows

    def drain(self) -> None:
        """Runs a query whose rows were not fetched: Spark would otherwise never run it, and never report its errors."""
        if self._answer(None) is not None:
            return
        frame, self._frame = self._frame, None
        if frame is not None:
            with self._handle.busy(self._text):
                frame.write.format("noop").mode("overwrite").save()

    def arrow(self, limit: int | None = None) -> pa.Table:
        """Fetches the rows of the last statement; without rows, the table has no columns either."""
        answer = self._answer(limit)
        if answer is not None:
            return answer
        frame, self._frame = self._frame, None
        if frame is None:
            return pa.table({})
        with self._handle.busy(self._text):
            return fetchable(frame if limit is None else frame.limit(limit)).toArrow()

    def agate(self, limit: int | None = None) -> agate.Table:
        return to_agate(self.arrow(limit))

    # The other methods of DB-API's cursor that dbt and its tests use.

    @property
    def description(self) -> list[tuple[str, str]] | None:
        if self._prepared is not None:
            self._prepared = None
            self._run(self._text)
        if self._frame is None:
            return None
        return [(field.name, field.dataType.simpleString()) for field in self._frame.schema.fields]

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._fetched(), None)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows = self._fetched()
        return [row for _, row in zip(range(size), rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._fetched())

    def _fetched(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            self._rows = iter(rows_of(self.arrow()))
        return self._rows
