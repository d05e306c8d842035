"""Offset: the position of a stream in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_NOWHERE: Final = -1
_WHOLE: Final = -1


@dataclass(frozen=True)
class Offset:
    """The position up to which a table was read: a version and, if it was read in part, a number of its files.

    Attributes:
        table: the table's id.
        version: last version; -1 if nothing was read.
        files: number of the version's files that were read; None for all.
        is_snapshot: whether the version's files are all files of the table, not only its added files.
        first: in the offset that ends the first batch, the first version to read, unless the stream begins with the
            whole table.
    """

    table: str
    version: int = _NOWHERE
    files: int | None = None
    is_snapshot: bool = False
    first: int | None = None

    @property
    def is_begin(self) -> bool:
        """Whether nothing was read."""
        return self.version == _NOWHERE

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON that Spark keeps in the checkpoint."""
        return {
            "table": self.table,
            "version": self.version,
            "files": _WHOLE if self.files is None else self.files,
            "snapshot": self.is_snapshot,
            "first": _NOWHERE if self.first is None else self.first,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Offset:
        files, first = body["files"], body["first"]
        return cls(
            body["table"],
            body["version"],
            None if files == _WHOLE else files,
            body["snapshot"],
            None if first == _NOWHERE else first,
        )
