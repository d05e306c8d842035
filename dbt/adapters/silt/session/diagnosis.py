"""Checks a connection for `dbt debug` and describes it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.locations import is_local, local_path
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.session import class_archive

_JAVA = "select java_method('java.lang.System', 'getProperty', 'java.version')"


def diagnose(
    session: SparkSession, catalog: Catalog, database: str, locations: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yields the versions in use and the state of each database, as names and texts.

    Args:
        database: the profile's own, which must be writable; others may be for reading only.
        locations: the folders of the databases by name, absolute.

    Raises:
        StorageError: nothing can be written to the profile's own database.
    """
    [java] = session.sql(_JAVA).collect()[0]
    yield "spark", f"{session.version} on Java {java}"
    if isinstance(session, SparkSession):  # one of Spark Connect is not: its Java is the server's
        yield "class-data archive", class_archive.state()
    yield "time zone", str(session.conf.get("spark.sql.session.timeZone"))
    for name, location in locations.items():
        try:
            if is_local(location):
                check_writable(local_path(location))
            state = "writable"
        except StorageError as error:
            if name == database:
                raise
            state = f"for reading only: {error.details['reason']}"
        yield f"database {name}", f"{location} ({state}; schemas: {', '.join(catalog.schemas(name)) or 'none'})"


def check_writable(folder: str) -> None:
    """Passes where a file can be made in the folder.

    Raises:
        StorageError: none can.
    """
    try:
        with tempfile.TemporaryFile(dir=Path(folder)):
            pass
    except OSError as error:
        raise StorageError(
            f"nothing can be written to the warehouse {folder} ({error.strerror})",
            remedy="Make that folder writable, or set `warehouse` to another one",
            details={"warehouse": folder, "reason": error.strerror},
        ) from error
