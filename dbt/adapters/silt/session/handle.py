"""What a dbt connection holds: a Spark session of its own over one warehouse that all connections share."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import agate
import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.column import rows_of, to_agate
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize
from dbt.adapters.silt.engine.warehouse import Result, Warehouse, WarehouseSettings
from dbt.adapters.silt.records import locations as profile_places
from dbt.adapters.silt.records.units import is_forgotten_on_replace
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session.fetch import fetchable
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings


class Runner(Protocol):
    """What a cursor asks of its connection's manager."""

    def run(self, warehouse: Warehouse, statement: str) -> tuple[Result, SiltResponse]:
        """Run one statement, and say what came of it."""
        ...

    def without_comment(self, sql: str) -> str:
        """The text without dbt's query comment."""
        ...

    def job_tags(self) -> tuple[str, ...]:
        """What the Spark jobs of this thread's statements are tagged with."""
        ...


class Environment:
    """One warehouse in this process. Questions about names need no Spark; it starts with the first connection.

    Args:
        credentials: the profile.
        locations: the folders of the databases by name, absolute; the profile's own is among them.
    """

    def __init__(self, credentials: SiltCredentials, locations: Mapping[str, str]) -> None:
        self._credentials = credentials
        self._locations = locations
        self._lock = threading.Lock()
        self._pool: SessionPool | None = None
        self._warehouse: Warehouse | None = None
        self.folders = [place.removeprefix("file://") for place in locations.values()]
        self._catalog = Catalog({name: LocalStore(place.removeprefix("file://")) for name, place in locations.items()})

    @property
    def locations(self) -> Mapping[str, str]:
        """The folders of the databases by name, absolute."""
        return self._locations

    @property
    def catalog(self) -> Catalog:
        """The relations of the warehouse; once Spark runs, with the caches that its statements use."""
        return self._catalog if self._warehouse is None else self._warehouse.catalog

    def open(self, runner: Runner) -> SiltHandle:
        """A handle on a session of its own; starts Spark if it does not run yet.

        Raises:
            SiltError: Spark cannot be had, or the warehouse cannot be used.
        """
        pool = self._started()
        session = pool.acquire()
        assert self._warehouse is not None
        return SiltHandle(pool, session, self._warehouse.for_session(session, one_cut=True), runner)

    def warm_up(self) -> None:
        """Start Spark in the background: it takes as long as dbt takes to read a project, and needs nothing of it."""
        threading.Thread(target=self._try_to_start, name="silt-spark-start", daemon=True).start()

    def _try_to_start(self) -> None:
        with contextlib.suppress(SiltError):  # the first connection meets the same error, and reports it
            self._started()

    def _started(self) -> SessionPool:
        with self._lock:
            if self._pool is None:
                pool = SessionPool(self._session_settings())
                session = pool.acquire()
                self._warehouse = self._open_warehouse(session)
                pool.release(session)
                self._pool = pool
            return self._pool

    def _session_settings(self) -> SessionSettings:
        given = self._credentials
        conf = {name: str(value) for name, value in given.spark_conf.items()}
        if given.remote:
            return SessionSettings(remote=given.remote, spark_conf=conf)
        return SessionSettings(master=given.master, spark_conf=conf)

    def _open_warehouse(self, session: SparkSession) -> Warehouse:
        given = self._credentials
        return Warehouse(
            session,
            self._locations[given.database],
            database=given.database,
            schema=given.schema,
            databases={name: place for name, place in self._locations.items() if name != given.database},
            settings=WarehouseSettings(
                isolation_level=IsolationLevel(given.isolation_level) if given.isolation_level else None,
                max_commit_attempts=given.max_commit_attempts,
                statement_attempts=given.statement_attempts,
                is_forgotten_on_replace=is_forgotten_on_replace,
                python_functions=given.python_functions,
                log_skips=False,  # dbt's own log and results say it
            ),
        )


_environments: dict[str, Environment] = {}
_environments_lock = threading.Lock()


def environment_of(credentials: SiltCredentials, project_root: Path) -> Environment:
    """The environment of a profile: the same one for every adapter of this process with the same settings."""
    locations = profile_places.locations(
        credentials.database, credentials.warehouse, credentials.databases, project_root
    )
    settings = {name: value for name, value in credentials.to_dict().items() if name not in ("run_id", "resume")}
    key = json.dumps([locations, settings], sort_keys=True, default=str)
    with _environments_lock:
        if key not in _environments:
            _environments[key] = Environment(credentials, locations)
        return _environments[key]


class SiltHandle:
    """An open connection."""

    def __init__(self, pool: SessionPool, session: SparkSession, warehouse: Warehouse, runner: Runner) -> None:
        self.session = session
        self.warehouse = warehouse
        self.runner = runner
        self._pool = pool
        self._cancelled = threading.Event()
        self._idle = threading.Event()
        self._idle.set()

    def cursor(self) -> SiltCursor:
        return SiltCursor(self)

    def cancel(self) -> None:
        """Stop what this connection runs, and run nothing more; a statement that is stopped commits nothing."""
        self._cancelled.set()
        threading.Thread(target=self._interrupt, name="silt-cancel", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def close(self) -> None:
        """Give the session back; its temporary views and settings end."""
        self._pool.release(self.session)

    def rollback(self) -> None:
        """Nothing: a statement that failed has committed nothing."""

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """What runs in here is what `cancel` stops; its Spark jobs say what they are for.

        Raises:
            DbtRuntimeError: the connection was cancelled.
        """
        self._idle.clear()
        try:
            self._check_not_cancelled()
            with self._tagged(self.runner.job_tags()):
                yield
        except (PySparkException, Py4JJavaError):
            self._check_not_cancelled()
            raise
        finally:
            self._idle.set()

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
        # Again and again: a statement is several Spark jobs, and the next may start after the last was stopped.
        while not self._idle.wait(_INTERRUPT_SECONDS):
            self.session.interruptAll()


_INTERRUPT_SECONDS = 0.1


class SiltCursor:
    """The statements of one text, run in turn; results are those of the last."""

    def __init__(self, handle: SiltHandle) -> None:
        self._handle = handle
        self._frame: DataFrame | None = None
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self.response = SiltResponse("OK", code="OK")

    def execute(self, sql: str, bindings: Any = None) -> None:
        """Run each statement of a text.

        Raises:
            DbtRuntimeError: bindings were given.
            SiltError: see the warehouse.
        """
        if bindings:
            raise DbtRuntimeError("silt takes no bindings: write the values into the statement")
        for statement in split_statements(self._handle.runner.without_comment(sql)):
            self.drain()
            with self._handle.busy():
                result, self.response = self._handle.runner.run(self._handle.warehouse, statement)
            self._frame = result.dataframe

    def drain(self) -> None:
        """Run a query whose rows nobody fetched, so that its errors are seen (Spark would never run it)."""
        frame, self._frame = self._frame, None
        if frame is not None:
            with self._handle.busy():
                frame.write.format("noop").mode("overwrite").save()

    def arrow(self, limit: int | None = None) -> pa.Table:
        """The rows of the last statement; a statement without rows has no columns either."""
        frame, self._frame = self._frame, None
        if frame is None:
            return pa.table({})
        with self._handle.busy():
            return fetchable(frame if limit is None else frame.limit(limit)).toArrow()

    def agate(self, limit: int | None = None) -> agate.Table:
        return to_agate(self.arrow(limit))

    # The rest of DB-API's cursor that dbt and its tests use.

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


def split_statements(text: str) -> list[str]:
    """The statements of a text, without the comments and semicolons between them.

    Raises:
        StatementSyntaxError: a string, a quoted name or a comment is not closed.
    """
    tokens = tokenize(text)
    if tokens[0].word == "BEGIN":
        return [text]
    statements, first = [], None
    for index, token in enumerate(tokens):
        if token.word == ";" or token.kind is Kind.END:
            if first is not None:
                statements.append(text[first : tokens[index - 1].end])
            first = None
        elif first is None:
            first = token.start
    return statements
