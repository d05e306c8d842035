"""Defines the problems that a check of a whole table can find."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ProblemKind(enum.Enum):
    """The kind of a problem."""

    LOG_UNREADABLE = "log unreadable"
    COMMIT_MISSING = "commit missing"
    COMMIT_UNREADABLE = "commit unreadable"
    CHECKPOINT_UNREADABLE = "checkpoint unreadable"
    CHECKPOINT_DIFFERS = "checkpoint differs"
    CHECKSUM_DIFFERS = "checksum differs"
    NAME_TAKEN = "name taken"
    FILE_MISSING = "file missing"
    FILE_SIZE_DIFFERS = "file size differs"
    FILE_OUTSIDE = "file outside"
    FILE_UNREADABLE = "file unreadable"
    STATISTICS_DIFFER = "statistics differ"
    DELETION_VECTOR_UNREADABLE = "deletion vector unreadable"


@dataclass(frozen=True)
class Problem:
    """A problem of a table.

    Attributes:
        what: the description in the user's terms, without a full stop.
        version: the log's version, if the problem is in the log.
        path: the file's path as in the log, if the problem is in a file.
    """

    kind: ProblemKind
    what: str
    version: int | None = None
    path: str | None = None
