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
"""What opening a file costs, in bytes that could be read instead; as `spark.sql.files.openCostInBytes`."""
_LARGEST: Final = 128 << 20
"""Bytes of the files of a task; a single file may have more. As `spark.sql.files.maxPartitionBytes`."""
_TASKS_OF_A_CORE: Final = 4


@dataclass(frozen=True)
class FilePart(InputPartition):
    """Files that one task reads."""

    files: tuple[AddFile, ...]


@dataclass(frozen=True)
class FeedPart(InputPartition):
    """Files with changes that one task reads."""

    files: tuple[ChangedFile, ...]


def of_files(files: Iterable[AddFile]) -> list[FilePart]:
    """The tasks that read files."""
    return [FilePart(part) for part in _packed(tuple(files), lambda file: file.size)]


def of_changes(files: Iterable[ChangedFile]) -> list[FeedPart]:
    """The tasks that read changes."""
    return [FeedPart(part) for part in _packed(tuple(files), lambda changed: changed.file.size)]


def _packed(files: tuple[T, ...], size_of: Callable[[T], int]) -> Iterator[tuple[T, ...]]:
    """The files in their order, cut where a part has enough."""
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
