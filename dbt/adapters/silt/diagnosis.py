"""What `dbt debug` says of a connection, and checks of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import StorageError

_JAVA = "select java_method('java.lang.System', 'getProperty', 'java.version')"


def diagnose(session: SparkSession, catalog: Catalog, locations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The versions in use and the state of each database, as names and texts.

    Args:
        locations: the folders of the databases by name, absolute.

    Raises:
        StorageError: nothing can be written to one of them.
    """
    [java] = session.sql(_JAVA).collect()[0]
    yield "spark", f"{session.version} on Java {java}"
    yield "time zone", str(session.conf.get("spark.sql.session.timeZone"))
    for database, folder in locations.items():
        schemas = catalog.schemas(database)
        count = f"{len(schemas)} {'schema' if len(schemas) == 1 else 'schemas'}"
        check_writable(folder.removeprefix("file://"))
        yield f"database {database}", f"{folder} (writable, {count})"


def check_writable(folder: str) -> None:
    """Passes where a file can be made in the folder, which is there.

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
            details={"warehouse": folder},
        ) from error
