"""Creates the views and functions that Spark's SQL refers to: views over pinned snapshots, and session functions."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import uuid
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.catalog.names.documents import Function
from dbt.adapters.silt.engine.commands.reading import change_feed, scan
from dbt.adapters.silt.engine.commands.spark import file_source, frames, python_function
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.commands.spark.failures.causes import first_line
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.query.references import ScannedText, rewrite, scanned
from dbt.adapters.silt.engine.statements.resolve.changes_functions import ChangeRange, Difference
from dbt.adapters.silt.engine.statements.resolve.function_text import (
    python_code,
    signature,
)

_Key: TypeAlias = tuple[str, str, int]
_FunctionKey: TypeAlias = tuple[str, str, str]

_KEPT_VIEWS = 256
_KEPT_FUNCTIONS = 256

_abandoned: deque[tuple[SparkSession, Iterable[str], Mapping[_FunctionKey, str]]] = deque()
"""Views of collected instances; dropped by the next instance, because a finalizer may run inside a call of Spark."""


@dataclass
class SnapshotViews:
    """The session views over pinned snapshots, files and rows; the oldest views are dropped when there are many.

    A view outlives the statement that it was created for, because the statement's DataFrame may be analysed again when
    it is collected (over Spark Connect it is). In an embedded session it is not, so there the views of collected
    instances are dropped too: a stream may open a warehouse for each of its batches.

    Names end with a token of the instance: several warehouses, each with its own tables, may share a session.
    """

    spark: SparkSession
    _labels: OrderedDict[str, None] = field(default_factory=OrderedDict, repr=False)
    _whole: dict[_Key, str] = field(default_factory=dict, repr=False)
    _functions: OrderedDict[_FunctionKey, str] = field(default_factory=OrderedDict, repr=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _token: str = field(default_factory=lambda: uuid.uuid4().hex[:8], repr=False)

    def __post_init__(self) -> None:
        _drop_abandoned()
        if isinstance(self.spark, SparkSession):
            weakref.finalize(self, _abandoned.append, (self.spark, self._labels, self._functions))

    def of_clone(self, spark: SparkSession) -> SnapshotViews:
        """Returns the views in a clone of the session, which has copies of them."""
        with self._lock:
            labels, whole, functions = self._labels.copy(), dict(self._whole), self._functions.copy()
            return SnapshotViews(spark, labels, whole, functions, self._numbers, _token=self._token)

    def view(self, log: DeltaLog, snapshot: Snapshot, files: pa.Table, *, fills_missing: bool = False) -> str:
        """Returns the quoted name of a session view over exactly these files of the snapshot.

        Args:
            fills_missing: see `scan.read`.
        """
        with self._lock:
            if files.num_rows < snapshot.num_files or fills_missing:
                return quote(self._register(log, snapshot, files, fills_missing))
            key = (log.line, snapshot.metadata.id, snapshot.version)
            if key in self._whole:
                scan.check_files(log, snapshot, files)
            else:
                self._whole[key] = self._register(log, snapshot, files, fills_missing)
            self._labels.move_to_end(self._whole[key])
            return quote(self._whole[key])

    def uncommitted(self, log: DeltaLog, snapshot: Snapshot, files: pa.Table) -> str:
        """Returns the quoted name of a session view over files of a version that is not committed, so it is not kept
        as the table's version of that number.
        """
        with self._lock:
            return quote(self._register(log, snapshot, files, False))

    def changes(self, log: DeltaLog, changes: ChangeRange) -> str:
        """Returns the quoted name of a session view over the rows that versions of the table changed."""
        return self._named(
            f"{log.name}@changes", lambda: change_feed.read(self.spark, log, changes.end, changes.versions)
        )

    def difference(self, log: DeltaLog, found: Difference) -> str:
        """Returns the quoted name of a session view over the rows that a call of `silt_changes` returns."""

        def rows() -> DataFrame:
            if found.changed is None:
                changes = change_feed.read_all(self.spark, log, found.end)
            else:
                changes = change_feed.read_changed(self.spark, log, found.changed)
            if not found.keys:
                return changes
            if found.deleted_bytes is None:
                return change_feed.newest(changes, found.keys)
            rows = scan.read(self.spark, log, found.end)
            return change_feed.newest(changes, found.keys, change_feed.Remaining(rows, found.deleted_bytes))

        return self._named(f"{log.name}@changes", rows)

    def files(self, source: FileSource) -> str:
        """Returns the quoted name of a session view over files outside of tables, listed now."""
        return self._named(f"{source.path}@files", lambda: file_source.read(self.spark, source))

    def rows(self, rows: pa.Table) -> str:
        """Returns the quoted name of a session view over rows of the engine itself."""
        return self._named("rows", lambda: frames.frame_of_rows(self.spark, rows))

    def of_frame(self, name: str, rows: DataFrame) -> str:
        """Returns the quoted name of a session view over the rows of a command."""
        return self._named(name, lambda: rows)

    def schema(self, query: str) -> StructType:
        """Returns the columns of a query over session views, which is analysed and not run.

        Raises:
            InvalidStatementError: if it cannot be analysed.
        """
        try:
            return kernel_schema(self.spark.sql(query).schema)
        except AnalysisException as error:
            raise InvalidStatementError(first_line(error)) from error

    def function(self, function: Function, body: str) -> str:
        """Returns the identifier of a session function equivalent to the function.

        Args:
            body: SQL of the function's body, with all names resolved.
        """
        with self._lock:
            key = (str(function.name), signature(function), repr((body, function.python)))
            if key not in self._functions:
                label = self._new(f"{function.name}@")
                self.spark.sql(_temporary_function(function, self._sql_body(function, body, label), label))
                self._functions[key] = label
            self._functions.move_to_end(key)
            while len(self._functions) > _KEPT_FUNCTIONS:
                _, label = self._functions.popitem(last=False)
                _drop_function(self.spark, label)
            return self._functions[key]

    def holds(self, text: str) -> bool:
        """Returns whether the views and functions that a text names still exist, with those in the functions."""
        with self._lock:
            bodies = {label: body for (_, _, body), label in self._functions.items()}
            left, seen = [text], set[str]()
            while left:
                found = {each.replace("``", "`") for each in self._quoted(left.pop())} - seen
                if not all(each in self._labels or each in bodies for each in found):
                    return False
                seen |= found
                left += [bodies[each] for each in found if each in bodies]
            return True

    def _quoted(self, text: str) -> list[str]:
        """Returns the labels in a text; the name of a path contains backquotes, which are doubled."""
        return re.findall(rf"`((?:[^`]|``)+/{self._token}\.\d+)`", text)

    def functions_in(self, texts: Iterable[str]) -> Mapping[str, str]:
        """Returns the identifiers of session functions that texts call -> the names of the functions they replace."""
        with self._lock:
            known = {label: name for (name, _, _), label in self._functions.items()}
        return {label: name for label, name in known.items() if any(quote(label) in text for text in texts)}

    def _sql_body(self, function: Function, body: str, label: str) -> str:
        """Returns the SQL body, which calls Python code to get defaults, named arguments and casts of parameters."""
        if function.python is None:
            return body
        python_function.register(self.spark, python_code(function, function.python), _python_label(label))
        return _python_call(function, _python_label(label))

    def _register(self, log: DeltaLog, snapshot: Snapshot, files: pa.Table, fills_missing: bool) -> str:
        label = self._new(f"{log.name}@v{snapshot.version}")
        rows = scan.read(self.spark, log, snapshot, files, fills_missing=fills_missing)
        rows.createOrReplaceTempView(quote(label))
        self._keep(label)
        return label

    def _named(self, name: str, rows: Callable[[], DataFrame]) -> str:
        """Returns the quoted name of a new session view."""
        with self._lock:
            label = self._new(name)
            rows().createOrReplaceTempView(quote(label))
            self._keep(label)
            return quote(label)

    def _new(self, name: str) -> str:
        return f"{name}/{self._token}.{next(self._numbers)}"

    def _keep(self, label: str) -> None:
        self._labels[label] = None
        while len(self._labels) > _KEPT_VIEWS:
            label, _ = self._labels.popitem(last=False)
            self._whole = {key: kept for key, kept in self._whole.items() if kept != label}
            self.spark.catalog.dropTempView(label)


def _drop_abandoned() -> None:
    while _abandoned:
        spark, views, functions = _abandoned.popleft()
        # A stopped session has nothing left to drop.
        with contextlib.suppress(*SPARKS):
            for view in views:
                spark.catalog.dropTempView(view)
            for function in functions.values():
                _drop_function(spark, function)


def _drop_function(spark: SparkSession, label: str) -> None:
    for each in (label, _python_label(label)):
        spark.sql(f"drop temporary function if exists {quote(each)}")


def _python_label(label: str) -> str:
    return f"{label}/python"


def _temporary_function(function: Function, body: str, label: str) -> str:
    """Returns the statement that creates a function of the session.

    Args:
        body: SQL of the function's body, with all names resolved. If it qualifies parameters by the function's name,
            the label replaces that name.
        label: identifier of the session function.
    """
    name = function.name
    own = body
    text = scanned(body)
    if _qualifies_parameters(function, text):
        own = rewrite(text, {}, {(name.database, name.schema, name.identifier): label})
    return f"CREATE OR REPLACE TEMPORARY FUNCTION {quote(label)}{signature(function)} RETURN {own}"


def _qualifies_parameters(function: Function, body: ScannedText) -> bool:
    """Returns whether the body may qualify a parameter by the function's name; otherwise such a name is a column."""
    names = {parameter.name.lower() for parameter in function.parameters}
    pairs = (pair for chain in body.scan.chains for pair in pairwise(chain.parts))
    return any(first == function.name.identifier and second in names for first, second in pairs)


def _python_call(function: Function, identifier: str) -> str:
    """Returns the SQL body of a function that calls a session function with all the parameters in order."""
    return f"{quote(identifier)}({', '.join(quote(each.name) for each in function.parameters)})"
