"""Commits bins: files whose rows OPTIMIZE or upkeep has written to other files; without Spark.

If another writer has removed files of some bins meanwhile, the new files of these bins are deleted, and the remaining
bins are still committed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import pyarrow as pa

from dbt.adapters.silt.engine.commands import commit
from dbt.adapters.silt.engine.commands.target import Target, Uncommitted, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, ConcurrentDeleteDeleteError, SiltError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.bins import Bin
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult

OPERATION: Final = "OPTIMIZE"

_logger = logging.getLogger(__name__)


class NewFiles(Uncommitted, Protocol):
    """The files that hold the rows of a bin."""

    @property
    def adds(self) -> tuple[AddFile, ...]: ...


@dataclass(frozen=True, eq=False)
class RewrittenBin:
    """Files that are replaced together, and the files that replace them."""

    files: pa.Table
    written: NewFiles


@dataclass(frozen=True)
class Sizes:
    """The sizes of files, in bytes."""

    of_files: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.of_files)

    def percentile(self, share: float) -> int:
        """Returns a percentile as delta-spark computes it, or 0 without files."""
        ordered = sorted(self.of_files)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0


def files_of(target: Target, bin_: Bin) -> pa.Table:
    """Returns the files of a bin.

    Raises:
        ConcurrentDeleteDeleteError: if another writer has removed some of them.
    """
    found = target.snapshot.active.with_keys([each.key for each in bin_.files])
    if found.num_rows != len(bin_.files):
        raise ConcurrentDeleteDeleteError("another writer has removed files of it", table=target.name)
    return found


def commit_bins(
    target: Target, parameters: Mapping[str, Json], done: Sequence[RewrittenBin], settings: WriteSettings
) -> tuple[CommitResult | None, Sequence[RewrittenBin]]:
    """Commits the bins, without the bins whose files another writer has removed first.

    Args:
        parameters: the parameters of the operation in `commitInfo`.

    Returns:
        The result, if there was anything to commit, and the bins that were committed.

    Raises:
        ConcurrentDeleteDeleteError: if other writers have removed files of every bin.
        Other errors of a commit: see `commands.commit.commit`.
    """
    base, kept = target.snapshot, done
    if not kept and not settings.must_commit:
        return None, kept
    while True:
        try:
            return commit.commit(target.log, base, _changes(target, parameters, kept), ReadSet(), settings), kept
        except CommitStateUnknownError:
            raise
        except ConcurrentDeleteDeleteError:
            newest = target.log.snapshot()
            there = _still_there(newest, kept)
            is_same_table = newest.metadata == base.metadata and newest.protocol == base.protocol
            lost = [each for each, is_there in zip(kept, there, strict=True) if not (is_there and is_same_table)]
            _discard(target, lost)
            if len(lost) in (0, len(kept)):
                _discard(target, [each for each in kept if each not in lost])
                raise
            _logger.info("%s: %d of %d bins were changed by other writers meanwhile", target.name, len(lost), len(done))
            base, kept = newest, [each for each in kept if each not in lost]
        except SiltError:
            _discard(target, kept)
            raise


def _changes(target: Target, parameters: Mapping[str, Json], kept: Sequence[RewrittenBin]) -> Changes:
    now = target.log.clock.now_ms()
    adds = tuple(replace(add, data_change=False) for each in kept for add in each.written.adds)
    removes = tuple(
        add.remove(now, data_change=False) for each in kept for add in target.snapshot.add_files(each.files)
    )
    vectors = [remove.deletion_vector for remove in removes if remove.deletion_vector is not None]
    added = Sizes(tuple(add.size for add in adds))
    metrics = {
        "numAddedFiles": len(adds),
        "numRemovedFiles": len(removes),
        "numAddedBytes": added.total,
        "numRemovedBytes": sum(remove.size or 0 for remove in removes),
        "minFileSize": added.percentile(0),
        "p25FileSize": added.percentile(0.25),
        "p50FileSize": added.percentile(0.5),
        "p75FileSize": added.percentile(0.75),
        "maxFileSize": added.percentile(1),
        "numDeletionVectorsRemoved": len(vectors),
        "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        "numDeletionVectorBytesRemoved": sum(vector.size_in_bytes for vector in vectors),
    }
    return Changes(Operation(OPERATION, parameters, as_strings(metrics)), adds=adds, removes=removes)


def _still_there(snapshot: Snapshot, kept: Sequence[RewrittenBin]) -> list[bool]:
    there = set(active_files.keys_of(snapshot.files).to_pylist())
    return [there.issuperset(active_files.keys_of(each.files).to_pylist()) for each in kept]


def _discard(target: Target, lost: Sequence[RewrittenBin]) -> None:
    for each in lost:
        each.written.discard(target.log)
