"""Checks whether a commit that came first conflicts with a transaction.

The checks run for each winning commit, oldest first; each raises its own error. In the matrix a row is a change that
the winners have committed, a column is a kind of transaction, and an entry is the error, with the isolation levels that
it is raised under (S Serializable, W WriteSerializable, I SnapshotIsolation), unless it is raised under all. "Read"
means that the transaction may have read rows of the file (`ReadSet`), by the file's partition values and statistics;
"rewritten" means that this transaction removes the file too.

| winner has                  | append | insert | rewrite        | overwrite      | rearrange | alter | constrain |
|-----------------------------|--------|--------|----------------|----------------|-----------|-------|-----------|
| nothing                     | ok     | ok     | ok             | ok             | ok        | ok    | ok        |
| drop                        | Drop   | Drop   | Drop           | Drop           | Drop      | Drop  | Drop      |
| another table's id          | Drop   | Drop   | Drop           | Drop           | Drop      | Drop  | Drop      |
| protocol, features lost     | Proto  | Proto  | Proto          | Proto          | Proto     | Proto | Proto     |
| protocol, features added    | ok     | ok     | ok             | ok             | ok        | ok    | Proto     |
| metadata                    | Meta   | Meta   | Meta           | Meta           | Meta      | Meta  | Meta      |
| metadata, feature turned on | ok     | ok     | ok             | ok             | ok        | Meta  | Meta      |
| metadata, identity mark     | ok     | ok     | ok             | ok             | ok        | Meta  | Meta      |
| domain set by both          | Dom    | Dom    | Dom            | Dom            | Dom       | Dom   | Dom       |
| domain set by winner        | ok     | ok     | ok             | ok             | ok        | ok    | ok        |
| transaction id of both      | Txn    | Txn    | Txn            | Txn            | Txn       | Txn   | Txn       |
| transaction id of another   | ok     | ok     | ok             | ok             | ok        | ok    | ok        |
| blind append, read          | ok     | Add S  | Add S          | Add S          | ok        | ok    | Add       |
| blind append, not read      | ok     | ok     | ok             | Add S          | ok        | ok    | Add       |
| append, read                | ok     | Add SW | Add SW         | Add SW         | ok        | ok    | Add       |
| append, not read            | ok     | ok     | ok             | Add SW         | ok        | ok    | Add       |
| append without statistics   | ok     | Add SW | Add SW         | Add SW         | ok        | ok    | Add       |
| append, another partition   | ok     | ok     | ok             | Add SW         | ok        | ok    | Add       |
| remove, rewritten           | ok     | Del SW | Del SW Twice I | Del SW Twice I | Twice     | ok    | Del       |
| remove, read                | ok     | Del SW | Del SW         | Del SW Twice I | ok        | ok    | Del       |
| remove, not read            | ok     | ok     | ok             | Del SW Twice I | ok        | ok    | Del       |
| vector, rewritten           | ok     | Add SW | Add SW Twice I | Add SW Twice I | Twice     | ok    | Add       |
| vector, read                | ok     | Add SW | Add SW         | Add SW Twice I | ok        | ok    | Add       |
| vector, not read            | ok     | ok     | ok             | Add SW Twice I | ok        | ok    | Add       |
| move, rewritten             | ok     | ok     | Twice          | Twice          | Twice     | ok    | ok        |
| move, read                  | ok     | ok     | ok             | Twice          | ok        | ok    | ok        |
| move, not read              | ok     | ok     | ok             | Twice          | ok        | ok    | ok        |
| upkeep, rewritten           | ok     | ok     | ok             | ok             | Twice     | ok    | ok        |
| move, then remove, read     | ok     | Del SW | Del SW         | Twice          | ok        | ok    | Del       |
| move, then remove, not read | ok     | ok     | ok             | Twice          | ok        | ok    | Del       |

Kinds of transactions: `append` is a blind append; `insert` adds rows that depend on its reads; `rewrite` is DELETE,
UPDATE and MERGE; `overwrite` removes all files; `rearrange` has dataChange=false (OPTIMIZE), reads rows only to
write them to other files, and so runs under SnapshotIsolation regardless of the table's level; `alter` changes
metadata; `constrain` changes metadata and has read all rows, like a new CHECK constraint or REPLACE TABLE: it applies
to the rows of every other writer, so it runs under Serializable regardless of the table's level. In the rows, `vector`
means that the winner replaces a file's deletion vector, `move` that it rewrites a file with dataChange=false, and
`upkeep` that it does so by itself (`following.py`).

The errors: ConcurrentDropError, ProtocolChangedError, MetadataChangedError, ConcurrentDomainError,
ConcurrentTransactionError, ConcurrentAppendError (Add), ConcurrentDeleteReadError (Del), ConcurrentDeleteDeleteError
(Twice).

A commit that adds rows under an enforced key has read that no row has these keys: under every level, a winner that has
added a row with the same key is a conflict (ConcurrentKeyError; `enforced_keys.py`).

A transaction that has read every transaction identifier, such as RESTORE or the replacement of a whole table, conflicts
with every winner that records a transaction identifier ("Txn SWI").

These checks are finer than delta-spark's, which treat every added file as read unless a partition predicate excludes
it, and in which readers conflict with commits with dataChange=false.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication_marks import OF_TABLES
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import actions, active_files
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN
from dbt.adapters.silt.engine.kernel.table.expressions import Or
from dbt.adapters.silt.engine.kernel.table.features import check_writable
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import DROP_OPERATION, Changes
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit, conflict
from dbt.adapters.silt.engine.kernel.transaction.enablement import only_enables
from dbt.adapters.silt.engine.kernel.transaction.following import continued_after, without_bin
from dbt.adapters.silt.engine.kernel.transaction.validation import loses_features


def effective_isolation_level(level: IsolationLevel, changes: Changes) -> IsolationLevel:
    """Returns the isolation level that a transaction runs under.

    A transaction that only moves rows between files needs only snapshot isolation. A transaction that changes the
    table's metadata because of rows that it read must not miss a row that violates the new rule.
    """
    if changes.changes_no_data():
        return IsolationLevel.SNAPSHOT
    return level if changes.metadata is None else IsolationLevel.SERIALIZABLE


def check_conflicts(winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
    """Checks that the transaction may commit after the winner as if it had begun after it.

    Returns:
        The transaction to check against the next winner: the rows that it read may be in other files now.

    Raises:
        ConcurrentModificationError: if a check fails; a subclass for each check, with the details that
            `competing_commits.conflict` lists.
        UnsupportedFeatureError: if the table now needs a feature that this engine does not have.
    """
    check_drop(winner, pending)
    check_protocol(winner, pending)
    check_metadata(winner, pending)
    check_domains(winner, pending)
    check_transactions(winner, pending)
    check_added_files(winner, pending)
    check_removed_files_were_not_read(winner, pending)
    pending = without_bin(winner, pending)
    check_removed_files_are_not_removed_again(winner, pending)
    moved = _moved_reads(winner, pending)
    if moved:
        pending = replace(pending, reads=replace(pending.reads, paths=pending.reads.paths | moved))
    return continued_after(winner, pending)


def check_drop(winner: WinningCommit, pending: PendingCommit) -> None:
    """Raises an error if the table that was read was dropped, even if another table has its name now."""
    has_other_id = any(metadata.id != pending.base.metadata.id for metadata in winner.of(actions.Metadata))
    if winner.info.operation == DROP_OPERATION or has_other_id:
        raise conflict(errors.ConcurrentDropError, "dropped or re-created the table", winner, pending)


def check_protocol(winner: WinningCommit, pending: PendingCommit) -> None:
    for protocol in winner.of(actions.Protocol):
        check_writable(protocol, pending.base.table)
        if pending.changes.protocol is not None or loses_features(pending.base.protocol, protocol):
            raise conflict(errors.ProtocolChangedError, "changed the table's protocol", winner, pending)


def check_metadata(winner: WinningCommit, pending: PendingCommit) -> None:
    """Raises an error if metadata changed that the transaction's files depend on; enabling a feature is allowed."""
    protocol = next(iter(winner.of(actions.Protocol)), pending.base.protocol)
    for metadata in winner.of(actions.Metadata):
        if pending.changes.metadata is not None or not only_enables(pending.base.metadata, metadata, protocol):
            what = "changed the table's schema, properties or partitioning"
            raise conflict(errors.MetadataChangedError, what, winner, pending)
        check_writable(protocol, pending.base.table, metadata)


def check_domains(winner: WinningCommit, pending: PendingCommit) -> None:
    """Raises an error if both set a domain, or if files were clustered by columns that the winner changes."""
    set_by_pending = {domain.domain for domain in pending.changes.domains}
    if pending.changes.changes_no_data() and any(add.clustering_provider for add in pending.changes.adds):
        set_by_pending.add(CLUSTERING_DOMAIN)
    both = sorted(set_by_pending & {domain.domain for domain in winner.of(actions.DomainMetadata)})
    if both:
        raise conflict(errors.ConcurrentDomainError, f"set the domain {', '.join(both)}", winner, pending)


def check_transactions(winner: WinningCommit, pending: PendingCommit) -> None:
    set_by_pending = {each.app_id for each in (*pending.changes.transactions, *pending.changes.forgotten)}
    set_by_winner = {transaction.app_id for transaction in winner.of(actions.SetTransaction)} - OF_TABLES
    both = sorted(set_by_winner if pending.reads.transactions else set_by_pending & set_by_winner)
    if both:
        what = f"recorded the transaction identifier {', '.join(both)} too"
        raise conflict(errors.ConcurrentTransactionError, what, winner, pending)


def check_added_files(winner: WinningCommit, pending: PendingCommit) -> None:
    """Raises an error if the winner added a row that the transaction would have read."""
    if pending.isolation_level is IsolationLevel.SNAPSHOT:
        return
    if pending.isolation_level is IsolationLevel.WRITE_SERIALIZABLE and winner.info.is_blind_append:
        return
    added = [add for add in winner.of(actions.AddFile) if add.data_change]
    files = _matching_adds(added, pending)
    if files:
        what = "added files that may hold rows which it would have read"
        raise conflict(errors.ConcurrentAppendError, what, winner, pending, files)


def check_removed_files_were_not_read(winner: WinningCommit, pending: PendingCommit) -> None:
    """Raises an error if the winner removed or changed a row that the transaction has read."""
    if pending.isolation_level is IsolationLevel.SNAPSHOT:
        return
    removed = [remove for remove in winner.of(actions.RemoveFile) if remove.data_change]
    files = _read_among(removed, pending)
    if files:
        raise conflict(errors.ConcurrentDeleteReadError, "removed files that it has read", winner, pending, files)


def check_removed_files_are_not_removed_again(winner: WinningCommit, pending: PendingCommit) -> None:
    """Raises an error if a row that the winner removed would reappear, or a row that it moved would be duplicated."""
    rewritten = {decode_path(remove.path) for remove in pending.changes.removes}
    files = [remove for remove in winner.of(actions.RemoveFile) if decode_path(remove.path) in rewritten]
    if files:
        what = "removed files that it removes or rewrites too"
        raise conflict(errors.ConcurrentDeleteDeleteError, what, winner, pending, files)


def _matching_adds(added: Sequence[actions.AddFile], pending: PendingCommit) -> list[actions.AddFile]:
    """Returns the files that may have rows that the transaction would have read."""
    if pending.reads.whole_table:
        return list(added)
    if not added or not pending.reads.predicates:
        return []
    answers = skipping.might_match(added, pending.base.metadata, Or(pending.reads.predicates))
    return [add for add, answer in zip(added, answers, strict=True) if answer is skipping.ROWS_MIGHT_MATCH]


def _read_among(removed: Sequence[actions.RemoveFile], pending: PendingCommit) -> list[actions.RemoveFile]:
    """Returns the files that the transaction has read.

    A file that is not in the base was added by an earlier winner and was checked then: either it has no row that was
    read, or it received rows that were read and is among the read paths now.
    """
    if pending.reads.whole_table:
        return list(removed)
    looked_into = {decode_path(path) for path in pending.reads.paths}
    found = [remove for remove in removed if decode_path(remove.path) in looked_into]
    if found or not removed or not pending.reads.predicates:
        return found
    read = skipping.prune(pending.base, Or(pending.reads.predicates), _files_of(pending.base, removed))
    paths = set(active_files.keys_of(read).to_pylist())
    return [remove for remove in removed if active_files.file_key(remove.path, remove.deletion_vector) in paths]


def _moved_reads(winner: WinningCommit, pending: PendingCommit) -> frozenset[str]:
    """Returns the files to which the winner moved, unchanged, rows that the transaction read."""
    added = [add for add in winner.of(actions.AddFile) if not add.data_change]
    if not added or pending.reads.whole_table or pending.isolation_level is IsolationLevel.SNAPSHOT:
        return frozenset()
    looked_into = {decode_path(path) for path in pending.reads.paths}
    if any(decode_path(remove.path) in looked_into for remove in winner.of(actions.RemoveFile)):
        return frozenset(add.path for add in added)
    return frozenset(add.path for add in _matching_adds(added, pending))


def _files_of(base: Snapshot, removed: Iterable[actions.RemoveFile]) -> pa.Table:
    keys = [active_files.file_key(remove.path, remove.deletion_vector) for remove in removed]
    return base.active.with_keys(keys)
