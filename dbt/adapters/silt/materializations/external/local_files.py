"""Puts external files in place in a file system.

A file is replaced in one step. A folder is replaced in two (the old one is renamed, the new one takes its name),
between which there is none for a moment. Two runs at once write one after the other.
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
from dbt.adapters.silt.engine.statements.resolve.exported_folders import MARKER
from dbt.adapters.silt.materializations.external.marker import Marker, is_data
from dbt.adapters.silt.materializations.external.target import ExternalTarget


def check(target: ExternalTarget) -> None:
    """Passes where the target does not exist, or this model has written it.

    Raises:
        DbtRuntimeError: files of another owner are there.
    """
    if target.path.parent.is_dir():
        with _alone(target.path.parent):
            _check_replaceable(target)


@contextlib.contextmanager
def staged(target: ExternalTarget) -> Iterator[Path]:
    """A hidden folder next to the target, to be made and written; it is gone at the end."""
    target.path.parent.mkdir(parents=True, exist_ok=True)
    hidden = _hidden_sibling(target.path)
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def put_in_place(written: Path, target: ExternalTarget) -> None:
    """Moves what was written in a folder to the target, and replaces what was there.

    Raises:
        DbtRuntimeError: another owner has written files there meanwhile.
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
    """Locks the folder, so that no other run of any process replaces anything in it."""
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
    """Returns the data files in a folder, relative to it."""
    found = (each.relative_to(folder) for each in folder.rglob("*") if each.is_file())
    return frozenset(each.as_posix() for each in found if is_data(each.name))


def _swap(new: Path, current: Path) -> None:
    """Replaces a folder, which is deleted only when the new one is there."""
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
