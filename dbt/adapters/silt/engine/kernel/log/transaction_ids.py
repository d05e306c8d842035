"""Finds the commit that recorded a transaction identifier.

Source: the Delta specification, section "Transaction Identifiers".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import Json, SetTransaction

_TRUNCATE: Final = "TRUNCATE"
_DELETE: Final = "DELETE"
_NO_CONDITIONS: Final[tuple[Json, ...]] = (None, "", "[]", [])


@dataclass(frozen=True)
class RecordedCommit:
    """The newest commit that recorded a transaction identifier.

    Attributes:
        emptied_at: the newest later version that removed all rows of the table, if any.
    """

    commit: Commit
    emptied_at: int | None = None


def find_commit(log: DeltaLog, app_id: str) -> RecordedCommit | None:
    """Finds the commit that last recorded a transaction identifier, if the log still has it."""
    emptied_at: int | None = None
    for commit in log.newest_commits():
        if any(isinstance(action, SetTransaction) and action.app_id == app_id for action in commit.actions):
            return RecordedCommit(commit, emptied_at)
        if emptied_at is None and _empties(commit):
            emptied_at = commit.version
    return None


def _empties(commit: Commit) -> bool:
    info = commit.info
    if info.operation == _DELETE:
        return info.operation_parameters.get("predicate") in _NO_CONDITIONS
    return info.operation == _TRUNCATE
