"""Finds and copies data files: below the table's folder, or elsewhere, as those of a shallow clone.

A log may name any file that the machine can read. Outside of the table's folder only those count that are in the
folders which the store allows: the warehouse's, or all of them where its user said so.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dbt.adapters.silt.engine.kernel.errors import (
    DataFileMissingError,
    ExternalPathError,
    StorageError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.paths import is_absolute

_WORKERS = 16
_ONE_SCHEME = {"s3a": "s3", "abfss": "abfs"}
_PART = 4 << 20


class Reach:
    """Decides where the files are that the log of a table names, and whether it may name them.

    It remembers the folders that it has resolved: use one for a batch of files, and another for the next batch, because
    a folder can be replaced by a link at any time.

    Args:
        store: of the table.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = f"{store.root.rstrip('/')}/"
        self._others: dict[str, Store] = {}

    def located(self, name: str) -> tuple[Store, str]:
        """Returns the store that a file is in, and its path in that store, which follows no link to it.

        Args:
            name: the file's plain name: relative to the table's folder, or absolute.

        Raises:
            ExternalPathError: the file is where no file of a table may be.
            UnsupportedFeatureError: the file is in another storage.
        """
        if name.startswith(self._folder):
            name = name.removeprefix(self._folder)
        if not is_absolute(name) and (".." not in name.split("/") or not isinstance(self._store, LocalStore)):
            check_reach(self._store, name)
            return self._store, name
        whole = name if is_absolute(name) else f"{self._folder}{name}"
        above, _, own = whole.rpartition("/")
        if above not in self._others:
            self._others[above] = self._other(above, name)
        return self._others[above], own

    def _other(self, folder: str, name: str) -> Store:
        """The store of another folder, in which the log names the file."""
        check_reach(self._store, name)
        if folder.startswith("/") or not folder:
            return _local_folder(folder or "/", self._store)
        if isinstance(self._store, (LocalStore, ObjectStore)) and self._store.elsewhere is not None:
            return self._store.elsewhere(folder)
        raise UnsupportedFeatureError(
            f"the file {name} is in another storage than the table",
            remedy="Copy the table with the engine that made it",
        )


def located(store: Store, name: str) -> tuple[Store, str]:
    """Returns the store that a file is in, and its path in that store; see `Reach.located`."""
    return Reach(store).located(name)


def check_reach(store: Store, name: str) -> None:
    """Passes if the log of a table may name this file; the file itself may still be a link, which no store follows.

    Args:
        store: of the table.
        name: the file's plain name: relative to the table's folder, or absolute.

    Raises:
        ExternalPathError: it is neither in the table's folder nor in one that the store allows.
    """
    if not isinstance(store, (LocalStore, ObjectStore)) or store.allowed is None:
        return
    if not is_absolute(name) and ".." not in name.split("/"):
        return
    whole = name if is_absolute(name) else f"{store.root}/{name}"
    tops = (store.root, *store.allowed)
    if _is_url_within(whole, tops) if "://" in whole else _top_of(os.path.dirname(whole), tops) is not None:
        return
    raise ExternalPathError(
        f"the log names the file {name}, which is neither in the table's folder nor in the warehouse",
        table=store.root,
        details={"path": name},
    )


def is_allowed(store: Store) -> bool:
    """Whether the folder of this store, links resolved, is in one of those that the store allows."""
    if not isinstance(store, (LocalStore, ObjectStore)) or store.allowed is None:
        return True
    return _is_url_within(store.root, store.allowed) or _top_of(store.root, store.allowed) is not None


def _local_folder(folder: str, store: Store) -> LocalStore:
    """The store of a folder that `check_reach` let pass; no link below the allowed folder that holds it is followed."""
    allowed = store.allowed if isinstance(store, (LocalStore, ObjectStore)) else None
    if allowed is None:
        return LocalStore(folder)
    real = os.path.realpath(folder)
    top = _top_of(real, (store.root, *allowed))
    return LocalStore(top or real, allowed).child("" if top is None else real.removeprefix(top).lstrip("/"))


def _top_of(folder: str, tops: Iterable[str]) -> str | None:
    """The resolved one of some folders that a folder is in; None if it is in none of them."""
    real = os.path.realpath(folder)
    real_tops = (os.path.realpath(top) for top in tops if "://" not in top)
    return next((top for top in real_tops if real == top or real.startswith(f"{top.rstrip('/')}/")), None)


def _is_url_within(name: str, tops: Iterable[str]) -> bool:
    """Whether an object is below one of the URLs; Spark, as paths have it, goes up at `..`, and obstore does not."""
    if ".." in name.split("/"):
        return False
    return any(_plain_url(name).startswith(f"{_plain_url(top).rstrip('/')}/") for top in tops if "://" in top)


def _plain_url(url: str) -> str:
    """The URL with the first of the schemes that a service has."""
    scheme, _, rest = url.partition("://")
    return f"{_ONE_SCHEME.get(scheme, scheme)}://{rest}"


def missing(store: Store, names: Sequence[str]) -> list[str]:
    """The files that are not there, in order.

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


def copy(source: Store, name: str, target: Store, path: str) -> FileStatus:
    """Copies a file, in chunks where the target is a local folder, else in one piece; the copy is not durable yet.

    Args:
        source: of the table that names the file.
        name: as `located` takes it.
        path: in the target, where no file is; its folder must exist.

    Raises:
        DataFileMissingError: the file is not there.
        StorageError: it cannot be read or written.
    """
    where, own = located(source, name)
    try:
        with where.open_input(own) as data:
            if isinstance(target, LocalStore):
                with open(target.local_path(path), "xb") as copied:
                    shutil.copyfileobj(data, copied, _PART)
            else:
                target.put(path, data.read())
    except ObjectMissing as error:
        raise DataFileMissingError(f"the data file {name} is not there", details={"path": name}) from error
    except OSError as error:
        raise StorageError(f"copying {name} to {target.root}/{path} failed: {error.strerror or error}") from error
    status = target.status(path)
    if status is None:
        raise StorageError(f"the copy {target.root}/{path} went away")
    return status
