"""Divides the files of a read among Spark's tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from pyspark.sql.datasource import InputPartition

from dbt.adapters.silt.engine.kernel.scan.changed_files import ChangedFile
from dbt.adapters.silt.engine.kernel.table.actions import AddFile

T = TypeVar("T")

_OPENING: Final = 4 << 20
"""The cost of opening a file, in bytes that could be read meanwhile; as `spark.sql.files.openCostInBytes`."""
_LARGEST: Final = 128 << 20
"""The most bytes in the files of a task, except for a single file; as `spark.sql.files.maxPartitionBytes`."""
_TASKS_OF_A_CORE: Final = 4


@dataclass(frozen=True)
class FilePart(InputPartition):
    """The files of a task."""

    files: tuple[AddFile, ...]


@dataclass(frozen=True)
class FeedPart(InputPartition):
    """The files with changes of a task."""

    files: tuple[ChangedFile, ...]


def of_files(files: Iterable[AddFile]) -> list[FilePart]:
    """Returns the tasks that read files."""
    return [FilePart(part) for part in _packed(tuple(files), lambda file: file.size)]


def of_changes(files: Iterable[ChangedFile]) -> list[FeedPart]:
    """Returns the tasks that read changes."""
    return [FeedPart(part) for part in _packed(tuple(files), lambda changed: changed.file.size)]


def _packed(files: tuple[T, ...], size_of: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    """Yields the files in order, divided into parts of limited cost."""
    costs = [size_of(file) + _OPENING for file in files]
    most = min(_LARGEST, max(_OPENING, sum(costs) // (_TASKS_OF_A_CORE * (os.cpu_count() or 1))))
    part: list[T] = []
    held = 0
    for file, cost in zip(files, costs, strict=True):
        if part and held + cost > most:
            yield tuple(part)
            part, held = [], 0
        part.append(file)
        held += cost
    if part:
        yield tuple(part)
