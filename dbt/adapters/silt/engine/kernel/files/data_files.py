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


def located(store: Store, name: str) -> tuple[Store, str]:
    """The store that a file is in, and its path in that store.

    Args:
        store: of the table that names the file.
        name: the file's plain name: relative to the table's folder, or absolute.

    Raises:
        ExternalPathError: the file is where no file of a table may be.
        UnsupportedFeatureError: the file is in another storage.
    """
    check_reach(store, name)
    folder = f"{store.root.rstrip('/')}/"
    if not is_absolute(name):
        return store, name
    if name.startswith(folder):
        return store, name.removeprefix(folder)
    above, _, own = name.rpartition("/")
    if name.startswith("/"):
        return LocalStore(above or "/"), own
    if isinstance(store, (LocalStore, ObjectStore)) and store.elsewhere is not None:
        return store.elsewhere(above), own
    raise UnsupportedFeatureError(
        f"the file {name} is in another storage than the table", remedy="Copy the table with the engine that made it"
    )


def check_reach(store: Store, name: str) -> None:
    """Passes where the log of a table may name this file.

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
    if _is_url_within(whole, tops) if "://" in whole else _is_path_within(whole, tops):
        return
    raise ExternalPathError(
        f"the log names the file {name}, which is neither in the table's folder nor in the warehouse",
        table=store.root,
        details={"path": name},
    )


def _is_path_within(name: str, tops: Iterable[str]) -> bool:
    folder = _real(os.path.dirname(name))
    real = (_real(top) for top in tops if "://" not in top)
    return any(folder == top or folder.startswith(f"{top.rstrip('/')}/") for top in real)


def _is_url_within(name: str, tops: Iterable[str]) -> bool:
    """Whether an object is below one of the URLs; Spark, as paths have it, goes up at `..`, and obstore does not."""
    if ".." in name.split("/"):
        return False
    return any(_plain_url(name).startswith(f"{_plain_url(top).rstrip('/')}/") for top in tops if "://" in top)


def _plain_url(url: str) -> str:
    """The URL with the first of the schemes that a service has."""
    scheme, _, rest = url.partition("://")
    return f"{_ONE_SCHEME.get(scheme, scheme)}://{rest}"


@functools.lru_cache(maxsize=4096)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


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
