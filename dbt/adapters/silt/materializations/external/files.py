"""Writes a model's rows for the materialization `external`: one file, or a folder of files, outside of the warehouse.

The rows are written next to their location, under a hidden name, and moved there when all of them are written: a run
that fails or is killed leaves what was there before. A file is replaced in one step. A folder is replaced in two (the
old one is renamed, the new one takes its name), between which there is none for a moment. Running the model again
writes the same location again, so no unit of work is recorded; two runs at once write one after the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, DataFrameWriter, Observation
from pyspark.sql import functions as F

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.catalog.folders.locks import exclusive
from dbt.adapters.silt.engine.catalog.locations import is_local, local_path
from dbt.adapters.silt.engine.commands.spark.file_formats import compression_of, format_of
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.materializations.external.sources import declared, read_files
from dbt.adapters.silt.runs.response import SiltResponse

_FORMATS = ("parquet", "csv", "json", "orc")
_SELF_DESCRIBING = ("parquet", "orc")
_MARKER = "_dbt_silt.json"  # readers of files skip names that begin with an underscore


@dataclass(frozen=True)
class ExternalTarget:
    """Where and how a model's rows are written.

    Attributes:
        path: of the file or folder, absolute.
        is_file: whether it is one file, by the path's ending; else a folder.
        format: parquet, csv, json or orc.
        options: of Spark's writer and reader.
        partition_by: the columns that a folder has sub-folders for.
        node: the id of the model; a folder records it, so that another model does not overwrite it.
    """

    path: Path
    is_file: bool
    format: str
    options: Mapping[str, Any]
    partition_by: tuple[str, ...]
    node: str


@dataclass(frozen=True)
class ExternalFiles:
    """The written files: the query that reads them, and the response for dbt."""

    query: str
    response: SiltResponse


def external_target(model: Mapping[str, Any], location: str, project_root: str, taken: list[str]) -> ExternalTarget:
    """Returns the target that a model's config describes.

    Args:
        model: the node, with `format`, `options` and `partition_by` in its config.
        location: the config's `location`: a path, relative to the project, or a `file://` URI.
        taken: the folders of the warehouse, in which nothing may be written.

    Raises:
        DbtRuntimeError: the location or format cannot be used, or files of another owner are there.
    """
    config = model["config"]
    path = _path(location, project_root, taken)
    named = format_of(str(path))
    file_format = str(config.get("format") or named or "parquet").lower()
    if file_format not in _FORMATS:
        raise DbtRuntimeError(f"`format: {file_format}` cannot be written; it is one of {', '.join(_FORMATS)}")
    options = _options(file_format, config, path if named else None)
    partition_by = _columns(config.get("partition_by") or options.pop("partition_by", None))
    if named and partition_by:
        raise DbtRuntimeError(f"`partition_by` needs a folder, and `{location}` is one file: leave its ending out")
    target = ExternalTarget(path, bool(named), file_format, options, partition_by, str(model["unique_id"]))
    if path.parent.is_dir():
        with _alone(path.parent):
            _check_replaceable(target)
    return target


def write_external(rows: DataFrame, target: ExternalTarget) -> ExternalFiles:
    """Writes the rows, and replaces what was there.

    Raises:
        DbtRuntimeError: another owner has written files there meanwhile.
    """
    count = Observation()
    observed = rows.observe(count, F.count(F.lit(1)).alias("rows"))
    target.path.parent.mkdir(parents=True, exist_ok=True)
    hidden = _hidden_sibling(target.path)
    try:
        _writer(observed, target).save(f"file://{hidden}")
        put_in_place(hidden, target)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    written = int(count.get["rows"])
    response = SiltResponse(f"{written} rows in {target.path}", code="OK", rows_affected=written)
    return ExternalFiles(_query(rows, target), response)


def put_in_place(written: Path, target: ExternalTarget) -> None:
    """Moves what was written in a folder to the target, and replaces what was there.

    Raises:
        DbtRuntimeError: another owner has written files there meanwhile.
    """
    with _alone(target.path.parent):
        _check_replaceable(target)
        if target.is_file:
            (part,) = written.glob("part-*")
            os.replace(part, target.path)
        else:
            _write_marker(written, target)
            _swap(written, target.path)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder, so that no other run of any process replaces anything in it."""
    with exclusive(LocalStore(str(folder)), "", SystemClock()):
        yield


def _path(location: str, project_root: str, taken: list[str]) -> Path:
    if not location:
        raise DbtRuntimeError("the materialization `external` needs a `location`: the file or folder to write")
    plain = local_path(location)
    if not is_local(location):
        raise DbtRuntimeError(
            f"`location: {location}` cannot be written all at once; give a path of a local or mounted file system"
        )
    if any(letter in plain for letter in "*?[]{}"):
        raise DbtRuntimeError(f"`location: {location}` would be read as a pattern; leave out * ? [ ] {{ }}")
    path = Path(os.path.normpath(Path(project_root, Path(plain).expanduser()).absolute()))
    for folder in map(Path, taken):
        if path.is_relative_to(folder) or folder.is_relative_to(path):
            raise DbtRuntimeError(
                f"`location: {location}` is in the warehouse {folder}, whose files are those of tables"
            )
    return path


def _columns(given: Any) -> tuple[str, ...]:
    """Returns names of columns, which dbt-duckdb's projects also give as one text."""
    names = given.split(",") if isinstance(given, str) else given or ()
    return tuple(name.strip() for name in names)


def _options(file_format: str, config: Mapping[str, Any], file: Path | None) -> dict[str, Any]:
    """Returns the options, with CSV's usual header and quotes, and the compression of the file's ending."""
    given = {name.lower(): value for name, value in (config.get("options") or {}).items()}
    if file_format == "csv":
        given.setdefault("header", True)
        given.setdefault("escape", '"')  # a quote within quotes is doubled, as readers of CSV expect
        if config.get("delimiter"):
            given["delimiter"] = config["delimiter"]
    if file is not None and file_format not in _SELF_DESCRIBING:
        promised = compression_of(str(file)) or "none"
        if str(given.setdefault("compression", promised)).lower() not in (promised, "uncompressed"):
            raise DbtRuntimeError(
                f"a file with `compression: {given['compression']}` cannot be read under the name `{file.name}`"
            )
    return given


def _check_replaceable(target: ExternalTarget) -> None:
    """Passes where the target does not exist, or this model has written it."""
    path = target.path
    if target.is_file:
        if path.is_dir():
            raise DbtRuntimeError(f"`{path}` is a folder; name another file, or move the folder")
        return
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    node, files = _read_marker(path)
    if node != target.node:
        owner = "it has no record that this model has written it" if node is None else f"{node} has written it"
        raise DbtRuntimeError(f"`{path}` would be overwritten, and {owner}; choose another `location`, or empty it")
    others = sorted(_files(path) - files)
    if others:
        raise DbtRuntimeError(
            f"`{path}` would be overwritten, and holds `{others[0]}`, which this model has not written; move that away"
        )


def _read_marker(folder: Path) -> tuple[str | None, set[str]]:
    """Returns which node has written the folder, and which files."""
    try:
        marker = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        return str(marker["node"]), set(marker["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, set()


def _files(folder: Path) -> set[str]:
    """Returns the data files in a folder, relative to it."""
    found = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return {each.as_posix() for each in found if not each.name.startswith((".", "_"))}


def _write_marker(folder: Path, target: ExternalTarget) -> None:
    content = {"node": target.node, "files": sorted(_files(folder))}
    (folder / _MARKER).write_text(json.dumps(content), encoding="utf-8")


def _writer(rows: DataFrame, target: ExternalTarget) -> DataFrameWriter:
    one = rows.coalesce(1) if target.is_file else rows
    options = {name: str(value).lower() if isinstance(value, bool) else value for name, value in target.options.items()}
    writer = one.write.format(target.format).options(**options)
    return writer.partitionBy(*target.partition_by) if target.partition_by else writer


def _swap(new: Path, current: Path) -> None:
    """Replaces a folder, which is deleted only when the new one is there."""
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


def _query(rows: DataFrame, target: ExternalTarget) -> str:
    """Returns the query that reads the files with the columns of the model, in their order and types."""
    columns = SiltColumn.of_schema(rows.schema)
    typed = [(column.name, column.data_type) for column in columns]
    in_folders = {name.lower() for name in target.partition_by}
    types: dict[str, Any] = {}
    if target.format not in _SELF_DESCRIBING:
        types = {"schema": declared(typed)}
    elif in_folders:
        types = {"schemaHints": declared(each for each in typed if each[0].lower() in in_folders)}
    options = {"format": target.format, **types, **target.options}
    return f"select {', '.join(quote(name) for name, _ in typed)} from " + read_files(
        str(target.path), options, target.node
    )
