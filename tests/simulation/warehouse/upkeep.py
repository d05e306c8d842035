"""Upkeep, OPTIMIZE and CLUSTER BY on a table of small JSON files, by the plans and the commits of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from dbt.adapters.silt.engine.commands.maintenance.rewritten_bins import RewrittenBin, commit_bins, files_of
from dbt.adapters.silt.engine.commands.target import Target, WriteSettings
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import clustering, file_states
from dbt.adapters.silt.engine.kernel.maintenance.bins import Bin
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import TableState
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.clustering import (
    FEATURE,
    PROVIDER,
    clustered_by,
    clustering_columns,
    clustering_domain,
    cube_tags,
)
from dbt.adapters.silt.engine.kernel.table.features import upgraded
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult
from tests.simulation.rows_table import RowsTable

TARGET_SIZE = 70
"""The bytes of a complete file: two files of three rows."""


@dataclass(frozen=True)
class _NewFiles:
    adds: tuple[AddFile, ...]

    def discard(self, log: DeltaLog) -> None:
        for add in self.adds:
            log.store.delete(add.path)


def upkeep(table: RowsTable, target_size: int = TARGET_SIZE) -> CommitResult | None:
    """Writes the best bin of a survey again, as each step of OPTIMIZE TABLES; others may have overtaken the survey."""
    bins = _state(table.snapshot(), target_size).bins()[:1]
    return _rewritten(table, bins, is_upkeep=True) if bins else None


def optimize(table: RowsTable) -> CommitResult | None:
    """Writes all bins again in one commit: of a clustered table as OPTIMIZE, of another as upkeep would."""
    found = _state(table.snapshot())
    bins = clustering.bins(found.files, TARGET_SIZE, eager=True) if found.is_clustered else found.bins()
    return _rewritten(table, bins, is_upkeep=False) if bins else None


def cluster_by(table: RowsTable, columns: Sequence[str] = ("id",)) -> CommitResult:
    """Clusters the files written from now on by these columns, or not at all."""
    base = table.snapshot()
    protocol = upgraded(base.protocol, [FEATURE])
    changes = Changes(
        Operation("CLUSTER BY"),
        protocol=None if protocol == base.protocol else protocol,
        domains=(clustering_domain([(name,) for name in columns]),),
    )
    return table.commit_on(base, changes, ReadSet())


def _state(snapshot: Snapshot, target_size: int = TARGET_SIZE) -> TableState:
    is_clustered = bool(clustering_columns(snapshot.domains))
    return TableState(snapshot.table, file_states.files_of(snapshot), target_size, is_clustered=is_clustered)


def _rewritten(table: RowsTable, bins: Sequence[Bin], *, is_upkeep: bool) -> CommitResult | None:
    target = Target(table.log.name, table.log, table.snapshot())
    done = [RewrittenBin(files_of(target, each), _written(table, target.snapshot, each)) for each in bins]
    table.has_written()
    result, _ = commit_bins(target, {"auto": is_upkeep}, done, WriteSettings(commit=table.settings))
    return result


def _written(table: RowsTable, base: Snapshot, bin_: Bin) -> _NewFiles:
    """Writes the rows of a bin in their order: to a single file, or to the files of a cube."""
    files = list(base.add_files(base.active.with_keys([each.key for each in bin_.files])))
    rows = sorted(table.read(files).items())
    by = clustered_by(base.schema, base.domains)
    if not by:
        return _NewFiles((table.write(dict(rows)),) if rows else ())
    number = max(1, round(sum(add.size for add in files) / TARGET_SIZE))
    tags = cube_tags(bin_.cube or table.log.clock.new_id(), by)
    length = max(1, ceil(len(rows) / number))
    parts = (dict(rows[first : first + length]) for first in range(0, len(rows), length))
    return _NewFiles(tuple(table.write(part, tags=tags, clustering_provider=PROVIDER) for part in parts))
