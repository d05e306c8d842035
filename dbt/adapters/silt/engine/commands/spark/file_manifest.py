"""Reads a manifest: a JSON file in a folder that names the files to read in this folder.

It contains `files`, their paths relative to the folder, and `pattern`, which matches the names of only these files. So
files that are just being added or deleted are not read.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import FilesNotFoundError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store, joined


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest.

    Attributes:
        pattern: the pattern of the files' names, unless all files of the folder are read.
        count: the number of files.
    """

    pattern: str | None
    count: int


def read(store: Store, name: str) -> Manifest:
    """Reads the current manifest of a folder.

    Args:
        store: the store of the folder.

    Raises:
        FilesNotFoundError: if the manifest is missing.
        InvalidStatementError: if the file is not a manifest.
        StorageError: if the file cannot be read.
    """
    try:
        given = foreign_json.loads(store.read(name))
        return Manifest(given.get("pattern"), len(given["files"]))
    except ObjectMissing as error:
        raise FilesNotFoundError(
            f"the manifest {joined(store.root, name)} is missing, which lists the files to read"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidStatementError(
            f"{joined(store.root, name)} is not a manifest: a JSON object with `files`, and a `pattern` of their names"
        ) from error
