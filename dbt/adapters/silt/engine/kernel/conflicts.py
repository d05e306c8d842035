"""Whether a commit that came first stands in the way of a transaction.

The checks run for each winning commit, oldest first; each raises its own error. In the matrix a row is what a winner's
commit contains, a column what this transaction does, and an entry the error, by the first letters of its name, with
the isolation levels it is raised under: S Serializable, W WriteSerializable, I SnapshotIsolation. "Read" means that a
row of the file may be one that the transaction read (`ReadSet`), by the file's partition values and statistics.

| winner has                    | append    | append after read | rewrite             | rearrange  | alter after read |
|-------------------------------|-----------|-------------------|---------------------|------------|------------------|
| drop                          | Drop SWI  | Drop SWI          | Drop SWI            | Drop SWI   | Drop SWI         |
| another table's id            | Drop SWI  | Drop SWI          | Drop SWI            | Drop SWI   | Drop SWI         |
| protocol, features lost       | Proto SWI | Proto SWI         | Proto SWI           | Proto SWI  | Proto SWI        |
| protocol, features added      | ok        | ok                | ok                  | ok         | Proto SWI        |
| metadata                      | Meta SWI  | Meta SWI          | Meta SWI            | Meta SWI   | Meta SWI         |
| domain that I set             | Dom SWI   | Dom SWI           | Dom SWI             | Dom SWI    | Dom SWI          |
| transaction id of mine        | Txn SWI   | Txn SWI           | Txn SWI             | Txn SWI    | Txn SWI          |
| blind append, read            | ok        | Append S          | Append S            | ok         | Append SW        |
| blind append, not read        | ok        | ok                | ok                  | ok         | ok               |
| other append, read            | ok        | Append SW         | Append SW           | ok         | Append SW        |
| other append, not read        | ok        | ok                | ok                  | ok         | ok               |
| rearranging add, read         | ok        | ok                | ok                  | ok         | ok               |
| remove, read                  | ok        | DelRead SW        | DelRead SW          | ok         | DelRead SW       |
| remove, not read              | ok        | ok                | ok                  | ok         | ok               |
| remove, I rewrite             | n/a       | n/a               | DelRead SW DelDel I | DelDel SWI | n/a              |
| rearranging remove, read      | ok        | ok                | ok                  | ok         | ok               |
| rearranging remove, I rewrite | n/a       | n/a               | DelDel SWI          | DelDel SWI | n/a              |

`append` is a blind one; `rewrite` is DELETE, UPDATE, MERGE and overwrite; `rearrange` changes no data (OPTIMIZE), reads
rows only to put them elsewhere, and so runs under SnapshotIsolation whatever the table asks for; `alter after read`
changes metadata and protocol and has read rows, as a new CHECK constraint does.

Finer than the reference implementation: it takes any added file for read where no partition predicate says otherwise,
and its readers conflict with commits that change no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel import columns, skipping
from dbt.adapters.silt.engine.kernel.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.changes import DROP_OPERATION, Changes
from dbt.adapters.silt.engine.kernel.contenders import Pending as Pending
from dbt.adapters.silt.engine.kernel.contenders import Winner as Winner
from dbt.adapters.silt.engine.kernel.contenders import conflict
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentDomainError,
    ConcurrentDropError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
)
from dbt.adapters.silt.engine.kernel.expressions import Or
from dbt.adapters.silt.engine.kernel.features import check_writable
from dbt.adapters.silt.engine.kernel.paths import decode_path
from dbt.adapters.silt.engine.kernel.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.validation import loses_features


def effective_isolation_level(level: IsolationLevel, changes: Changes) -> IsolationLevel:
    """The level a transaction runs under: what only moves rows between files needs no more than snapshot isolation."""
    return IsolationLevel.SNAPSHOT if changes.only_rearranges() else level


def check_conflicts(winner: Winner, mine: Pending) -> None:
    """Passes where the transaction may commit after the winner as if it had begun after it.

    Raises:
        ConcurrentModificationError: one of its kinds, one for each check; its details are those of
            `contenders.conflict`.
        UnsupportedFeatureError: the table needs a feature now that this engine does not have.
    """
    check_drop(winner, mine)
    check_protocol(winner, mine)
    check_metadata(winner, mine)
    check_domains(winner, mine)
    check_transactions(winner, mine)
    check_added_files(winner, mine)
    check_removed_files_were_not_read(winner, mine)
    check_removed_files_are_not_removed_again(winner, mine)


def check_drop(winner: Winner, mine: Pending) -> None:
    """The table that was read is gone, even where another one of its name has taken its place."""
    has_other_id = any(metadata.id != mine.base.metadata.id for metadata in winner.of(Metadata))
    if winner.info.operation == DROP_OPERATION or has_other_id:
        raise conflict(ConcurrentDropError, "dropped the table, or made it anew", winner, mine)


def check_protocol(winner: Winner, mine: Pending) -> None:
    for protocol in winner.of(Protocol):
        check_writable(protocol, mine.base.table)
        if mine.changes.protocol is not None or loses_features(mine.base.protocol, protocol):
            raise conflict(ProtocolChangedError, "changed the table's protocol", winner, mine)


def check_metadata(winner: Winner, mine: Pending) -> None:
    if winner.of(Metadata):
        what = "changed the table's schema, properties or partitioning"
        raise conflict(MetadataChangedError, what, winner, mine)


def check_domains(winner: Winner, mine: Pending) -> None:
    set_by_me = {domain.domain for domain in mine.changes.domains}
    both = sorted(set_by_me & {domain.domain for domain in winner.of(DomainMetadata)})
    if both:
        raise conflict(ConcurrentDomainError, f"set the domain {', '.join(both)} too", winner, mine)


def check_transactions(winner: Winner, mine: Pending) -> None:
    set_by_me = {transaction.app_id for transaction in mine.changes.transactions}
    both = sorted(set_by_me & {transaction.app_id for transaction in winner.of(SetTransaction)})
    if both:
        what = f"recorded the transaction identifier {', '.join(both)} too"
        raise conflict(ConcurrentTransactionError, what, winner, mine)


def check_added_files(winner: Winner, mine: Pending) -> None:
    """No row was added that the transaction would have read."""
    if mine.isolation_level is IsolationLevel.SNAPSHOT:
        return
    may_overlook_appends = mine.isolation_level is IsolationLevel.WRITE_SERIALIZABLE and mine.changes.metadata is None
    if may_overlook_appends and winner.info.is_blind_append:
        return
    added = [add for add in winner.of(AddFile) if add.data_change]
    files = _matching_adds(added, mine)
    if files:
        what = "added files that may hold rows which it would have read"
        raise conflict(ConcurrentAppendError, what, winner, mine, files)


def check_removed_files_were_not_read(winner: Winner, mine: Pending) -> None:
    """No row was removed or changed that the transaction has read."""
    if mine.isolation_level is IsolationLevel.SNAPSHOT:
        return
    removed = [remove for remove in winner.of(RemoveFile) if remove.data_change]
    files = _read_among(removed, mine)
    if files:
        raise conflict(ConcurrentDeleteReadError, "removed files that it has read", winner, mine, files)


def check_removed_files_are_not_removed_again(winner: Winner, mine: Pending) -> None:
    """No row comes back that the winner removed, and none is doubled that the winner moved elsewhere."""
    rewritten = {decode_path(remove.path) for remove in mine.changes.removes}
    files = [remove for remove in winner.of(RemoveFile) if decode_path(remove.path) in rewritten]
    if files:
        what = "removed files that it removes or rewrites too"
        raise conflict(ConcurrentDeleteDeleteError, what, winner, mine, files)


def _matching_adds(added: Sequence[AddFile], mine: Pending) -> list[AddFile]:
    """Those files that may hold rows which the transaction would have read."""
    if mine.reads.whole_table:
        return list(added)
    if not added or not mine.reads.predicates:
        return []
    answers = skipping.might_match(added, mine.base.metadata, Or(mine.reads.predicates))
    return [add for add, answer in zip(added, answers, strict=True) if answer is skipping.ROWS_MIGHT_MATCH]


def _read_among(removed: Sequence[RemoveFile], mine: Pending) -> list[RemoveFile]:
    """Those files that the transaction has read.

    A file that the base does not have was added by a winner, and was looked at then.
    """
    if mine.reads.whole_table:
        return list(removed)
    looked_into = {decode_path(path) for path in mine.reads.paths}
    found = [remove for remove in removed if decode_path(remove.path) in looked_into]
    if found or not removed or not mine.reads.predicates:
        return found
    read = skipping.prune(mine.base, Or(mine.reads.predicates), _files_of(mine.base, removed))
    paths = set(columns.keys_of(read).to_pylist())
    return [remove for remove in removed if columns.file_key(remove.path, remove.deletion_vector) in paths]


def _files_of(base: Snapshot, removed: Iterable[RemoveFile]) -> pa.Table:
    keys = [columns.file_key(remove.path, remove.deletion_vector) for remove in removed]
    return base.files.filter(pc.is_in(columns.keys_of(base.files), value_set=pa.array(keys, pa.string())))
