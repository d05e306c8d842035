"""Pins a consistent cut: the snapshots of several tables that a statement reads as of the same moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot


def consistent_cut(logs: Iterable[DeltaLog]) -> dict[DeltaLog, Snapshot]:
    """Returns a snapshot per table, all of them the newest at the same moment since the call began.

    All tables are pinned, and pinned again until no table has changed in between. A re-created table counts as changed.

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
