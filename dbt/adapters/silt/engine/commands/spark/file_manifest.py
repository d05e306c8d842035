"""Reads a manifest: a JSON file in a folder that says which of the folder's files are read.

It has `files`, their paths relative to the folder, and `pattern`, which the names of these files match and no others.
So files that are about to be put there, or to be deleted, are not read.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import FilesNotFoundError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store, joined


@dataclass(frozen=True)
class Manifest:
    """What it says.

    Attributes:
        pattern: of the files' names; None where all files of the folder are meant.
        count: how many they are.
    """

    pattern: str | None
    count: int


def read(store: Store, name: str) -> Manifest:
    """The manifest in a folder, as it is now.

    Args:
        store: of the folder.

    Raises:
        FilesNotFoundError: there is none.
        InvalidStatementError: it is no manifest.
        StorageError: it cannot be read.
    """
    try:
        given = foreign_json.loads(store.read(name))
        return Manifest(given.get("pattern"), len(given["files"]))
    except ObjectMissing as error:
        raise FilesNotFoundError(
            f"the manifest {joined(store.root, name)} is not there, which says what files to read"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidStatementError(
            f"{joined(store.root, name)} is no manifest: a JSON object with `files`, and a `pattern` of their names"
        ) from error
