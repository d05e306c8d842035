"""Writes the file of DuckDB with a view for each table, and replaces an earlier file at one moment."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dbt.adapters.silt.duckdb_file import times
from dbt.adapters.silt.duckdb_file.types import literal, quoted
from dbt.adapters.silt.duckdb_file.views import DELETED, OWN_SCHEMA, TableView
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, InvalidStatementError, SiltError, StorageError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = lazy_module("duckdb")

FORMAT: Final = "v1.2.0"
"""The version of DuckDB whose storage format the file has; later versions read it."""


@dataclass(frozen=True)
class LeftOut:
    """A relation that has no view in the file, and the reason."""

    name: RelationName
    reason: str


@dataclass(frozen=True)
class Shown:
    """A table that has a view in the file, at this version."""

    name: RelationName
    version: int


def write_tables(file: Path, catalog: Catalog, database: str) -> tuple[list[Shown], list[LeftOut]]:
    """Writes the file with the tables of a database, all as of the same moment; raises as `write`.

    Returns:
        The tables that have a view, and the relations that have no view.

    Raises:
        InvalidSettingError: if DuckDB is not installed.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise InvalidSettingError("DuckDB is not installed", remedy="Run `pip install duckdb`")
    logs, left_out = _logs(catalog, database, only_readable=False)
    try:
        cut = consistent_cut(logs.values())
    except SiltError:  # of a single table, which is left out
        logs, left_out = _logs(catalog, database, only_readable=True)
        cut = consistent_cut(logs.values())
    shown, unreadable = write(file, [(name, TableView(log, cut[log])) for name, log in logs.items()])
    return shown, [*left_out, *unreadable]


def _logs(catalog: Catalog, database: str, only_readable: bool) -> tuple[dict[RelationName, DeltaLog], list[LeftOut]]:
    """Returns the logs of the tables of a database, and the relations without a log."""
    logs: dict[RelationName, DeltaLog] = {}
    left_out: list[LeftOut] = []
    for entry in catalog.all_relations(database):
        if entry.kind is not RelationKind.TABLE:
            left_out.append(LeftOut(entry.name, "it is a view"))
            continue
        try:
            log = catalog.table(entry.name)
            if only_readable:
                log.snapshot()
            logs[entry.name] = log
        except SiltError as error:
            left_out.append(LeftOut(entry.name, str(error)))
    return logs, left_out


def write(file: Path, views: Sequence[tuple[RelationName, TableView]]) -> tuple[list[Shown], list[LeftOut]]:
    """Writes the file next to an earlier file, and then replaces that file, so that a reader sees either file.

    Returns:
        The tables that have a view, and the tables that DuckDB cannot read.

    Raises:
        InvalidStatementError: if another program wrote the file that exists.
        StorageError: if the file cannot be written.
    """
    _check_own(file)
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as folder:
            new = Path(folder) / file.name
            found = _filled(new, views)
            os.replace(new, file)
    except OSError as error:
        raise StorageError(f"{file} cannot be written ({error.strerror})", remedy=_ANOTHER_FILE) from error
    return found


def _filled(file: Path, views: Sequence[tuple[RelationName, TableView]]) -> tuple[list[Shown], list[LeftOut]]:
    shown: list[Shown] = []
    left_out: list[LeftOut] = []
    with _created(file) as connection:
        for name, view in views:
            try:
                _add(connection, name, view)
                shown.append(Shown(name, view.snapshot.version))
            except (SiltError, duckdb.Error) as error:
                left_out.append(LeftOut(name, str(error).strip().splitlines()[0]))
        rows = [[each.name.schema, each.name.identifier, each.version] for each in shown]
        if rows:
            connection.executemany(f"INSERT INTO {OWN_SCHEMA}.tables VALUES (?, ?, ?)", rows)
    return shown, left_out


@contextlib.contextmanager
def _created(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Creates a file that older versions of DuckDB read too, with the package's own tables."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {literal(str(file))} AS made (STORAGE_VERSION '{FORMAT}')")
        connection.execute("USE made")
        connection.execute(f"CREATE SCHEMA {OWN_SCHEMA}")
        connection.execute(f"CREATE TABLE {OWN_SCHEMA}.tables (schema VARCHAR, name VARCHAR, version BIGINT)")
        connection.execute(f"CREATE TABLE {DELETED} (file VARCHAR, position BIGINT)")
        yield connection
        connection.execute("USE memory")
        connection.execute("DETACH made")


def _add(connection: duckdb.DuckDBPyConnection, name: RelationName, view: TableView) -> None:
    """Creates the view of a table, and opens its files once, so that an unreadable table has no view."""
    view.check()
    connection.execute("BEGIN")
    try:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.schema)}")
        for rows in view.deleted_rows():
            connection.register("rows_of_a_file", rows)
            connection.execute(f"INSERT INTO {DELETED} SELECT file, position FROM rows_of_a_file")
        full = f"{quoted(name.schema)}.{quoted(name.identifier)}"
        connection.execute(view.sql(full, times.without_zone(connection, view)))
        connection.execute(f"SELECT * FROM {full} LIMIT 0")
        times.check_calendar(connection, view, full)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _check_own(file: Path) -> None:
    """Checks that the file may be replaced.

    Raises:
        InvalidStatementError: if it exists and is not a file of this command.
    """
    if not os.path.lexists(file):
        return
    if Path(f"{file}.wal").exists():
        raise InvalidStatementError(f"{file} has changes of another program in {file}.wal", remedy=_ANOTHER_FILE)
    try:
        with duckdb.connect(str(file), read_only=True) as connection:
            connection.execute(f"SELECT 1 FROM {OWN_SCHEMA}.tables LIMIT 0")
    except duckdb.Error as error:
        problem = f"{file} exists, and it is not a file of `silt catalog` ({str(error).splitlines()[0]})"
        raise InvalidStatementError(problem, remedy=_ANOTHER_FILE) from error


_ANOTHER_FILE: Final = "Name another file, or remove this file first"
