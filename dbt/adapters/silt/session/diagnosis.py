"""Checks a connection for `dbt debug` and describes it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.locations import is_local, local_path
from dbt.adapters.silt.engine.kernel.errors import ConditionsIgnoredError, StorageError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.session import class_archive
from dbt.adapters.silt.session.storage import trial

_JAVA = "select java_method('java.lang.System', 'getProperty', 'java.version')"


def diagnose(
    session: SparkSession, catalog: Catalog, database: str, locations: Mapping[str, str], storages: Storages
) -> Iterator[tuple[str, str]]:
    """Yields the versions in use and the state of each database, as pairs of name and text.

    Args:
        database: the profile's own database, which must be writable; the other databases may be read-only.
        locations: the absolute locations of the databases by name.
        storages: the settings by which databases in object stores are reached.

    Raises:
        StorageError: if the profile's own database cannot be written to.
        ConditionsIgnoredError: if its storage cannot hold a warehouse.
    """
    [java] = session.sql(_JAVA).collect()[0]
    yield "spark", f"{session.version} on Java {java}"
    if isinstance(session, SparkSession):  # a session of Spark Connect is not: its Java is the server's
        yield "class-data archive", class_archive.state()
    yield "time zone", str(session.conf.get("spark.sql.session.timeZone"))
    for name, location in locations.items():
        state = "writable"
        try:
            if is_local(location):
                check_writable(local_path(location))
            else:
                yield from ((f"{name}: {what}", came) for what, came in trial.tried(session, location, storages))
        except (StorageError, ConditionsIgnoredError) as error:
            if name == database:
                raise
            state = f"read-only: {error.details.get('reason') or error.problem}"
        yield f"database {name}", f"{location} ({state}; schemas: {_schemas(catalog, name)})"


def _schemas(catalog: Catalog, database: str) -> str:
    """Returns the names of the database's schemas, or why they cannot be listed."""
    try:
        return ", ".join(catalog.schemas(database)) or "none"
    except StorageError as error:
        return f"unknown: {error.problem}"


def check_writable(folder: str) -> None:
    """Checks that a file can be created in the folder.

    Raises:
        StorageError: if it cannot.
    """
    try:
        with tempfile.TemporaryFile(dir=Path(folder)):
            pass
    except OSError as error:
        raise StorageError(
            f"nothing can be written to the warehouse {folder} ({error.strerror})",
            remedy="Make that folder writable, or set `warehouse` to another folder",
            details={"warehouse": folder, "reason": error.strerror},
        ) from error
