"""Limits of the batches of a stream, which PySpark has since 4.2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dbt.adapters.silt.engine.datasource.options import Options, at_most_one
from dbt.adapters.silt.engine.datasource.pyspark_classes import streaming
from dbt.adapters.silt.engine.datasource.reading.portions import StreamFile
from dbt.adapters.silt.engine.kernel.scan.changed_files import ChangedFile

ReadLimit: TypeAlias = Any
"""A limit of PySpark."""


def has_limits() -> bool:
    """Returns whether this PySpark has limits."""
    return hasattr(streaming, "ReadMaxFiles")


def limit_of(options: Options) -> ReadLimit:
    """Returns the limit in the options, or None if this PySpark does not support limits.

    Raises:
        InvalidArgumentError: if two limits are given.
    """
    at_most_one(options, ("maxFilesPerTrigger", "maxBytesPerTrigger"))
    if not has_limits():
        return None
    files, size = options.number("maxFilesPerTrigger"), options.number("maxBytesPerTrigger")
    if files is not None:
        return streaming.ReadMaxFiles(files)
    return streaming.ReadAllAvailable() if size is None else streaming.ReadMaxBytes(size)


@dataclass(frozen=True)
class Limit:
    """The number of files, or of bytes, that a batch has room for; None for any number.

    Attributes:
        is_empty: whether the batch is still empty and has room for a file of any size.
    """

    files: int | None = None
    size: int | None = None
    is_empty: bool = True

    @classmethod
    def of(cls, given: ReadLimit) -> Limit:
        """Converts a limit of PySpark."""
        return cls(getattr(given, "max_files", None), getattr(given, "max_bytes", None))

    @property
    def is_none(self) -> bool:
        return self.files is None and self.size is None

    @property
    def has_room(self) -> bool:
        return self.is_empty or ((self.files is None or self.files > 0) and (self.size is None or self.size > 0))

    def less(self, file: StreamFile) -> Limit:
        """Returns the remaining room after a file."""
        held = file.file.size if isinstance(file, ChangedFile) else file.size
        return replace(
            self,
            files=None if self.files is None else self.files - 1,
            size=None if self.size is None else self.size - held,
            is_empty=False,
        )
