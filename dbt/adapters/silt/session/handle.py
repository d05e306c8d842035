"""The handle and the cursor of a dbt connection: a Spark session of its own over a shared warehouse."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import agate
import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.sql.split import split_statements
from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.records.units import Unit
from dbt.adapters.silt.runs.agate_tables import rows_of, to_agate
from dbt.adapters.silt.runs.cut_relations import current_text
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session.fetch import fetchable
from dbt.adapters.silt.session.spark import SessionPool
from dbt.adapters.silt.session.submission import Submission

if TYPE_CHECKING:
    from dbt.adapters.silt.status_lines.display import StatusLine


class Runner(Protocol):
    """The part of a `StatementRunner` that a cursor needs."""

    def run(
        self, warehouse: Warehouse, text: str, own_unit: Unit | None = None, *, replace_tables: bool = False
    ) -> tuple[Result, SiltResponse]:
        """Runs a statement and returns its result and response."""
        ...

    def label(self) -> str:
        """Returns the name of the node or operation that runs this thread's statements, for display."""
        ...

    def job_tags(self) -> tuple[str, ...]:
        """Returns the tags of the Spark jobs of this thread's statements."""
        ...


class SiltHandle:
    """An open connection.

    Args:
        line: the status line that shows running statements; None shows nothing.
    """

    def __init__(
        self,
        pool: SessionPool,
        session: SparkSession,
        warehouse: Warehouse,
        runner: Runner,
        line: StatusLine | None = None,
    ) -> None:
        self.session = session
        self.warehouse = warehouse
        self.runner = runner
        self._pool = pool
        self._line = line
        self._cancelled = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    def cursor(self) -> SiltCursor:
        return SiltCursor(self)

    def cancel(self) -> None:
        """Stops the running statement and refuses further ones; a stopped statement commits nothing."""
        self._cancelled.set()
        threading.Thread(target=self._interrupt, name="silt-cancel", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def close(self) -> None:
        """Returns the session to the pool, and discards its temporary views and settings."""
        self._pool.release(self.session)

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
            with self._tagged(self.runner.job_tags()), self._shown(text):
                yield
        except Exception:
            self._check_not_cancelled()
            raise
        finally:
            self._idle.set()

    def _shown(self, text: str) -> AbstractContextManager[None]:
        return contextlib.nullcontext() if self._line is None else self._line.running(self.runner.label(), text)

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
                self.session.interruptAll()


_INTERRUPT_SECONDS = 0.1


class SiltCursor:
    """Runs the statements of SQL text in turn; results are those of the last statement."""

    def __init__(self, handle: SiltHandle) -> None:
        self._handle = handle
        self._frame: DataFrame | None = None
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
        for statement in split_statements(current_text(given.text)):
            self.drain()
            self._text = statement
            with self._handle.busy(statement):
                result, self.response = self._handle.runner.run(
                    self._handle.warehouse, statement, given.unit, replace_tables=given.replace_tables
                )
            self._frame = result.dataframe

    def drain(self) -> None:
        """Runs a query whose rows were not fetched, so that its errors are seen (Spark would never run it)."""
        frame, self._frame = self._frame, None
        if frame is not None:
            with self._handle.busy(self._text):
                frame.write.format("noop").mode("overwrite").save()

    def arrow(self, limit: int | None = None) -> pa.Table:
        """Fetches the rows of the last statement; without rows, the table has no columns either."""
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
