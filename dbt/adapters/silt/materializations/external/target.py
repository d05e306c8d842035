"""Reads the location, format and options of an `external` model, and the file that marks its folder as its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.catalog.names.locations import is_local, local_path
from dbt.adapters.silt.engine.commands.spark.file_formats import compression_of, format_of
from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.urls import ObjectUrl, is_url, parse_url
from dbt.adapters.silt.engine.kernel.table import json_fields

SELF_DESCRIBING: Final = ("parquet", "orc")
"""The formats whose files hold the names and types of their columns."""

_FORMATS: Final = (*SELF_DESCRIBING, "csv", "json")
_OF_PATTERNS: Final = "*?[]{}"


@dataclass(frozen=True)
class ExternalTarget:
    """The location, format and options of a model's files.

    Attributes:
        location: location of the file or folder: an absolute path, or a URL in an object store.
        is_file: whether it is a single file, by the location's ending; else a folder.
        format: parquet, csv, json or orc.
        options: options of Spark's writer and reader.
        partition_by: the columns that a folder has sub-folders for.
        node: the id of the model; a folder records it, so that another model does not overwrite it.
    """

    location: str
    is_file: bool
    format: str
    options: Mapping[str, Any]
    partition_by: tuple[str, ...]
    node: str

    @property
    def is_object(self) -> bool:
        """Whether it is in an object store."""
        return is_url(self.location)

    @property
    def path(self) -> Path:
        """The location as a path in a file system."""
        return Path(self.location)

    @property
    def above(self) -> str:
        """The location of the folder that contains it."""
        return self.location.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The last component of the target's location."""
        return self.location.rpartition("/")[2]


@dataclass(frozen=True)
class Marker:
    """The content of a marker file.

    Attributes:
        node: the id of the model, if the folder has a valid marker.
        files: paths relative to the folder.
        pattern: matches the names of only these files; None if the folder contains no other files.
    """

    node: str | None = None
    files: frozenset[str] = frozenset()
    pattern: str | None = None

    @classmethod
    def read(cls, data: bytes) -> Marker:
        """Parses a marker; returns an empty marker if the data is not valid.

        Raises:
            UnsupportedFeatureError: if a later version of this package has written it.
        """
        try:
            given = foreign_json.loads(data)
            json_fields.check_format(given, "the marker of the folder")
            return cls(str(given["node"]), frozenset(map(str, given["files"])), given.get("pattern"))
        except (ValueError, KeyError, TypeError):
            return cls()

    def data(self) -> bytes:
        known = {"pattern": self.pattern} if self.pattern else {}
        return json.dumps(
            {"format": json_fields.FORMAT, "node": self.node, **known, "files": sorted(self.files)}
        ).encode()

    def check(self, target: ExternalTarget, found: Iterable[str]) -> None:
        """Checks that all files of the folder belong to the model.

        Args:
            found: the data files in the folder.

        Raises:
            DbtRuntimeError: if another model, or an unknown writer, has written some of them.
        """
        if self.node is not None and self.node != target.node:
            raise refused(target.location, f"{self.node} wrote it; choose another `location`, or empty it")
        others = sorted(set(found) - self.files)
        if others and self.node is None:
            reason = "it has no record that this model wrote it; choose another `location`, or empty it"
            raise refused(target.location, reason)
        if others:
            raise refused(target.location, f"it holds `{others[0]}`, which this model did not write; move it away")


def target_of(model: Mapping[str, Any], location: str, project_root: str, taken: Iterable[str]) -> ExternalTarget:
    """Returns the target that a model's config describes, without access to storage.

    Args:
        model: the node, with `format`, `options` and `partition_by` in its config.
        location: the config's `location`: a path, relative to the project, a `file://` URI, or a URL.
        taken: the locations of the warehouse, in which nothing may be written.

    Raises:
        DbtRuntimeError: if the location or format cannot be used.
    """
    config = model["config"]
    resolved = resolve_location(location, project_root, taken)
    named = format_of(resolved)
    file_format = str(config.get("format") or named or "parquet").lower()
    if file_format not in _FORMATS:
        raise DbtRuntimeError(f"`format: {file_format}` cannot be written: it must be one of {', '.join(_FORMATS)}")
    options = _options(file_format, config, resolved if named else None)
    partition_by = _columns(config.get("partition_by") or options.pop("partition_by", None))
    if named and partition_by:
        raise DbtRuntimeError(f"`partition_by` needs a folder, but `{location}` is a single file: remove its extension")
    return ExternalTarget(resolved, bool(named), file_format, options, partition_by, str(model["unique_id"]))


def refused(where: str, reason: str) -> DbtRuntimeError:
    """Returns the error for files that would be lost."""
    return DbtRuntimeError(f"`{where}` is not overwritten: {reason}")


def resolve_location(location: str, project_root: str, taken: Iterable[str] = ()) -> str:
    """Returns the absolute path or URL of a config's `location`; arguments and errors as in `target_of`."""
    if not location:
        raise DbtRuntimeError("the materialization `external` needs a `location`: the file or folder to write")
    if any(letter in local_path(location) for letter in _OF_PATTERNS):
        raise DbtRuntimeError(f"`location: {location}` would be read as a pattern; leave out * ? [ ] {{ }}")
    return _folder(location, project_root, taken) if is_local(location) else _url(location, taken)


def _folder(location: str, project_root: str, taken: Iterable[str]) -> str:
    path = Path(os.path.normpath(Path(project_root, Path(local_path(location)).expanduser()).absolute()))
    real = Path(os.path.realpath(path))
    for folder in (Path(local_path(each)) for each in taken if is_local(each)):
        real_folder = Path(os.path.realpath(folder))
        if real.is_relative_to(real_folder) or real_folder.is_relative_to(real):
            raise _in_warehouse(location, str(folder))
    return str(path)


def _url(location: str, taken: Iterable[str]) -> str:
    try:
        url = parse_url(location)
    except InvalidSettingError as error:
        raise DbtRuntimeError(f"`location`: {error.sentences}") from error
    if not url.prefix:
        raise DbtRuntimeError(f"`location: {location}` is a whole bucket; name a file or a folder in it")
    for other in (parse_url(each) for each in taken if not is_local(each)):
        if url.store == other.store and (_is_within(url, other) or _is_within(other, url)):
            raise _in_warehouse(location, str(other))
    return str(url)


def _is_within(url: ObjectUrl, other: ObjectUrl) -> bool:
    return PurePosixPath("/", url.prefix).is_relative_to(PurePosixPath("/", other.prefix))


def _in_warehouse(location: str, warehouse: str) -> DbtRuntimeError:
    return DbtRuntimeError(f"`location: {location}` is in the warehouse {warehouse}, whose files belong to tables")


def _columns(given: Any) -> tuple[str, ...]:
    """Returns names of columns, which projects for dbt-duckdb also give as a single string."""
    names = given.split(",") if isinstance(given, str) else given or ()
    return tuple(name.strip() for name in names)


def _options(file_format: str, config: Mapping[str, Any], file: str | None) -> dict[str, Any]:
    """Returns the options, with CSV's usual header and quotes, and the compression that the file's ending implies."""
    given = {name.lower(): value for name, value in (config.get("options") or {}).items()}
    if file_format == "csv":
        given.setdefault("header", True)
        given.setdefault("escape", '"')  # a quote within quotes is doubled, as CSV readers expect
        if config.get("delimiter"):
            given["delimiter"] = config["delimiter"]
    if file is not None and file_format not in SELF_DESCRIBING:
        promised = compression_of(file) or "none"
        if str(given.setdefault("compression", promised)).lower() not in (promised, "uncompressed"):
            name = PurePosixPath(file).name
            raise DbtRuntimeError(
                f"a file with `compression: {given['compression']}` cannot be read under the name `{name}`"
            )
    return given


def is_data(name: str) -> bool:
    """Returns whether readers treat a file of that name as data."""
    return not name.rpartition("/")[2].startswith((".", "_"))
