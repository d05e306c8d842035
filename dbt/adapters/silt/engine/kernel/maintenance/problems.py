"""What is found wrong with a table when all of it is looked at."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ProblemKind(enum.Enum):
    """What is wrong."""

    LOG_UNREADABLE = "log unreadable"
    COMMIT_MISSING = "commit missing"
    COMMIT_UNREADABLE = "commit unreadable"
    CHECKPOINT_UNREADABLE = "checkpoint unreadable"
    CHECKPOINT_DIFFERS = "checkpoint differs"
    CHECKSUM_DIFFERS = "checksum differs"
    FILE_MISSING = "file missing"
    FILE_SIZE_DIFFERS = "file size differs"
    FILE_UNREADABLE = "file unreadable"
    STATISTICS_DIFFER = "statistics differ"
    DELETION_VECTOR_UNREADABLE = "deletion vector unreadable"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a table.

    Attributes:
        what: in a reader's words, without a full stop.
        version: of the log, where it is the log's.
        path: of the file, as in the log, where it is a file's.
    """

    kind: ProblemKind
    what: str
    version: int | None = None
    path: str | None = None
