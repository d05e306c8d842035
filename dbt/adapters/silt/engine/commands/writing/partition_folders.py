"""Renames the folders of partitions as other writers name them, after Spark has written the files.

Spark names them after the copies that it partitions the rows by (`partitions.copy_names`). A reader that derives
columns from the names of folders, such as Polars, finds no such column in the table. Folders of a local file system are
renamed before any version contains the files. An object store has no folders: a move would copy every file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from dbt.adapters.silt.engine.commands.spark import partitions
from dbt.adapters.silt.engine.kernel.errors import NotWrittenError
from dbt.adapters.silt.engine.kernel.storage.store import Store

Values = Mapping[str, str | None]


def renamed(store: Store, folder: str, files: Mapping[str, Values]) -> dict[str, str]:
    """Renames the folders, and returns the new path of each file, by its old path.

    Args:
        folder: the folder that Spark wrote into.
        files: partition values by the file's path, each by physical name in the order of the folders.

    Raises:
        NotWrittenError: if the file system refuses.
    """
    root = store.local_path(folder)
    if root is None or not os.path.isdir(root):
        return {path: path for path in files}
    moves: dict[str, str] = {}
    paths = {}
    for path, values in files.items():
        *before, name = path.removeprefix(f"{folder}/").split("/")
        after = [_name(column, text) for column, text in values.items()]
        for depth in range(len(before)):
            moves["/".join([*after[:depth], before[depth]])] = "/".join(after[: depth + 1])
        paths[path] = "/".join([folder, *after, name])
    for source, target in moves.items():
        _move(f"{root}/{source}", f"{root}/{target}")
    return paths


def _name(column: str, text: str | None) -> str:
    """Returns the name that Hive, Spark and delta-rs use; the first character of a literal null marker is escaped."""
    value = partitions.SPARK_NULL if text is None else partitions.escaped(text)
    if text == partitions.SPARK_NULL:
        value = f"%{ord(text[0]):02X}{text[1:]}"
    return f"{partitions.escaped(column)}={value}"


def _move(source: str, target: str) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        raise NotWrittenError(f"moving {source} to {target} failed: {error.strerror or error}") from error
