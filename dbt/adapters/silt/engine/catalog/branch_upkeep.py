"""Keeps the folder of branches small, and finds the files that live branches need.

_branches/<id>/...   the documents of a branch, whose id contains the time of its beginning
"""

from __future__ import annotations

import contextlib
from typing import Final

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import needed_files
from dbt.adapters.silt.engine.kernel.publication.documents import began_ms
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BASE, BranchLog

FOLDER: Final = "_branches"
_LONGEST_ID: Final = 19
_AGE_MS: Final = 7 * 24 * 60 * 60 * 1000
"""The age at which the commits of a branch that nothing has published are deleted, in milliseconds."""


def held_files(register: Publications, log: DeltaLog) -> dict[str, set[str]]:
    """Returns the files of a table that branches need, by the branch's id; see `needed_files`.

    Args:
        register: the publications of the table's database.
        log: the table.

    Raises:
        TableDamagedError: if a branch cannot be read.
        StorageError: if the storage failed.
    """
    held, location = {}, register.location_of(log)
    for branch_id, is_old in _branches(register.store, register.clock):
        folder = f"{FOLDER}/{branch_id}/{location}"
        if is_old or register.store.status(f"{folder}/{BASE}") is None:
            continue
        with contextlib.suppress(VersionNotFoundError):  # its base was cleaned up, so it can no longer be published
            held[branch_id] = needed_files(BranchLog(log, register.store.child(folder)))
    return held


def delete_old_branches(store: Store, clock: Clock) -> None:
    """Deletes the commits of branches that programs left long ago; their data files are left for VACUUM.

    Raises:
        StorageError: if the storage failed.
    """
    for branch_id, is_old in _branches(store, clock):
        if is_old:
            store.delete_folder(f"{FOLDER}/{branch_id}")


def _branches(store: Store, clock: Clock) -> list[tuple[str, bool]]:
    """Returns the ids of the branches, and whether each is too old to be published."""
    return [(name, is_too_old(name, clock)) for name in folders(store, FOLDER) if is_branch_id(name)]


def folders(store: Store, folder: str) -> list[str]:
    """Returns the names of the folders in a folder; empty if it does not exist."""
    try:
        return store.list_folders(folder)
    except ObjectMissing:
        return []


def is_branch_id(text: str) -> bool:
    """Returns whether a text can be the id of a branch."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID


def is_too_old(branch_id: str, clock: Clock) -> bool:
    """Returns whether a branch is too old to be published."""
    return began_ms(int(branch_id)) < clock.now_ms() - _AGE_MS
