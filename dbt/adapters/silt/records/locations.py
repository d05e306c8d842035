"""Where a profile says that the tables are: the fields of a profile that name folders, their defaults, and what a
relative folder is relative to. Nothing here needs dbt, so that a program without it finds the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DATABASE = "silt"
"""The name of the warehouse as a database, where the profile gives none."""

SCHEMA = "main"
"""The schema that models are built in, where the profile gives none."""

WAREHOUSE = "warehouse"
"""The warehouse's folder, where the profile gives none."""


def locations(database: str, warehouse: str, databases: Mapping[str, str], project_root: Path) -> dict[str, str]:
    """The folder of each database by its name, absolute; a URI is what it is.

    Args:
        database: the profile's `database`, whose folder is `warehouse`.
        databases: the profile's `databases`.
        project_root: what relative folders are relative to.
    """
    places = {database: warehouse, **databases}
    return {name: _location(place, project_root) for name, place in places.items()}


def _location(place: str, project_root: Path) -> str:
    return place if "://" in place else str((project_root / Path(place).expanduser()).resolve())


def local_path(location: str) -> str:
    """The path of a local location, without `file://`."""
    return location.removeprefix("file://")
