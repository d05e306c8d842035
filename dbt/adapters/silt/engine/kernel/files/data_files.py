"""Finds and copies data files, which are below the table's folder or elsewhere, like the files of a shallow clone.

A log may name any file that the machine can read. Outside of the table's folder, only files in the folders that the
store allows are accepted: the warehouse's folders, or all folders if the user configured this.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.paths import is_absolute

_WORKERS = 16
_ONE_SCHEME = {"s3a": "s3", "abfss": "abfs"}


class Reach:
    """Locates the files that a table's log names, and checks that the log may name them.

    It remembers resolved folders: use a new `Reach` for each batch of files, because a folder can be replaced by a link
    at any time.

    Args:
        store: the store of the table.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = f"{store.root.rstrip('/')}/"
        self._others: dict[str, Store] = {}

    def located(self, name: str) -> tuple[Store, str]:
        """Returns the store that holds a file, and the file's path in that store, which does not follow links to it.

        Args:
            name: the file's plain name, relative to the table's folder or absolute.

        Raises:
            ExternalPathError: if the table's log may not name files at that location.
            UnsupportedFeatureError: if the file is in another storage.
        """
        if name.startswith(self._folder):
            name = name.removeprefix(self._folder)
        if not is_absolute(name) and (".." not in name.split("/") or not self._store.is_local):
            check_reach(self._store, name)
            return self._store, name
        whole = name if is_absolute(name) else f"{self._folder}{name}"
        above, _, own = whole.rpartition("/")
        if above not in self._others:
            self._others[above] = self._other(above, name)
        return self._others[above], own

    def _other(self, folder: str, name: str) -> Store:
        """Returns the store of another folder that holds the file."""
        check_reach(self._store, name)
        if folder.startswith("/") or not folder:
            return _local_folder(folder or "/", self._store)
        if self._store.elsewhere is not None:
            return self._store.elsewhere(folder)
        raise errors.UnsupportedFeatureError(
            f"the file {name} is in a different storage from the table",
            remedy="Copy the table with the engine that created it",
        )


def located(store: Store, name: str) -> tuple[Store, str]:
    """Returns the store that holds a file, and the file's path in that store; see `Reach.located`."""
    return Reach(store).located(name)


def check_reach(store: Store, name: str) -> None:
    """Checks that a table's log may name this file; the file may still be a link, which stores do not follow.

    Args:
        store: the store of the table.
        name: the file's plain name, relative to the table's folder or absolute.

    Raises:
        ExternalPathError: if the file is neither in the table's folder nor in a folder that the store allows.
    """
    if store.allowed is None:
        return
    if not is_absolute(name) and ".." not in name.split("/"):
        return
    whole = name if is_absolute(name) else f"{store.root}/{name}"
    tops = (store.root, *store.allowed)
    if _is_url_within(whole, tops) if "://" in whole else _top_of(os.path.dirname(whole), tops) is not None:
        return
    raise errors.ExternalPathError(
        f"the log names the file {name}, which is neither in the table's folder nor in the warehouse",
        table=store.root,
        details={"path": name},
    )


def is_allowed(store: Store) -> bool:
    """Returns whether the folder of this store, with links resolved, is in a folder that the store allows."""
    if store.allowed is None:
        return True
    return _is_url_within(store.root, store.allowed) or _top_of(store.root, store.allowed) is not None


def _local_folder(folder: str, store: Store) -> LocalStore:
    """Returns the store of a folder that `check_reach` accepted; links below the allowed folder are not followed."""
    if store.allowed is None:
        return LocalStore(folder)
    real = os.path.realpath(folder)
    top = _top_of(real, (store.root, *store.allowed))
    return LocalStore(top or real, store.allowed).child("" if top is None else real.removeprefix(top).lstrip("/"))


def _top_of(folder: str, tops: Iterable[str]) -> str | None:
    """Returns the resolved folder among `tops` that contains the folder, if any."""
    real = os.path.realpath(folder)
    real_tops = (os.path.realpath(top) for top in tops if "://" not in top)
    return next((top for top in real_tops if real == top or real.startswith(f"{top.rstrip('/')}/")), None)


def _is_url_within(name: str, tops: Iterable[str]) -> bool:
    """Returns whether an object is below any of the URLs; `..` is refused: Spark resolves it, obstore does not."""
    if ".." in name.split("/"):
        return False
    return any(_plain_url(name).startswith(f"{_plain_url(top).rstrip('/')}/") for top in tops if "://" in top)


def _plain_url(url: str) -> str:
    """Replaces a scheme that is an alias by the service's usual scheme, such as `s3a` by `s3`."""
    scheme, _, rest = url.partition("://")
    return f"{_ONE_SCHEME.get(scheme, scheme)}://{rest}"


def missing(store: Store, names: Sequence[str]) -> list[str]:
    """Returns the missing files, in order.

    Args:
        names: names as for `located`.

    Raises:
        StorageError: if the storage failed.
    """
    with ThreadPoolExecutor(_WORKERS) as pool:
        there = pool.map(functools.partial(_is_there, store), names)
        return [name for name, is_there in zip(names, there, strict=True) if not is_there]


def _is_there(store: Store, name: str) -> bool:
    where, path = located(store, name)
    return where.status(path) is not None


def copy(source: Store, name: str, target: Store, path: str) -> FileStatus:
    """Copies a file, in chunks if the target is a local folder, or else as a whole; the copy is not durable yet.

    Args:
        source: the store of the table that names the file.
        name: a name as for `located`.
        path: a path in the target without a file; its folder must exist.

    Raises:
        DataFileMissingError: if the file is missing.
        StorageError: if the file cannot be read or written.
    """
    where, own = located(source, name)
    try:
        with where.open_input(own) as data:
            target.copy_in(path, data)
    except ObjectMissing as error:
        raise errors.DataFileMissingError(f"the data file {name} is missing", details={"path": name}) from error
    except OSError as error:
        raise errors.StorageError(
            f"copying {name} to {target.root}/{path} failed: {error.strerror or error}"
        ) from error
    status = target.status(path)
    if status is None:
        raise errors.StorageError(f"the copy {target.root}/{path} disappeared after it was written")
    return status


def in_data_file(error: errors.SiltError, name: str, table: str, version: int | None) -> errors.SiltError:
    """Returns an error with the data file, the table and the version in which it was found.

    Args:
        name: the file's plain name.
    """
    return type(error)(
        f"the data file {name}: {error.problem}",
        remedy=error.action,
        table=table,
        version=version,
        details={**error.details, "path": name},
    )
