"""Names the table of a data file that Spark could not read: Spark's error contains only the file's path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import (
    DataFileMissingError,
    FilesNotFoundError,
    SiltError,
    TableDamagedError,
)
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.statements import missing_names
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace


@contextlib.contextmanager
def mapped(namespace: Namespace) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine; an error about a data file names the table.

    Args:
        namespace: namespace of the session in which the statement failed.

    Raises:
        SiltError: as raised by `missing_names.mapped`.
    """
    try:
        with missing_names.mapped(namespace):
            yield
    except (TableDamagedError, FilesNotFoundError) as error:
        known = named(namespace.catalog.for_statement(), error)
        if known is error:
            raise
        raise known from error


def named(catalog: Catalog, error: Exception) -> Exception:
    """Returns the error about a data file with its table, version and remedy, or any other error unchanged.

    The version is the newest version, if it contains the file.
    """
    if not isinstance(error, TableDamagedError | FilesNotFoundError):
        return error
    if error.table is not None or "path" not in error.details:
        return error
    path = decode_path(str(error.details["path"]))
    name = catalog.table_of_file(path)
    if name is None:
        return error
    if isinstance(error, FilesNotFoundError):
        error = DataFileMissingError(f"the data file {error.details['path']} is missing", details=error.details)
    problem, details = error.problem, error.details
    try:
        log = catalog.table(name)
        snapshot = log.snapshot()
    except SiltError:
        return type(error)(problem, remedy=error.action, table=str(name), details=details)
    has_it = any(path.endswith(f"/{decode_path(each)}") for each in snapshot.files["path"].to_pylist())
    version = snapshot.version if has_it else None
    whose = type(error)(problem, remedy=error.action, table=log.name, version=version, details=details)
    return commit_search.with_origin(log, snapshot, whose)
