"""The problems that a check of a whole table can find."""

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
    """One problem of a table.

    Attributes:
        what: in the user's terms, without a full stop.
        version: of the log, where the problem is in the log.
        path: of the file, as in the log, where the problem is in a file.
    """

    kind: ProblemKind
    what: str
    version: int | None = None
    path: str | None = None
