"""Checks that a log is complete: every commit exists and is readable, and checkpoints and checksums match the commits.

The commits are replayed in order from the first version that can be rebuilt; each checkpoint and each version checksum
is compared with the state at its version. A reader of a table uses only some of these files, so a difference would
appear late, or in other engines first.
Source: the Delta specification, section "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dbt.adapters.silt.engine.kernel import errors, foreign_json
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log import log_segment
from dbt.adapters.silt.engine.kernel.log.checksum import (
    comparable_metadata,
    comparable_protocol,
    differences,
    is_orphan,
)
from dbt.adapters.silt.engine.kernel.log.commit_file import CommitFile, read_commit
from dbt.adapters.silt.engine.kernel.log.replay import TableState, advance, replay
from dbt.adapters.silt.engine.kernel.maintenance.problems import Problem, ProblemKind
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table import paths
from dbt.adapters.silt.engine.kernel.table.active_files import keys_of
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import text_form
from dbt.adapters.silt.engine.kernel.table.value_order import value_order_of

_NAMED = 3


def check_log(store: Store, table: str) -> Iterator[Problem]:
    """Yields the problems of the log.

    Raises:
        NotATableError: if the log does not exist.
        UnsupportedFeatureError: if reading the table needs a feature that this engine does not have.
        StorageError: if the storage failed.
    """
    listed = log_segment.list_log(store, table)
    listing = log_segment.with_unlisted(store, listed, listed.newest or 0)
    if listing.earliest is None:
        yield Problem(ProblemKind.LOG_UNREADABLE, "the log has neither its first commit nor a complete checkpoint")
        return
    walk = _Walk(store, table, listing, checksums=frozenset(_checksums(store)))
    yield from walk.problems()
    if walk.state is not None:
        yield from _way_of_readers(store, table, listing, walk.state)
    yield from _left_alone(store, listing.newest or 0)
    yield from _folders(store)


@dataclass
class _Walk:
    """The replay of a log from its beginning.

    Attributes:
        state: the state after the commits so far; None before the first commit, and after a missing or unreadable
            commit until the next checkpoint.
        checksums: the versions with a checksum.
    """

    store: Store
    table: str
    listing: log_segment.LogListing
    state: TableState | None = None
    checksums: frozenset[int] = frozenset()
    _pending: list[CommitFile] = field(default_factory=list)
    _broken: bool = False
    _gap: range = range(0)

    def problems(self) -> Iterator[Problem]:
        checkpoints: dict[int, list[log_segment.CheckpointFiles]] = {}
        for each in self.listing.checkpoints:
            checkpoints.setdefault(each.version, []).append(each)
        first = _first(self.listing)
        begins_with_commit = 0 in self.listing.commits
        newest = self.listing.newest or 0
        there = {first, *self.listing.commits, *checkpoints, *self.checksums}
        # Only the start of a gap is visited: the gap may have more versions than can be iterated over.
        gaps = {version + 1 for version in there}
        for version in sorted(each for each in there | gaps if first <= each <= newest):
            if begins_with_commit or version > first:
                yield from self._commit(version) if version in self.listing.commits else self._missing(version)
            if version in checkpoints or version in self.checksums:
                yield from self._advance()
                for checkpoint in checkpoints.get(version, ()):
                    yield from self._checkpoint(checkpoint)
                if self.state is not None:
                    yield from _checksum(self.store, version, self.state)
        yield from self._advance()

    def _commit(self, version: int) -> Iterator[Problem]:
        try:
            commit = read_commit(self.store, version, self.table, self.listing.commits.get(version))
            commit.actions(self.table)
        except errors.MissingLogVersionError as error:
            yield from self._break(Problem(ProblemKind.COMMIT_MISSING, error.problem, version))
        except (errors.CorruptLogError, errors.UnusableFileError) as error:
            yield from self._break(Problem(ProblemKind.COMMIT_UNREADABLE, error.problem, version))
        else:
            self._pending.append(commit)

    def _missing(self, version: int) -> Iterator[Problem]:
        """Yields a problem for a missing commit; consecutive missing commits are a single problem."""
        if version - 1 in self._gap:
            return
        end = min((each for each in self.listing.commits if each > version), default=(self.listing.newest or 0) + 1)
        self._gap = range(version, end)
        several = f"{paths.commit_name(version)} to {paths.commit_name(end - 1)} are" if end - version > 1 else None
        what = f"the log has a gap: {several or f'{paths.commit_name(version)} is'} missing"
        yield from self._break(Problem(ProblemKind.COMMIT_MISSING, what, version))

    def _break(self, problem: Problem) -> Iterator[Problem]:
        yield from self._advance()
        yield problem
        self.state, self._broken = None, True

    def _advance(self) -> Iterator[Problem]:
        """Applies the commits that were read; after a broken commit, the state is unknown until the next checkpoint."""
        pending, self._pending = self._pending, []
        if not pending or (self._broken and self.state is None):
            return
        try:
            self.state = advance(self.state, pending, self.table)
        except errors.CorruptLogError as error:
            self.state, self._broken = None, True
            version = pending[-1].version if error.version is None else error.version
            yield Problem(ProblemKind.COMMIT_UNREADABLE, error.problem, version)

    def _checkpoint(self, checkpoint: log_segment.CheckpointFiles) -> Iterator[Problem]:
        try:
            held = replay(self.store, log_segment.LogSegment(checkpoint.version, checkpoint, ()), self.table)
        except (errors.CorruptCheckpointError, errors.CorruptLogError) as error:
            yield Problem(ProblemKind.CHECKPOINT_UNREADABLE, error.problem, checkpoint.version)
            return
        if self.state is None:
            self.state = held
            return
        for what in state_differences(held, self.state):
            text = f"{checkpoint.name} differs from the commits: {what}"
            yield Problem(ProblemKind.CHECKPOINT_DIFFERS, text, checkpoint.version)


def _first(listing: log_segment.LogListing) -> int:
    """Returns the version to begin at: a clean-up may keep older checkpoints after deleting all of their commits."""
    if 0 in listing.commits:
        return 0
    oldest = min(listing.commits, default=listing.newest or 0)
    usable = (checkpoint.version for checkpoint in listing.checkpoints if checkpoint.version >= oldest - 1)
    return min(usable, default=listing.earliest or 0)


def state_differences(held: TableState, replayed: TableState) -> Iterator[str]:
    """Yields the differences between a checkpoint and the replayed commits, except omissions that writers may make."""
    yield from _file_differences(held, replayed)
    if comparable_protocol(held.protocol) != comparable_protocol(replayed.protocol):
        yield "the protocol differs"
    if comparable_metadata(held.metadata) != comparable_metadata(replayed.metadata):
        yield "the metadata differs"
    if {name: each.configuration for name, each in held.domains.items()} != {
        name: each.configuration for name, each in replayed.domains.items()
    }:
        yield "the domains of metadata differ"
    may_expire = TableProperties(replayed.metadata.configuration).set_transaction_retention_ms is not None
    for app_id, transaction in replayed.transactions.items():
        found = held.transactions.get(app_id)
        if (found is None and not may_expire) or (found is not None and found.version != transaction.version):
            yield f"the version of the transaction identifier {app_id} differs"
    if not held.transactions.keys() <= replayed.transactions.keys():
        yield "it has transaction identifiers that no commit has"


def _file_differences(held: TableState, replayed: TableState) -> Iterator[str]:
    of_held, of_replayed = _by_key(held.files), _by_key(replayed.files)
    missing, extra = of_replayed.keys() - of_held.keys(), of_held.keys() - of_replayed.keys()
    if missing:
        yield f"it lacks {_listed(missing)}"
    if extra:
        yield f"it has {_listed(extra)}, which the commits removed or never added"
    fields = {member.physical_name: member for member in StructType.from_json(replayed.metadata.schema_string)}
    other = [key for key in of_held.keys() & of_replayed.keys() if _facts(of_held[key]) != _facts(of_replayed[key])]
    if other:
        yield f"the size or deletion vector differs of {_listed(set(other))}"
    moved = [
        key
        for key in of_held.keys() & of_replayed.keys()
        if not _same_partition(of_held[key]["partition_values"], of_replayed[key]["partition_values"], fields)
    ]
    if moved:
        yield f"the partition values differ of {_listed(set(moved))}"
    if held.files.num_rows != len(of_held):
        yield "it has the same file twice"


def _by_key(files: TableFiles) -> dict[str, dict[str, Any]]:
    """Returns the files as rows, by their key."""
    if files.num_rows == 0:
        return {}
    table = files.without_statistics()
    rows = table.select(["size", "deletion_vector", "partition_values"]).to_pylist()
    return dict(zip(keys_of(table).to_pylist(), rows, strict=True))


def _facts(row: dict[str, Any]) -> tuple[int, int | None]:
    vector = row["deletion_vector"]
    return row["size"], None if vector is None else vector["cardinality"]


def _same_partition(held: Any, replayed: Any, fields: Mapping[str, StructField]) -> bool:
    """Returns whether partition values are equal: engines write times and null in different forms."""
    stated, theirs = dict(held or ()), dict(replayed or ())
    if stated.keys() != theirs.keys():
        return False
    for name in stated:
        pair = [stated[name] or None, theirs[name] or None]
        if pair[0] != pair[1] and (None in pair or not _same_value(pair, fields.get(name))):
            return False
    return True


def _same_value(texts: list[str | None], field: StructField | None) -> bool:
    order = None if field is None else value_order_of(field.type)
    texts = [text if text is None or field is None else text_form(text, field) for text in texts]
    first, second = (None, None) if order is None else order.from_texts(pa.array(texts, pa.string())).to_pylist()
    return first is not None and bool(first == second)


def _way_of_readers(store: Store, table: str, listing: log_segment.LogListing, state: TableState) -> Iterator[Problem]:
    """Compares the state with the state of readers, which may read a log compaction instead of commits."""
    newest = listing.newest or 0
    segment = next(listing.segments(newest), None)
    if segment is None or not segment.compactions:
        return
    read = replay(store, segment, table)
    for what in state_differences(read, state):
        yield Problem(ProblemKind.CHECKPOINT_DIFFERS, f"a log compaction differs from its commits: {what}")


def _checksum(store: Store, version: int, state: TableState) -> Iterator[Problem]:
    """Checks the version checksum, if it exists, against the table."""
    try:
        body = foreign_json.loads(store.read(paths.checksum_path(version), DOCUMENT_BYTES))
    except ObjectMissing:
        return
    except (ValueError, errors.UnusableFileError) as error:
        yield Problem(ProblemKind.CHECKSUM_DIFFERS, f"the version checksum cannot be read: {error}", version)
        return
    for what in differences(body, state):
        yield Problem(ProblemKind.CHECKSUM_DIFFERS, f"the version checksum has {what}", version)


def _checksums(store: Store) -> Iterator[int]:
    """Yields the versions that have a checksum file."""
    for file in store.list_from(paths.LOG_FOLDER):
        name = paths.parse_log_name(file.name)
        if name is not None and name.kind is paths.LogFileKind.CHECKSUM:
            yield name.version


def _left_alone(store: Store, newest: int) -> Iterator[Problem]:
    """Yields a problem if there are checksums after the newest version: their commits existed and were lost."""
    lost = [version for version in sorted(_checksums(store)) if version > newest and is_orphan(store, version)]
    if lost:
        several = f"{paths.commit_name(lost[0])} to {paths.commit_name(lost[-1])} are" if len(lost) > 1 else ""
        what = (
            f"{several or f'{paths.commit_name(lost[0])} is'} missing: the checksum exists, but the log ends before it"
        )
        yield Problem(ProblemKind.COMMIT_MISSING, what, lost[0])


def _folders(store: Store) -> Iterator[Problem]:
    """Yields a problem for each folder with the name of a log file: that file cannot be written."""
    for name in store.list_folders(paths.LOG_FOLDER):
        parsed = paths.parse_log_name(name)
        if parsed is not None or f"{paths.LOG_FOLDER}/{name}" == paths.LAST_CHECKPOINT:
            is_commit = parsed is not None and parsed.kind is paths.LogFileKind.COMMIT
            ends = "nothing can be committed at that version" if is_commit else "that file cannot be written"
            what = f"{paths.LOG_FOLDER}/{name} is a folder: {ends}; move it away"
            yield Problem(ProblemKind.NAME_TAKEN, what, None if parsed is None else parsed.version)


def _listed(keys: set[str]) -> str:
    names = sorted(key.partition("\x00")[0] for key in keys)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
