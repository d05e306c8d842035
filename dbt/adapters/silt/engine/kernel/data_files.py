"""Data files where the log says that they are: below the table's folder, or anywhere, as those of a shallow clone."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.paths import is_absolute
from dbt.adapters.silt.engine.kernel.store import Store

_WORKERS = 16


def located(store: Store, name: str) -> tuple[Store, str]:
    """The store that a file is in, and its path in that store.

    Args:
        store: of the table that names the file.
        name: the file's plain name: relative to the table's folder, or absolute.

    Raises:
        UnsupportedFeatureError: the file is in another storage.
    """
    folder = f"{store.root.rstrip('/')}/"
    if not is_absolute(name):
        return store, name
    if name.startswith(folder):
        return store, name.removeprefix(folder)
    if name.startswith("/"):
        above, _, own = name.rpartition("/")
        return LocalStore(above or "/"), own
    raise UnsupportedFeatureError(
        f"the file {name} is in another storage than the table", remedy="Copy the table with the engine that made it"
    )


def missing(store: Store, names: Sequence[str]) -> list[str]:
    """Those of the files that are not there, in order.

    Args:
        names: as `located` takes them.

    Raises:
        StorageError: the storage does not say.
    """
    with ThreadPoolExecutor(_WORKERS) as pool:
        there = pool.map(functools.partial(_is_there, store), names)
        return [name for name, is_there in zip(names, there, strict=True) if not is_there]


def _is_there(store: Store, name: str) -> bool:
    where, path = located(store, name)
    return where.status(path) is not None
