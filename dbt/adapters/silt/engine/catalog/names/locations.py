"""Locations of databases and tables: local paths and URIs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import is_url, parse_url, shown


@dataclass(frozen=True)
class Location:
    """The location of a database, with the settings of its storage.

    Attributes:
        url: a path, a `file:` URI, or a URL in an object store.
        storage: by default the settings of the warehouse.
    """

    url: str
    storage: StorageSettings | None = None


def local_path(location: str) -> str:
    """Returns the path of a `file:` URI, or any other location unchanged."""
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme == "file" else location


def is_local(location: str) -> bool:
    """Returns whether a location is in a local or mounted file system: it is a path, or a `file://` URI."""
    return not is_url(location)


def check_locations(locations: Mapping[str, str]) -> None:
    """Checks that each database's location is a folder, a possible folder, or in an object store; creates nothing.

    Raises:
        InvalidSettingError: if a location is a file, or in a storage that is not supported.
    """
    for name, location in locations.items():
        if not is_local(location):
            try:
                parse_url(location)
            except InvalidSettingError as error:
                raise InvalidSettingError(f"the database {name}: {error.problem}", remedy=error.action) from error
            continue
        above = os.path.abspath(local_path(location))
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            kind = "a file" if os.path.exists(above) else "a broken link"
            raise InvalidSettingError(
                f"the database {name} is configured as the folder {local_path(location)}, but {above} is {kind}",
                remedy="Move it, or give the path of a folder",
            )


def allowed_folders(locations: Mapping[str, str], external_paths: bool = False) -> tuple[str, ...] | None:
    """Returns the folders, in addition to their own, in which tables' logs may name files, or None for any folder."""
    return None if external_paths else tuple(_absolute(each) for each in locations.values())


def table_location(path: str) -> str:
    """Returns the location for a path in SQL text: the absolute local path, or the URL without slashes at its end.

    Raises:
        InvalidNameError: if the path is empty, contains NUL, or belongs to an unsupported storage.
    """
    if not path or "\0" in path:
        raise InvalidNameError("a table's path cannot be empty or contain a NUL character", table=repr(path))
    try:
        return _absolute(path)
    except InvalidSettingError as error:
        raise InvalidNameError(error.problem, table=shown(path), remedy=error.action) from error


def _absolute(location: str) -> str:
    return os.path.abspath(local_path(location)) if is_local(location) else str(parse_url(location))
