"""KeyFiles: the files of a table after a commit, separated by what is known about their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.errors import MissingLogVersionError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.commit_file import later_commits
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.key_rows import KeyRows
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector, Metadata, RemoveFile
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.table.expressions import Expression
from dbt.adapters.silt.engine.kernel.table.keys import same_keys, unverified_since
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import WinningCommit


@dataclass(frozen=True)
class KeyFiles:
    """The files of the table after a commit.

    Attributes:
        base: the snapshot of the other files; None if there are none.
        metadata: the metadata of the table after the commit.
        new: the files whose keys are compared with each other and with all other files.
        kept: files of the commit whose rows the table has already: moved rows, and the rows that a vector leaves.
        gone: the keys of files of the base that are not among the other files.
        removed: the keys of files of the base whose rows are removed or in new files.
        is_new_rule: whether the key has not been enforced for the base.
    """

    base: Snapshot | None
    metadata: Metadata
    new: tuple[AddFile, ...]
    kept: tuple[AddFile, ...] = ()
    gone: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    is_new_rule: bool = False

    @classmethod
    def of(
        cls, log: DeltaLog, base: Snapshot | None, changes: Changes, metadata: Metadata, is_new_rule: bool | None = None
    ) -> KeyFiles:
        """Separates the files by what the last commit of this package states.

        Args:
            is_new_rule: by default, whether an enforced primary key or unique key differs from the base's.
        """
        if base is None:
            return cls(None, metadata, changes.adds, is_new_rule=True)
        removed = frozenset(file_key(each.path, each.deletion_vector) for each in changes.removes)
        is_new_rule = not same_keys(base.metadata, metadata) if is_new_rule is None else is_new_rule
        suspects = None if is_new_rule else _unverified(log, base)
        if suspects is None or suspects:
            files = base.files if suspects is None else base.active.with_keys(suspects)
            stay = base.add_files(active_files.without(files, removed))
            gone = removed.union(file_key(each.path, each.deletion_vector) for each in stay)
            return cls(base, metadata, (*changes.adds, *stay), gone=gone, is_new_rule=is_new_rule)
        new, kept = new_and_kept(log, changes)
        return cls(base, metadata, new, kept, removed, frozenset() if kept else removed)

    def others_with(self, rows: KeyRows) -> list[AddFile]:
        """Returns the files, besides the new files, that may have any of the keys."""
        if self.base is None:
            return []
        condition = rows.one_of(StructType.from_json(self.metadata.schema_string))
        pruned = skipping.prune(replace(self.base, metadata=self.metadata), condition)
        return [
            *may_match(self.kept, self.metadata, condition),
            *self._add_files(active_files.without(pruned, self.gone)),
        ]

    def removed_with(self, rows: KeyRows) -> list[AddFile]:
        """Returns the removed files that may have any of the keys."""
        if self.base is None or not self.removed:
            return []
        condition = rows.one_of(StructType.from_json(self.metadata.schema_string))
        return list(may_match(self._add_files(self.base.active.with_keys(self.removed)), self.metadata, condition))

    def _add_files(self, files: pa.Table) -> list[AddFile]:
        return [] if self.base is None else self.base.add_files(files)


def may_match(files: Sequence[AddFile], metadata: Metadata, condition: Expression) -> Iterator[AddFile]:
    answers = skipping.might_match(files, metadata, condition) if files else []
    return (file for file, matches in zip(files, answers, strict=True) if matches)


def new_and_kept(log: DeltaLog, changes: Changes) -> tuple[tuple[AddFile, ...], tuple[AddFile, ...]]:
    """Separates the files of a commit: files with rows that the table has not had, and files without such rows."""
    before = {decode_path(each.path): each.deletion_vector for each in changes.removes}
    pairs = [(each, before.get(decode_path(each.path))) for each in changes.adds]
    vectors = {
        vector.unique_id: vector
        for add, old in pairs
        for vector in (add.deletion_vector, old)
        if old is not None and vector is not None
    }
    deleted = deletion_vectors.read(log.store, vectors.values(), log.name) if vectors else {}

    def is_kept(add: AddFile, old: DeletionVector | None) -> bool:
        if not add.data_change:
            return True
        if decode_path(add.path) not in before or add.deletion_vector is None:
            return False
        return old is None or deleted[old.unique_id].issubset(deleted[add.deletion_vector.unique_id])

    kept = [is_kept(*pair) for pair in pairs]
    new = tuple(add for add, is_old in zip(changes.adds, kept, strict=True) if not is_old)
    return new, tuple(add for add, is_old in zip(changes.adds, kept, strict=True) if is_old)


def _unverified(log: DeltaLog, base: Snapshot) -> frozenset[str] | None:
    """Returns the keys of files that other engines have added since the last version whose keys hold; None if they are
    not known.
    """
    since = unverified_since(base.transactions, base.version)
    if since is None:
        return frozenset()
    found: set[str] = set()
    version = since
    try:
        for _, commit in later_commits(log.store, since, log.name, base.version) if since else ():
            other = WinningCommit(commit.version, commit.actions(log.name))
            if other.of(Metadata):
                return None
            _follow(found, other)
            version += 1
    except MissingLogVersionError:
        return None
    return frozenset(found) if since and version > base.version else None


def _follow(suspects: set[str], other: WinningCommit) -> None:
    """Adds the files of a commit to the suspects, unless it only moves rows of files that are not suspects."""
    gone = {file_key(each.path, each.deletion_vector) for each in other.of(RemoveFile)}
    is_move = not other.changes_rows and suspects.isdisjoint(gone)
    suspects -= gone
    if not is_move:
        suspects |= {file_key(each.path, each.deletion_vector) for each in other.of(AddFile)}
