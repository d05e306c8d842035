"""Adds the files of a table to another table: by absolute path (shallow clone), or as copies (deep clone)."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.commands.commit import discarded_on_error
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.files import data_files, file_guard, z85
from dbt.adapters.silt.engine.kernel.files.deletion_vectors import IN_FILE, IN_FILE_OF_ABSOLUTE_PATH, file_name
from dbt.adapters.silt.engine.kernel.files.file_guard import Contradiction, Expected
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.progress import Progress, counted, silent
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, decode_path, log_path

_WORKERS: Final = 8


@dataclass(frozen=True)
class _Copy:
    """A file to copy: its name in the source, and its path in the target."""

    name: str
    path: str


def referred(root: str, adds: Iterable[AddFile]) -> tuple[AddFile, ...]:
    """Returns the files with absolute paths, so that another table can refer to them.

    Args:
        root: the folder of the files' table.
    """
    return tuple(
        _as_target_file(add, absolute_uri(root, add.path), _absolute_vector(root, add.deletion_vector)) for add in adds
    )


def copied(source: Store, snapshot: Snapshot, target: DeltaLog, progress: Progress = silent) -> Written:
    """Copies the snapshot's data files, and the files of their deletion vectors, into a new folder of the target.

    Partition folders are kept; files of the same name get different names. On failure, the copies are deleted.

    Args:
        source: the store of the snapshot's table.
        progress: receives the number of copied files.

    Raises:
        DataFileMissingError, DataFileChangedError: if a file is missing, or its size differs from the log.
        StorageError: if a file cannot be copied.
    """
    folder, chosen = target.clock.new_id(), list(snapshot.add_files())
    names = _target_names(folder, [decode_path(add.path) for add in chosen])
    vectors = _target_vectors(folder, target, chosen)
    copies = [_Copy(decode_path(add.path), name) for add, name in zip(chosen, names, strict=True)]
    copies += [_Copy(name, str(file_name(vector))) for name, vector in vectors.items()]
    with discarded_on_error(target, (Written(folder, (), 0),)):
        found = _copy_all(source, target.store, copies, progress)
        for add, name in zip(chosen, names, strict=True):
            expected = Expected(decode_path(add.path), add.size, add.modification_time, add.stats)
            if problem := file_guard.size_problem(expected, found[name][0]):
                path = absolute_name(source.root, expected.name)
                raise file_guard.changed(Contradiction(problem), path, snapshot.table, snapshot.version)
    done = []
    for add, name in zip(chosen, names, strict=True):
        of_target = _as_target_file(add, log_path(name), _moved_vector(add.deletion_vector, vectors))
        size, modified_ms = found[name]
        done.append(replace(of_target, size=size, modification_time=modified_ms))
    return Written(folder, tuple(done), 0)


def absolute_uri(root: str, path: str) -> str:
    """Returns the absolute path, in the log's form, of a file that the log of the table at `root` names."""
    name = absolute_name(root, path)
    return f"file://{log_path(name)}" if name.startswith("/") else log_path(name)


def _as_target_file(add: AddFile, path: str, vector: DeletionVector | None) -> AddFile:
    """Returns the file for another table, without the source's row ids and commit version, as in delta-spark."""
    return replace(
        add,
        path=path,
        deletion_vector=vector,
        data_change=True,
        base_row_id=None,
        default_row_commit_version=None,
    )


def _absolute_vector(root: str, vector: DeletionVector | None) -> DeletionVector | None:
    name = None if vector is None else file_name(vector)
    if vector is None or name is None or vector.storage_type == IN_FILE_OF_ABSOLUTE_PATH:
        return vector
    path = absolute_uri(root, log_path(name))
    return replace(vector, storage_type=IN_FILE_OF_ABSOLUTE_PATH, path_or_inline_dv=path)


def _target_names(folder: str, names: list[str]) -> list[str]:
    taken: set[str] = set()
    found = []
    for position, name in enumerate(names):
        *above, own = name.split("/")
        partitions = [part for part in above if "=" in part]
        path = "/".join((folder, *partitions, own))
        if path in taken:
            path = "/".join((folder, *partitions, f"{position}-{own}"))
        taken.add(path)
        found.append(path)
    return found


def _target_vectors(folder: str, target: DeltaLog, adds: list[AddFile]) -> dict[str, DeletionVector]:
    """Maps each file of deletion vectors in the source to a descriptor of its copy."""
    vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
    named = {name: vector for vector in vectors if (name := file_name(vector)) is not None}
    return {
        name: replace(vector, storage_type=IN_FILE, path_or_inline_dv=_new_name(folder, target))
        for name, vector in named.items()
    }


def _new_name(folder: str, target: DeltaLog) -> str:
    return folder + z85.encode(uuid.UUID(target.clock.new_id()).bytes)


def _moved_vector(vector: DeletionVector | None, copies: dict[str, DeletionVector]) -> DeletionVector | None:
    name = None if vector is None else file_name(vector)
    if vector is None or name is None:
        return vector
    return replace(vector, storage_type=IN_FILE, path_or_inline_dv=copies[name].path_or_inline_dv)


def _copy_all(source: Store, target: Store, copies: list[_Copy], progress: Progress) -> dict[str, tuple[int, int]]:
    """Copies the files, and returns the size and modification time of each copy, by its path."""
    for folder in dict.fromkeys(each.path.rpartition("/")[0] for each in copies):
        target.make_folder(folder)
    with ThreadPoolExecutor(_WORKERS) as pool:
        done = pool.map(functools.partial(_copy, source, target), copies)
        found = list(counted(done, progress, "files copied", len(copies)))
    target.make_durable([each.path for each in copies])
    return {each.path: sizes for each, sizes in zip(copies, found, strict=True)}


def _copy(source: Store, target: Store, each: _Copy) -> tuple[int, int]:
    status = data_files.copy(source, each.name, target, each.path)
    return status.size, status.modified_ms
