"""Pins a consistent cut: the snapshots of several tables that a statement reads as of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot


def consistent_cut(logs: Iterable[DeltaLog]) -> dict[DeltaLog, Snapshot]:
    """One snapshot per table, all of them the newest at one moment since the call began.

    Each is pinned once, and all are pinned again until none has moved in between. A table that was re-created has
    moved.

    Raises:
        The errors of `DeltaLog.snapshot`.
    """
    pinned = {log: log.snapshot() for log in dict.fromkeys(logs)}
    while len(pinned) > 1:
        again = {log: log.snapshot() for log in pinned}
        if _versions(again) == _versions(pinned):
            break
        pinned = again
    return pinned


def _versions(pinned: Mapping[DeltaLog, Snapshot]) -> list[tuple[str, int]]:
    return [(snapshot.metadata.id, snapshot.version) for snapshot in pinned.values()]
