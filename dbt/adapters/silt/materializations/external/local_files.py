"""Puts external files in place in a file system.

A file is replaced in a single step. A folder is replaced in two steps, between which it does not exist: the old folder
is renamed, then the new folder gets its name. Concurrent runs write one after the other.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.catalog.folders.locks import exclusive
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.statements.resolve.stored_code import MARKER
from dbt.adapters.silt.materializations.external.target import ExternalTarget, Marker, is_data


def check(target: ExternalTarget) -> None:
    """Checks that the target does not exist, or that this model has written it.

    Raises:
        DbtRuntimeError: if files of another owner are there.
    """
    if target.path.parent.is_dir():
        with _alone(target.path.parent):
            _check_replaceable(target)


@contextlib.contextmanager
def staged(target: ExternalTarget) -> Iterator[Path]:
    """Yields the path of a hidden folder next to the target, to be created and written; deletes it at the end."""
    target.path.parent.mkdir(parents=True, exist_ok=True)
    hidden = _hidden_sibling(target.path)
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def put_in_place(written: Path, target: ExternalTarget) -> None:
    """Moves the files written to a folder to the target, and replaces the previous files.

    Raises:
        DbtRuntimeError: if another owner has written files there meanwhile.
    """
    with _alone(target.path.parent):
        _check_replaceable(target)
        if target.is_file:
            (part,) = written.glob("part-*")
            os.replace(part, target.path)
        else:
            (written / MARKER).write_bytes(Marker(target.node, _files(written)).data())
            _swap(written, target.path)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder, so that no other run in any process replaces files in it."""
    with exclusive(LocalStore(str(folder)), "", SystemClock(), keep_file=False):
        yield


def _check_replaceable(target: ExternalTarget) -> None:
    path = target.path
    if path.is_symlink():
        raise DbtRuntimeError(f"`{path}` is a symbolic link; name the file or folder that it leads to, or delete it")
    if target.is_file:
        if path.is_dir():
            raise DbtRuntimeError(f"`{path}` is a folder; name another file, or move the folder")
        return
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    marker = _read_marker(path)
    marker.check(target, {path.name} if marker.node is None else _files(path))


def _read_marker(folder: Path) -> Marker:
    try:
        return Marker.read((folder / MARKER).read_bytes())
    except OSError:
        return Marker()


def _files(folder: Path) -> frozenset[str]:
    """Returns the data files in a folder, as relative paths."""
    found = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return frozenset(each.as_posix() for each in found if is_data(each.name))


def _swap(new: Path, current: Path) -> None:
    """Replaces a folder; deletes the old folder after the new folder is in place."""
    if not current.exists():
        os.rename(new, current)
        return
    aside = _hidden_sibling(current)
    os.rename(current, aside)
    try:
        os.rename(new, current)
    except OSError:
        os.rename(aside, current)
        raise
    shutil.rmtree(aside)


def _hidden_sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")
