"""Resolves the folders of a profile, with their defaults, to the locations of databases.

Nothing here needs dbt, so that a program without dbt finds the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, storage_settings, storages

DATABASE = "silt"
"""The default name of the warehouse as a database."""

SCHEMA = "main"
"""The default schema for models."""

WAREHOUSE = "warehouse"
"""The default folder of the warehouse."""


def locations(database: str, warehouse: str, databases: Mapping[str, object], project_root: Path) -> dict[str, str]:
    """Returns the location of each database by its name: an absolute folder, or the unchanged URL.

    Args:
        database: the profile's `database`, which is at `warehouse`.
        databases: the profile's `databases`: each a string, or a mapping with `location` and `storage`.
        project_root: the base of relative folders.

    Raises:
        InvalidSettingError: if a database is neither a string nor such a mapping, or its location is empty or has the
            scheme of a URL with a single slash.
    """
    folders = {database: warehouse, **{name: _location(name, given) for name, given in databases.items()}}
    return {name: _absolute(folder, project_root) for name, folder in folders.items()}


def new_folders(locations: Mapping[str, str]) -> dict[str, str]:
    """Returns the locations that are missing folders in an existing folder.

    Args:
        locations: as `locations` returns them.
    """
    folders = {name: Path(location) for name, location in locations.items() if "://" not in location}
    return {name: str(each) for name, each in folders.items() if not each.exists() and each.parent.is_dir()}


def storages_of(
    locations: Mapping[str, str], storage: Mapping[str, Any] | None, databases: Mapping[str, object]
) -> Storages:
    """Returns the access settings for the object stores of a profile.

    Args:
        locations: as `locations` returns them.
        storage: the profile's `storage`.
        databases: the profile's `databases`.

    Raises:
        InvalidSettingError: if a setting is invalid; the message contains no value.
    """
    own = {
        name: storage_settings(given["storage"] or {})
        for name, given in databases.items()
        if isinstance(given, Mapping) and "storage" in given
    }
    return storages(locations, storage_settings(storage or {}), own)


_ONE_SLASH = re.compile(r"(?:s3a?|gs|abfss?|wasbs?|hdfs|dbfs):/(?!/)", re.IGNORECASE)
_OF_DATABASE = ("location", "storage")


def _location(name: str, given: object) -> str:
    if isinstance(given, str):
        return given
    fields = dict(given) if isinstance(given, Mapping) else {}
    unknown = [str(each) for each in fields if each not in _OF_DATABASE]
    if unknown or not isinstance(fields.get("location"), str) or not isinstance(fields.get("storage", {}), Mapping):
        problem = (
            f"has a field `{unknown[0]}`" if unknown else "is neither a string nor a `location` with its `storage`"
        )
        raise InvalidSettingError(
            f"the database {name} in `databases` {problem}",
            remedy="Give its location, or the fields `location` and `storage`",
        )
    return str(fields["location"])


def _absolute(folder: str, project_root: Path) -> str:
    if not folder.strip():
        raise InvalidSettingError(
            "the location of a warehouse is empty", remedy="Set `warehouse` to a folder or a URL, or leave it out"
        )
    mistyped = _ONE_SLASH.match(folder)
    if mistyped is not None:
        raise InvalidSettingError(
            f"a location begins with `{mistyped[0]}`",
            remedy=f"Write a URL with two slashes: {mistyped[0]}/bucket/prefix",
        )
    return folder if "://" in folder else str((project_root / Path(folder).expanduser()).resolve())
