"""Reads log compaction files, each of which holds several reconciled commits and may be read instead of them.

Source: the Delta specification, section "Log Compaction Files". delta-spark writes them like checkpoints, without
entries that it considers expired: removals of files older than the retention, and removals of domains. Applied to an
older state, such a file would bring back removed files. So a compaction is read only if no entry can be missing; if
this is in doubt, or the file cannot be read, its commits are read instead.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, InvalidPropertyError
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile, read_commit
from dbt.adapters.silt.engine.kernel.log.log_segment import Compaction
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store, read_whole
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties

_logger = logging.getLogger(__name__)

# A removal has the time of its statement, which may have run for a long time before its commit.
_SHARE_OF_RETENTION = 0.5


@dataclass(frozen=True)
class CompactedCommits(CommitFile):
    """The commits up to `version`, reconciled."""

    reconciled: tuple[Action, ...] = ()

    def actions(self, table: str, with_info: bool = True) -> tuple[Action, ...]:
        return self.reconciled


def read_compaction(
    store: Store, compaction: Compaction, protocol: Protocol | None, metadata: Metadata | None, table: str
) -> CompactedCommits | None:
    """Reads the compaction, or returns None if its commits must be read instead.

    Args:
        protocol, metadata: the table's, before the first of these commits, if that version exists and is readable.

    Raises:
        MissingLogVersionError, CorruptLogError: if reading the first of these commits failed.
        StorageError: if a file cannot be read.
    """
    if compaction.first > 0 and not _may_lack_nothing(store, compaction, protocol, metadata, table):
        return None
    try:
        data = read_whole(store, compaction.status.path, compaction.status)
        actions = CommitFile(compaction.last, data).actions(table)
    except (ObjectMissing, CorruptLogError) as error:
        _logger.warning(
            "%s: %s cannot be read (%s); its commits are read instead", table, compaction.status.name, error
        )
        return None
    if not _is_reconciled(actions) or not _fits(actions, compaction):
        _logger.warning("%s: %s is not a log compaction; its commits are read instead", table, compaction.status.name)
        return None
    return CompactedCommits(compaction.last, data, actions)


def _may_lack_nothing(
    store: Store, compaction: Compaction, protocol: Protocol | None, metadata: Metadata | None, table: str
) -> bool:
    """Returns whether no removal could count as expired when the compaction was written."""
    if protocol is None or metadata is None or has_feature(protocol, "domainMetadata"):
        return False
    first = read_commit(store, compaction.first, table).actions(table)
    stated = next((action.timestamp for action in first if isinstance(action, CommitInfo)), None)
    try:
        retention_ms = TableProperties(metadata.configuration).deleted_file_retention_ms
    except InvalidPropertyError:
        return False
    return stated is not None and compaction.status.modified_ms - stated < retention_ms * _SHARE_OF_RETENTION


def _is_reconciled(actions: tuple[Action, ...]) -> bool:
    """Returns whether there is a single action for each file, domain and so on, as after reconciliation."""
    return bool(actions) and max(Counter(map(_subject, actions)).values()) == 1


def _subject(action: Action) -> tuple[str, str]:
    match action:
        case AddFile() | RemoveFile():
            return "file", file_key(action.path, action.deletion_vector)
        case SetTransaction():
            return action.key, action.app_id
        case DomainMetadata():
            return action.key, action.domain
    return action.key, ""


def _fits(actions: tuple[Action, ...], compaction: Compaction) -> bool:
    """Returns whether it has protocol and metadata exactly if it contains version 0: the other actions need them."""
    made = {type(action) for action in actions} & {Protocol, Metadata}
    return made == {Protocol, Metadata} if compaction.first == 0 else not made
