"""Writes a model's rows for the materialization `external`: a file or a folder of files outside of the warehouse.

All rows are written next to their location, under a hidden name, before they are moved into place: a failed or killed
run leaves the previous files as they were. Running the model again writes the same location again, so no unit of
work is recorded.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, DataFrameWriter, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.catalog.folders.locks import exclusive
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import PrefixStore, Store
from dbt.adapters.silt.engine.statements.resolve.stored_code import MARKER
from dbt.adapters.silt.materializations.external.object_files import ObjectFiles
from dbt.adapters.silt.materializations.external.sources import declared, read_files
from dbt.adapters.silt.materializations.external.target import SELF_DESCRIBING, ExternalTarget, Marker, is_data
from dbt.adapters.silt.runs.response import SiltResponse

# A rename in an object store copies the file: this algorithm renames once, not twice.
_OF_OBJECTS = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}


@dataclass(frozen=True)
class ExternalFiles:
    """The written files: the query that reads them, and the response for dbt."""

    query: str
    response: SiltResponse


def check_target(target: ExternalTarget, open_store: Callable[[str], Store]) -> None:
    """Checks that the target contains nothing but this model's files.

    Args:
        open_store: opens a location in an object store.

    Raises:
        DbtRuntimeError: if it contains files of another owner.
        SiltError: if its storage cannot be reached.
    """
    if target.is_object:
        _in_objects(target, open_store).check()
    else:
        check(target)


def write_external(rows: DataFrame, target: ExternalTarget, open_store: Callable[[str], Store]) -> ExternalFiles:
    """Writes the rows, and replaces the previous files.

    Args:
        open_store: opens a location in an object store.

    Raises:
        DbtRuntimeError: if another owner, or another run of the model, has written files there meanwhile.
        SiltError: if a storage operation fails.
    """
    count = Observation()
    observed = rows.observe(count, F.count(F.lit(1)).alias("rows"))
    if target.is_object:
        files = _in_objects(target, open_store)
        with files.staged() as url:
            _writer(observed, target).options(**_OF_OBJECTS).save(url)
            is_empty = not files.put_in_place()
            if target.partition_by:
                _delete_marks(rows.sparkSession, url)
    else:
        with _staged(target) as hidden:
            _writer(observed, target).save(f"file://{hidden}")
            put_in_place(hidden, target)
            is_empty = False
    written = int(count.get["rows"])
    response = SiltResponse(f"{written} rows in {target.location}", code="OK", rows_affected=written)
    return ExternalFiles(_query(rows, target, is_empty), response)


def _in_objects(target: ExternalTarget, open_store: Callable[[str], Store]) -> ObjectFiles:
    return ObjectFiles.of_run(cast(PrefixStore, open_store(target.above)), target)


def _writer(rows: DataFrame, target: ExternalTarget) -> DataFrameWriter:
    one = rows.coalesce(1) if target.is_file else rows
    options = {name: str(value).lower() if isinstance(value, bool) else value for name, value in target.options.items()}
    writer = one.write.format(target.format).options(**options)
    return writer.partitionBy(*target.partition_by) if target.partition_by else writer


def _delete_marks(spark: SparkSession, url: str) -> None:
    """Has Spark delete a folder, which other clients cannot delete completely, and write an empty file.

    Hadoop has marked each folder in it with an empty object whose name ends with a slash.
    """
    spark.range(0).write.options(**_OF_OBJECTS).mode("overwrite").parquet(url)


def _query(rows: DataFrame, target: ExternalTarget, is_empty: bool) -> str:
    """Returns the query that reads the files with the columns of the model, in their order and types.

    Args:
        is_empty: whether no file exists that could define the columns.
    """
    columns = SiltColumn.of_schema(rows.schema)
    typed = [(column.name, column.data_type) for column in columns]
    in_folders = {name.lower() for name in target.partition_by}
    types: dict[str, Any] = {}
    if is_empty or target.format not in SELF_DESCRIBING:
        types = {"schema": declared(typed)}
    elif in_folders:
        types = {"schemaHints": declared(each for each in typed if each[0].lower() in in_folders)}
    manifest = {"manifest": MARKER} if target.is_object and not target.is_file else {}
    options: Mapping[str, Any] = {"format": target.format, **types, **target.options, **manifest}
    return f"select {', '.join(quote(name) for name, _ in typed)} from " + read_files(
        target.location, options, target.node
    )


def check(target: ExternalTarget) -> None:
    """Checks that the target does not exist, or that this model has written it.

    Raises:
        DbtRuntimeError: if files of another owner are there.
    """
    if target.path.parent.is_dir():
        with _alone(target.path.parent):
            _check_replaceable(target)


@contextlib.contextmanager
def _staged(target: ExternalTarget) -> Iterator[Path]:
    """Yields the path of a hidden folder next to the target, to be created and written; deletes it at the end."""
    target.path.parent.mkdir(parents=True, exist_ok=True)
    hidden = _hidden_sibling(target.path)
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def put_in_place(written: Path, target: ExternalTarget) -> None:
    """Moves the files written to a folder to the target, and replaces the previous files.

    Raises:
        DbtRuntimeError: if another owner has written files there meanwhile.
    """
    with _alone(target.path.parent):
        _check_replaceable(target)
        if target.is_file:
            (part,) = written.glob("part-*")
            os.replace(part, target.path)
        else:
            (written / MARKER).write_bytes(Marker(target.node, _files(written)).data())
            _swap(written, target.path)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder, so that no other run in any process replaces files in it."""
    with exclusive(LocalStore(str(folder)), "", SystemClock(), keep_file=False):
        yield


def _check_replaceable(target: ExternalTarget) -> None:
    path = target.path
    if path.is_symlink():
        raise DbtRuntimeError(f"`{path}` is a symbolic link; name the file or folder that it leads to, or delete it")
    if target.is_file:
        if path.is_dir():
            raise DbtRuntimeError(f"`{path}` is a folder; name another file, or move the folder")
        return
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    marker = _read_marker(path)
    marker.check(target, {path.name} if marker.node is None else _files(path))


def _read_marker(folder: Path) -> Marker:
    try:
        return Marker.read((folder / MARKER).read_bytes())
    except OSError:
        return Marker()


def _files(folder: Path) -> frozenset[str]:
    """Returns the data files in a folder, as relative paths."""
    found = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return frozenset(each.as_posix() for each in found if is_data(each.name))


def _swap(new: Path, current: Path) -> None:
    """Replaces a folder; deletes the old folder after the new folder is in place."""
    if not current.exists():
        os.rename(new, current)
        return
    aside = _hidden_sibling(current)
    os.rename(current, aside)
    try:
        os.rename(new, current)
    except OSError:
        os.rename(aside, current)
        raise
    shutil.rmtree(aside)


def _hidden_sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")
