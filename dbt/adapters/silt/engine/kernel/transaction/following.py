"""Lets a transaction follow a winner: adopts the winner's metadata, or takes a bin of upkeep back.

Upkeep commits each bin by itself, and loses to changes of rows. If its commit comes first, the change still commits:
it removes the files that upkeep has written, and adds the old files again, apart from those that it replaces itself.
These are the same rows as if it had rewritten the files of upkeep, and no job of Spark runs again. An OPTIMIZE that a
user asks for is never taken back; delta-spark's automatic compaction is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit

_MARGIN_MS: Final = 60 * 60 * 1000
"""The time that a commit certainly needs less than, from its first look at the winners."""


def without_bin(winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
    """Returns the transaction as a change of the files that upkeep has written, if the winner is upkeep; otherwise, or
    if the bin cannot be taken back, returns it as it is.
    """
    old = _files_of_bin(winner, pending)
    changes = pending.changes
    own = {decode_path(each.path) for each in changes.removes}
    if not own & old.keys() or not _may_take_back(winner, pending):
        return pending
    now_ms = changes.removes[0].deletion_timestamp or 0
    new = tuple(add.remove(now_ms) for add in winner.of(AddFile))
    others = tuple(each for each in changes.removes if decode_path(each.path) not in old)
    again = tuple(replace(add, data_change=True) for path, add in old.items() if path not in own)
    return replace(pending, changes=replace(changes, adds=(*changes.adds, *again), removes=(*others, *new)))


def continued_after(winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
    """Returns the transaction as it continues after a winner that it does not conflict with.

    The winner's protocol, metadata and domains apply to it too, and it knows the winner's files.
    """
    added = {file_key(add.path, add.deletion_vector): add for add in winner.of(AddFile)}
    if added:
        pending = replace(pending, later={**pending.later, **added})
    protocol = next(iter(winner.of(Protocol)), pending.base.protocol)
    metadata = next(iter(winner.of(Metadata)), pending.base.metadata)
    domains = {domain.domain: domain for domain in winner.of(DomainMetadata)}
    if protocol is pending.base.protocol and metadata is pending.base.metadata and not domains:
        return pending
    kept = {name: domain for name, domain in {**pending.base.domains, **domains}.items() if not domain.removed}
    return replace(pending, base=replace(pending.base, protocol=protocol, metadata=metadata, domains=kept))


def _files_of_bin(winner: WinningCommit, pending: PendingCommit) -> dict[str, AddFile]:
    """Returns the files that upkeep has replaced, by their paths; empty if it is not upkeep, or a file is not known."""
    removes = winner.of(RemoveFile)
    if not _is_upkeep(winner):
        return {}
    keys = [file_key(each.path, each.deletion_vector) for each in removes]
    base = pending.base
    known = {file_key(add.path, add.deletion_vector): add for add in base.add_files(base.active.with_keys(keys))}
    found = {**known, **pending.later}
    if not found.keys() >= set(keys):
        return {}
    return {decode_path(found[key].path): found[key] for key in keys}


def _is_upkeep(winner: WinningCommit) -> bool:
    """Returns whether the winner has only moved rows, and no user has asked for it."""
    files: tuple[AddFile | RemoveFile, ...] = (*winner.of(AddFile), *winner.of(RemoveFile))
    parameters: Mapping[str, object] = winner.info.operation_parameters or {}
    is_auto = winner.info.operation == "OPTIMIZE" and parameters.get("auto") in (True, "true")
    return is_auto and not any(each.data_change for each in files)


def _may_take_back(winner: WinningCommit, pending: PendingCommit) -> bool:
    """Returns whether no VACUUM can have deleted the old files, and no reader of changes would see rows moved."""
    changes, properties = pending.changes, pending.base.properties
    if changes.changes_no_data() or (properties.enable_change_data_feed and not changes.change_files):
        return False
    began_ms = min(each.deletion_timestamp or 0 for each in winner.of(RemoveFile))
    now_ms = max(each.deletion_timestamp or 0 for each in changes.removes)
    return max(now_ms - began_ms, 0) + _MARGIN_MS <= properties.deleted_file_retention_ms / 4
