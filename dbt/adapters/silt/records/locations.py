"""Resolves the folders that a profile names, with their defaults, to the locations of databases.

Nothing here needs dbt, so that a program without dbt finds the same tables.
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
    """Returns the folder of each database by its name, absolute; a URI stays as it is.

    Args:
        database: the profile's `database`, whose folder is `warehouse`.
        databases: the profile's `databases`.
        project_root: what relative folders are relative to.
    """
    folders = {database: warehouse, **databases}
    return {name: _absolute(folder, project_root) for name, folder in folders.items()}


def _absolute(folder: str, project_root: Path) -> str:
    return folder if "://" in folder else str((project_root / Path(folder).expanduser()).resolve())
