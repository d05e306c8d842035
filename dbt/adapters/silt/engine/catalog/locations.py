"""Where databases and tables are: paths of this machine, and URIs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, InvalidSettingError


def local_path(location: str) -> str:
    """The path that a `file:` URI names; any other text as it is."""
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme == "file" else location


def is_local(location: str) -> bool:
    """Whether a location is in a local or mounted file system: it is a path, or a `file://` URI."""
    return "://" not in local_path(location)


def check_locations(locations: Mapping[str, str]) -> None:
    """Passes where each database's location is a folder or can become one; nothing is made.

    Raises:
        InvalidSettingError: a location is in no local or mounted file system, or is a file.
    """
    for name, location in locations.items():
        if not is_local(location):
            raise InvalidSettingError(
                f"the database {name} at `{location}` is in no local or mounted file system: only these are supported",
                remedy="Give the path of a folder",
            )
        above = os.path.abspath(local_path(location))
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if not os.path.isdir(above):
            kind = "a file" if os.path.exists(above) else "a link that leads nowhere"
            raise InvalidSettingError(
                f"the database {name} is to be the folder {local_path(location)}, and {above} is {kind}",
                remedy="Move it away, or give the path of a folder",
            )


def allowed_folders(locations: Mapping[str, str], external_paths: bool = False) -> tuple[str, ...] | None:
    """The folders that the logs of tables may name files in, besides their own; None for any."""
    return None if external_paths else tuple(os.path.abspath(local_path(each)) for each in locations.values())


def local_folder(path: str) -> str:
    """Returns the absolute local path for a path in SQL text: a path, or a `file:` URI.

    Raises:
        InvalidNameError: the path is empty, holds NUL, or is of another storage.
    """
    if not path or "\0" in path:
        raise InvalidNameError("a table's path cannot be empty or hold a NUL character", table=repr(path))
    if not is_local(path):
        raise InvalidNameError(
            f"a table in the storage `{urlsplit(path).scheme}` cannot be named by its path",
            table=path,
            remedy="Attach the storage as a database (`databases` in the profile)",
        )
    return os.path.abspath(local_path(path))
