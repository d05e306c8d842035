"""One moment of several tables: what a statement that names more than one of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot


def consistent_cut(logs: Iterable[DeltaLog]) -> dict[DeltaLog, Snapshot]:
    """One snapshot a table, such that all were the newest at one moment since the call began.

    They are pinned, and pinned again until none has moved in between; a table that was dropped and made anew has moved.

    Raises:
        The errors of `DeltaLog.snapshot`.
    """
    pinned = {log: log.snapshot() for log in logs}
    while len(pinned) > 1:
        again = {log: log.snapshot() for log in pinned}
        if _versions(again) == _versions(pinned):
            break
        pinned = again
    return pinned


def _versions(pinned: Mapping[DeltaLog, Snapshot]) -> list[tuple[str, int]]:
    return [(snapshot.metadata.id, snapshot.version) for snapshot in pinned.values()]
