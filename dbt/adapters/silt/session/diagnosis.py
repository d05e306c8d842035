"""Checks a connection and its storage for `dbt debug`, and describes them."""

from __future__ import annotations

import contextlib
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.locations import is_local, local_path
from dbt.adapters.silt.engine.catalog.open_databases import open_location
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.shared_storage import spark_path
from dbt.adapters.silt.engine.kernel.errors import ConditionsIgnoredError, SiltError, StorageError
from dbt.adapters.silt.engine.kernel.storage.conditions import try_conditions
from dbt.adapters.silt.engine.kernel.storage.credential_sources import access
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.kernel.storage.urls import parse_url
from dbt.adapters.silt.engine.kernel.table.paths import encode_path
from dbt.adapters.silt.session import accelerator, class_archive
from dbt.adapters.silt.session.java_launch import find_java

_JAVA = "select java_method('java.lang.System', 'getProperty', 'java.version')"
_ROWS = 3
_MUCH_MS = 60_000


def diagnose(
    session: SparkSession,
    catalog: Catalog,
    database: str,
    locations: Mapping[str, str],
    storages: Storages,
    wants_accelerator: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yields the versions in use and the state of each database, as pairs of name and text.

    Args:
        database: the profile's own database, which must be writable; the other databases may be read-only.
        locations: the absolute locations of the databases by name.
        storages: the settings by which databases in object stores are reached.
        wants_accelerator: whether the profile asks for an accelerator.

    Raises:
        StorageError: if the profile's own database cannot be written to.
        ConditionsIgnoredError: if its storage cannot hold a warehouse.
    """
    [java] = session.sql(_JAVA).collect()[0]
    yield "spark", f"{session.version} on Java {java}"
    if isinstance(session, SparkSession):  # a session of Spark Connect is not: its Java is the server's
        yield "java", str(find_java())
        yield "class-data archive", class_archive.state()
    if wants_accelerator:
        with tempfile.TemporaryDirectory() as folder:
            yield "accelerator", accelerator.state(session, Path(folder))
    yield "time zone", str(session.conf.get("spark.sql.session.timeZone"))
    for name, location in locations.items():
        state = "writable"
        try:
            if is_local(location):
                check_writable(local_path(location))
            else:
                yield from ((f"{name}: {what}", came) for what, came in tried(session, location, storages))
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


def tried(spark: SparkSession, location: str, storages: Storages) -> Iterator[tuple[str, str]]:
    """Yields each operation and its result; deletes the files that it creates.

    Args:
        location: the URL of a database.

    Raises:
        ConditionsIgnoredError: if the storage cannot hold a warehouse.
        StorageError: if it cannot be reached, read or written, by the log's client or by Spark.
    """
    yield "credentials", access(parse_url(location), storages.of(location)).source
    store = open_location(location, storages)
    assert isinstance(store, ObjectStore)
    began = time.monotonic()
    store.list_folders("")
    yield "list", f"works ({1000 * (time.monotonic() - began):.0f} ms)"
    kept = try_conditions(store, time.time_ns() // 1_000_000)
    yield "create-if-absent", kept.created
    yield "swap-if-unchanged", kept.swapped
    yield "clock", _clock(kept.clock_ms)
    _try_spark(spark, store)
    yield "spark", "writes and reads the same files"


def _clock(ahead_ms: int | None) -> str:
    """Describes the storage's clock, which has whole seconds: a difference of a second does not matter."""
    if ahead_ms is None:
        return "not reported by the storage"
    seconds = f"{abs(ahead_ms) / 1000:.0f} s {'ahead of' if ahead_ms > 0 else 'behind'} this machine's"
    return f"{seconds}: set the clock, or requests may be refused" if abs(ahead_ms) > _MUCH_MS else seconds


def _try_spark(spark: SparkSession, store: ObjectStore) -> None:
    folder = f"_silt_probe_{uuid.uuid4().hex}"
    path = spark_path(store.root, encode_path(folder))
    try:
        with errors.mapped():
            spark.range(_ROWS).write.parquet(f"{store.root}/{folder}")
            seen = spark.read.parquet(path).count()
        here = [each for each in store.list_from(folder) if each.size]
        if seen != _ROWS or not here:
            raise StorageError(
                f"Spark and this process see different files in {store.root}",
                remedy="Give both the same `endpoint`; a Spark Connect server has its own settings",
            )
    finally:
        with contextlib.suppress(SiltError):
            store.delete_folder(folder)
