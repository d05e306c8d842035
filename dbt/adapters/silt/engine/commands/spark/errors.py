"""Maps Spark's failures to errors of this engine, by error condition; no other module does so."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pickle import PicklingError
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dbt.adapters.silt.engine.commands.spark.failures import java_process
from dbt.adapters.silt.engine.commands.spark.failures.causes import Cause, causes
from dbt.adapters.silt.engine.commands.spark.failures.conditions import kind_of, remedy_of
from dbt.adapters.silt.engine.commands.spark.failures.texts import without_java_stack, without_own_names
from dbt.adapters.silt.engine.commands.spark.file_formats import format_of
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.storage.storage_errors import named_in

SPARKS: Final = (PySparkException, Py4JError, ConnectionError, EOFError)
"""The Python exceptions of a failure in Spark; ConnectionError and EOFError if its Java process has ended."""

_OF_CALLS = (
    *(TypeError, ValueError, AttributeError, IndexError, KeyError, AssertionError),
    *(NotImplementedError, ImportError, RuntimeError, PicklingError),
)
_NO_FUNCTION: Final = frozenset(("UNRESOLVED_ROUTINE", "ROUTINE_NOT_FOUND", "UNRESOLVABLE_TABLE_VALUED_FUNCTION"))
_NO_PATH: Final = "PATH_NOT_FOUND"
_MISSING = frozenset((_NO_PATH, "FAILED_READ_FILE.FILE_NOT_EXIST"))
_UNREADABLE = "FAILED_READ_FILE"
_RAISED = "USER_RAISED_EXCEPTION"
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_NOT_ALLOWED = re.compile(r"Permission denied|AccessDeniedException|AccessControlException")
_READ_ONLY = re.compile(r"Read-only file system")
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
"""Java reports these three only through the operating system's message."""
_STOPPED = re.compile(r"Cannot call methods on a stopped SparkContext|SparkContext (?:was|has been) shut ?down")
"""Spark reports its shutdown only by this message; a Spark Connect server still answers during the shutdown."""
_INDETERMINATE: Final = "StringType(null)"
"""The name of the type of strings that combine several collations; PySpark cannot read the schema of such a query."""

OTHER_ROWS: Final = "a data file with deleted rows has another size, or more rows, than the log says"
"""The message that a plan of this engine raises in a task (`raise_error`)."""

SHARED_KEY: Final = "several rows share the key of the upserts: "
"""The beginning of the message that the upserts of changes raise in a task; the values of the key follow."""

_WHEN_THERE = "When Spark is running again, run `dbt retry`: it skips committed work"


@contextlib.contextmanager
def mapped(table: str | None = None, version: int | None = None) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine; errors of a wrong call to PySpark's methods are not mapped.

    Args:
        table: the table that is read; None if several may be read.

    Raises:
        InvalidStatementError, DataRejectedError, or a subclass: if Spark rejects the statement or the data.
        DataFileMissingError: if a data file is missing.
        DataFileChangedError: if the rows of a data file differ from the log.
        TableDamagedError: if a data file cannot be read.
        FunctionNotFoundError, FilesNotFoundError: if a function or a path that the statement names is missing.
        ExecutorLostError: if rows that Spark kept are lost.
        StorageError: if a file cannot be read or written; NoSpaceError: if the disk is full; StorageRefusedError: if an
            object store refuses.
        SparkUnavailableError: if Spark has no connector for an object store.
        SparkEndedError: if Spark's Java process ended.
        SparkFailedError: if Spark failed for any other reason.
        TypeError, ValueError and other errors of Python: if PySpark is called with a wrong argument.
    """
    try:
        yield
    except SPARKS as error:
        translated = of_spark(error, table, version)
        if translated is error:
            raise
        # The message contains everything that the user has to correct; Spark's own error adds a plan and Java's stack.
        is_the_users = isinstance(translated, errors.InvalidStatementError | errors.DataRejectedError)
        raise translated from (None if is_the_users else error)


def of_spark(error: Exception, table: str | None = None, version: int | None = None) -> Exception:
    """Returns the engine's error for a failure of Spark; other errors, and errors of wrong calls, are unchanged."""
    if isinstance(error, PySparkException) and _INDETERMINATE in str(error):
        return errors.InvalidStatementError(
            "a column of the query combines strings of different collations",
            remedy="Write `collate` in the expression of the column",
            table=table,
            version=version,
        )
    if isinstance(error, errors.SiltError) or not isinstance(error, SPARKS) or _is_of_call(error):
        return error
    if isinstance(error, java_process.SparkGone):
        return java_process.of_end(error.end, table, version)
    ended = java_process.ended(not isinstance(error, (PySparkException, Py4JJavaError)), table, version)
    if ended is not None:
        return ended
    found = causes(error)
    stored = of_object_store(found, table, version) if found else None
    if stored is not None:
        return stored
    for cause in found:
        named = _of_condition(cause, found[-1], table, version)
        if named is not None:
            return named
    if not found:
        return (
            errors.SparkFailedError(f"Spark did not answer ({without_java_stack(str(error))})")
            if isinstance(error, Py4JError)
            else error
        )
    if any(_STOPPED.search(cause.text) for cause in found):
        said = f"Spark was stopped while a statement used it ({found[-1].text})"
        return errors.SparkEndedError(said, remedy=_WHEN_THERE, table=table, version=version)
    return (
        _of_kind(found, table, version)
        or _of_storage(found[-1], table, version)
        or errors.SparkFailedError(
            f"Spark could not run the statement ({without_own_names(found[-1].text)})", table=table, version=version
        )
    )


def _is_of_call(error: Exception) -> bool:
    """Returns whether PySpark rejected an argument in this process, with an error that is also a Python error."""
    return isinstance(error, PySparkException) and isinstance(error, _OF_CALLS)


def condition(error: Exception) -> str:
    """Returns Spark's error condition, or "" if the error has no condition."""
    found = causes(error)
    return found[0].condition if found else ""


def _of_condition(cause: Cause, root: Cause, table: str | None, version: int | None) -> errors.SiltError | None:
    """Returns the error for a condition, if the engine maps this condition."""
    name, path = cause.condition, cause.parameters.get("path", "")
    family = name.partition(".")[0]
    if name in _NO_FUNCTION:
        return _no_function(cause, table, version)
    if name == _LOST:
        return errors.ExecutorLostError(
            "Spark lost an executor with rows of this statement", table=table, version=version
        )
    if name == _RAISED and cause.parameters.get("errorMessage") == OTHER_ROWS:
        return errors.DataFileChangedError(OTHER_ROWS, table=table, version=version)
    if name == _RAISED and cause.parameters.get("errorMessage", "").startswith(SHARED_KEY):
        return errors.DataRejectedError(
            cause.parameters["errorMessage"],
            remedy="Nothing was written: name columns as the key that are unique in each version of the table, or read "
            "the changes without `as => 'upserts'`",
            table=table,
            version=version,
        )
    if name not in _MISSING and family != _UNREADABLE:
        return None
    details = {"path": path}
    if name == _NO_PATH and table is None:
        return errors.FilesNotFoundError(
            f"there are no files to read at `{path}`, which the statement names", details=details
        )
    if _NOT_ALLOWED.search(root.text):
        return errors.StorageError(
            f"the data file {path} cannot be read ({root.text})",
            remedy="Grant read access to the user that Spark runs as",
            table=table,
            version=version,
            details=details,
        )
    if name in _MISSING:
        return errors.DataFileMissingError(
            f"the data file {path} is missing", table=table, version=version, details=details
        )
    if (format_of(path) or "parquet") != "parquet":
        return errors.DataRejectedError(
            f"the file {path} cannot be read with the declared columns ({root.text})",
            remedy="Nothing was written: correct the file, or the types and options that it is read with",
            details=details,
        )
    parts = str(cause.parameters.get("column", "")).strip("[]")
    mismatch = {"column": parts.split(", "), "expected": cause.parameters.get("expectedType", "")} if parts else {}
    return errors.TableDamagedError(
        f"the data file {path} cannot be read ({root.text})", table=table, version=version, details=details | mismatch
    )


def _no_function(cause: Cause, table: str | None, version: int | None) -> errors.FunctionNotFoundError:
    """Returns the error for a call; its details contain the function if its name has a single part."""
    said = str(cause.parameters.get("routineName") or cause.parameters.get("name") or "")
    name = said.removeprefix("`spark_catalog`.").removeprefix("`default`.").strip("`")
    if not name:
        return errors.FunctionNotFoundError(cause.message, table=table, version=version)
    details = {} if "." in name else {"function": name}
    return errors.FunctionNotFoundError(
        f"the function `{name}` does not exist", table=table, version=version, details=details
    )


def _of_storage(root: Cause, table: str | None, version: int | None) -> errors.SiltError | None:
    """Returns the error if the machine's storage or memory is the root cause, else None."""
    said = f"Spark failed ({root.text})"
    if _NO_SPACE.search(root.text):
        remedy = (
            "Free space in the warehouse's file system (`vacuum` and `drop table` do), or in that of Spark's temporary "
            "files (`spark.local.dir`), then run it again"
        )
        return errors.NoSpaceError(said, remedy=remedy, table=table, version=version)
    if _READ_ONLY.search(root.text):
        return errors.ReadOnlyStorageError(said, table=table, version=version)
    if root.text.startswith(("java.io.", "java.nio.file.")) and "EOFException" not in root.text:
        remedy = "Check that Spark can read and write the warehouse and its temporary folder, then run it again"
        return errors.StorageError(said, remedy=remedy, table=table, version=version)
    if root.text.startswith("java.lang.OutOfMemoryError"):
        return errors.SparkFailedError(said, remedy=errors.SparkEndedError.remedy, table=table, version=version)
    return None


def _of_kind(found: Sequence[Cause], table: str | None, version: int | None) -> errors.SiltError | None:
    """Returns the error for a fault of the statement or the data; the last condition, or else exception, decides."""
    for cause in (*(each for each in reversed(found) if each.condition), *reversed(found)):
        kind = kind_of(cause.condition, cause.state, cause.exception)
        if kind is not None:
            remedy = remedy_of(cause) or kind.remedy
            return kind.error(cause.message, remedy=remedy, table=table, version=version)
    return None


_NO_CONNECTOR: Final = (
    "org.apache.hadoop.fs.UnsupportedFileSystemException",
    "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.",
)
_OF_STORES: Final = (
    "software.amazon.awssdk.",
    "software.amazon.s3.",
    "org.apache.hadoop.fs.s3a.",
    "org.apache.hadoop.fs.azurebfs.",
)
_OF_GOOGLE: Final = ("org.apache.hadoop.fs.gs.", "com.google.cloud.")
_UNANSWERED: Final = (
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "org.apache.http.conn.",
    "org.apache.hadoop.net.ConnectTimeoutException",
    "software.amazon.awssdk.core.exception.ApiCall",
    "software.amazon.s3.shaded.dev.failsafe.TimeoutExceededException",  # raised by Hadoop's input stream
)
_REFUSED: Final = re.compile(r"Status Code: 40[013]\b")


def of_object_store(found: Sequence[Cause], table: str | None, version: int | None) -> errors.SiltError | None:
    """Returns the error for the causes of a failure, or None if no object store is involved.

    Args:
        found: the causes, the root cause last.
    """
    root = found[-1].text
    if root.startswith(_NO_CONNECTOR):
        return errors.SparkUnavailableError(
            f"Spark has no connector for the storage ({root})",
            remedy="Set its `storage`, or a database in it, in the profile, so that dbt loads the connector; or start "
            "that Spark with the connector of its own Hadoop (hadoop-aws, hadoop-azure or hadoop-gcp)",
            table=table,
            version=version,
        )
    if not any(mark in cause.text for cause in found for mark in (*_OF_STORES, *_OF_GOOGLE)):
        return None
    said = (f"{cause.code} {cause.text}" for cause in reversed(found))
    refused = next((known for each in said if (known := named_in(each)) is not None), None)
    if refused is not None:
        meaning, remedy = refused
        problem = f"Spark failed: {meaning} ({root})"
        return errors.StorageRefusedError(problem, remedy=remedy, table=table, version=version)
    if _REFUSED.search(root):
        # A response to HEAD has no error code.
        problem = f"Spark failed: the storage service refused the request ({root})"
        remedy = (
            "The credentials are wrong, have expired, lack a permission, or belong to another region: try `dbt debug`"
        )
        return errors.StorageRefusedError(problem, remedy=remedy, table=table, version=version)
    if root.startswith(_UNANSWERED):
        return errors.StorageError(
            f"Spark failed: the storage service does not answer ({root})",
            remedy="Check `endpoint` in `storage`, and the network, then run it again",
            table=table,
            version=version,
        )
    return None
