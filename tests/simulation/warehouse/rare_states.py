"""Names the rare states that the simulation must reach: each is a situation in which a wrong engine would lose data."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentDeleteDeleteError,
    ConcurrentDropError,
    ConcurrentModificationError,
    ConcurrentTransactionError,
)

if TYPE_CHECKING:
    from tests.simulation.warehouse.oracle import Attempt, Version

LOST_ANSWER = "a commit was written, and its answer was lost"
LATE_COMMIT = "a commit was written after its writer had given up"
TOO_LATE_COMMIT = "a late commit found its version taken"
CLOCK_BACK = "a clock was set back"
EARLIER_TIME = "a commit has an earlier time than the version before it"
CRASH_AFTER_COMMIT = "a process crashed after its commit was written"
CRASH_BEFORE_COMMIT = "a process crashed before its commit was written"
UNKNOWN_COMMITTED = "an unknown outcome was a commit"
UNKNOWN_NOT_COMMITTED = "an unknown outcome was no commit"
WINNERS_CLEANED_UP = "the winners of a transaction were cleaned up"
CLEANED_UP_VERSION = "a version was written again after it was cleaned up"
DROPPED = "a writer's table was dropped"
SAME_UNIT = "two processes did the same unit of work"
CONFLICTS_IN_A_ROW = "a statement conflicted three times in a row"
ATTEMPTS_IN_A_ROW = "a commit lost two attempts in a row"
CHECKPOINT_AT_DROP = "a table was dropped during its checkpoint"
OLD_VERSION_GONE = "an old version was cleaned up while it was read"
VECTOR_REPLACED = "a deletion vector was replaced"
SAME_FILE = "two processes changed rows of the same file"
FEATURE_TURNED_ON = "a transaction continued after a winner that turned on a table feature"
TIME_CORRECTED = "an in-commit timestamp was later than its writer's clock"
TAKEN_BACK = "a bin of upkeep was taken back"
FAULTS_ENDED = "faults ended in the middle of statements"

ALL = tuple(value for name, value in dict(globals()).items() if name.isupper() and isinstance(value, str))


def missing(counts: Mapping[str, int]) -> list[str]:
    """Returns the states that were not reached."""
    return [state for state in ALL if not counts.get(state)]


def of_failure(error: Exception) -> str | None:
    """Returns the state that the failure of a statement shows."""
    if isinstance(error, ConcurrentDropError):
        return DROPPED
    if isinstance(error, ConcurrentDeleteDeleteError):
        return SAME_FILE
    if isinstance(error, ConcurrentTransactionError):
        return SAME_UNIT
    if type(error) is ConcurrentModificationError and "logRetentionDuration" in str(error):
        return WINNERS_CLEANED_UP
    return None


def of_attempts(attempts: Sequence[Attempt], landed: Mapping[int, Version]) -> Counter[str]:
    """Counts the states that only the whole history shows.

    Args:
        landed: the version of each attempt that was committed, by its number.
    """
    pairs = {
        ("crashed", True): CRASH_AFTER_COMMIT,
        ("crashed", False): CRASH_BEFORE_COMMIT,
        ("unknown", True): UNKNOWN_COMMITTED,
        ("unknown", False): UNKNOWN_NOT_COMMITTED,
    }
    found = ((attempt.outcome or "", attempt.number in landed) for attempt in attempts)
    return Counter(pairs[each] for each in found if each in pairs)


def of_log(log: Sequence[Version]) -> Counter[str]:
    """Counts the states that the commits of one table show."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for before, after in itertools.pairwise(log):
        seen |= before.files.keys()
        counts[TAKEN_BACK] += bool(seen & (after.added.keys() - before.files.keys()))
        counts[EARLIER_TIME] += _time(after.info, "timestamp") < _time(before.info, "timestamp")
        counts[TIME_CORRECTED] += _time(after.info, "inCommitTimestamp") > _time(after.info, "timestamp") + 60_000
        counts[VECTOR_REPLACED] += len(after.vectors_removed & after.vectors.keys())
        read = after.info.get("readVersion", before.landing.version)
        counts[FEATURE_TURNED_ON] += any(each.features != after.features for each in log[read : before.landing.version])
    return +counts


def _time(info: Mapping[str, Any], name: str) -> int:
    return int(info.get(name) or 0)
