"""Checks enforced PRIMARY KEYs and UNIQUE keys in every commit (decision 0127).

A commit records that it leaves a table whose keys hold: the transaction identifier `VERIFIED` (`kernel/table/keys.py`)
has the version of that commit. The next commit then reads the keys of the rows that it adds, and of the files whose
bounds admit these keys. Files that other engines have added since the recorded version are checked with the added rows.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentKeyError,
    DataRejectedError,
    KeyViolationError,
    NotNullViolationError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.key_rows import EXAMPLES, KeyReader, KeyRows
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json, Metadata, SetTransaction
from dbt.adapters.silt.engine.kernel.table.keys import (
    VERIFIED,
    Key,
    KeyKind,
    enforced_keys,
    enforced_references,
    may_be_parent,
    unverified_since,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import DROPPED_PROPERTY, Changes
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit, conflict
from dbt.adapters.silt.engine.kernel.transaction.key_files import KeyFiles, may_match, new_and_kept
from dbt.adapters.silt.engine.kernel.transaction.positions import END_OF_TIME

_AT_COMMIT: Final = SetTransaction(VERIFIED, -2, END_OF_TIME)
"""States that the keys hold at the version of the commit, which is known when it is written."""
_ONLY_REMOVE: Final = ("DELETE", "TRUNCATE")


def with_checked_keys(
    log: DeltaLog, base: Snapshot | None, changes: Changes, facts: Mapping[str, Json] | None = None
) -> Changes:
    """Checks the enforced keys of a table after these changes; returns the changes with the statement that they hold.

    If only rows of other engines break a key, changes that add no rows are returned without the statement.

    Args:
        facts: the fields of `commitInfo`, whose logical run an error names.

    Raises:
        KeyViolationError: if two rows would have the same key.
        NotNullViolationError: if a column of a primary key would contain a null.
        The errors of `read_file`.
    """
    changes = without_statement(changes)
    metadata = changes.metadata or (None if base is None else base.metadata)
    if metadata is None or DROPPED_PROPERTY in metadata.configuration:
        return changes
    keys = enforced_keys(metadata.configuration)
    if not keys and not enforced_references(metadata.configuration):
        return changes
    files = KeyFiles.of(log, base, changes, metadata)
    for name, key in keys.items():
        violation = _Constraint(log, files, name, key, run_of(facts or {})).violation()
        if violation is None:
            continue
        if not files.is_new_rule and not adds_rows(changes):
            return changes
        raise violation
    return replace(changes, transactions=(*changes.transactions, _AT_COMMIT))


def concerns_references(base: Snapshot | None, changes: Changes) -> bool:
    """Returns whether a commit may have to be checked against other tables because of enforced foreign keys."""
    metadata = changes.metadata or (None if base is None else base.metadata)
    if metadata is None:
        return False
    before = metadata if base is None else base.metadata
    is_unverified = base is not None and unverified_since(base.transactions, base.version) is not None
    if changes.metadata is not None or is_unverified:
        return bool(enforced_references(metadata.configuration)) or may_be_parent(before.configuration)
    if changes.adds and enforced_references(metadata.configuration):
        return True
    return may_be_parent(before.configuration) and not changes.changes_no_data()


def run_of(facts: Mapping[str, Json]) -> str | None:
    """Returns the logical run in the fields of `commitInfo`, if any."""
    of_dbt = facts.get("dbt")
    run = of_dbt.get("runId") if isinstance(of_dbt, Mapping) else None
    return run if isinstance(run, str) else None


def adds_rows(changes: Changes) -> bool:
    """Returns whether changes add rows, and do not only remove rows."""
    return changes.operation.name not in _ONLY_REMOVE and any(add.data_change for add in changes.adds)


def without_statement(changes: Changes) -> Changes:
    """Returns the changes without the statement that keys hold."""
    named = (*changes.transactions, *changes.forgotten)
    if all(each.app_id != VERIFIED for each in named):
        return changes
    transactions, forgotten = (
        tuple(each for each in some if each.app_id != VERIFIED) for some in (changes.transactions, changes.forgotten)
    )
    return replace(changes, transactions=transactions, forgotten=forgotten)


def states_keys(changes: Changes) -> bool:
    """Returns whether the changes state that keys hold."""
    return _AT_COMMIT in changes.transactions


def states_keys_at(version: int, transactions: Sequence[SetTransaction]) -> bool:
    """Returns whether the transaction identifiers of a commit state that its keys hold at its version."""
    return replace(_AT_COMMIT, version=version) in transactions


def with_keys_to_publish(log: DeltaLog, base: Snapshot | None, changes: Changes) -> Changes:
    """Does the same as `with_checked_keys` for changes that were made on another base.

    Raises:
        ConcurrentKeyError: if the rows of the base and of the changes break a key.
        The errors of `read_file`.
    """
    try:
        return with_checked_keys(log, base, changes)
    except (KeyViolationError, NotNullViolationError) as error:
        raise ConcurrentKeyError(
            error.problem, table=error.table, version=error.version, details=error.details
        ) from error


def with_statement(changes: Changes, holds: bool) -> Changes:
    """Returns the changes with or without the statement that keys hold."""
    changes = without_statement(changes)
    return replace(changes, transactions=(*changes.transactions, _AT_COMMIT)) if holds else changes


def stated_at(changes: Changes, version: int) -> Changes:
    """Returns the changes with the version at which their keys hold."""
    if not states_keys(changes):
        return changes
    stated = replace(_AT_COMMIT, version=version)
    return replace(changes, transactions=tuple(stated if each == _AT_COMMIT else each for each in changes.transactions))


@dataclass(frozen=True)
class _Constraint:
    """An enforced key of a table."""

    log: DeltaLog
    files: KeyFiles
    name: str
    key: Key
    run: str | None

    def violation(self) -> DataRejectedError | None:
        """Returns the error for the rows that break the key, if any do."""
        rows, with_null = self._reader.rows(self.files.new)
        if self.key.kind is KeyKind.PRIMARY_KEY and with_null.num_rows:
            return self._error(NotNullViolationError, f"{_rows(with_null.num_rows)} a null in", with_null)
        count, examples = rows.repeated()
        if not count:
            found = self._among_others(rows)
            count, examples = found.num_rows, found
        if not count:
            return None
        return self._error(KeyViolationError, f"{_rows(count)} the same key as another row under", examples)

    @functools.cached_property
    def _reader(self) -> KeyReader:
        return reader(self.log, self.files.base, self.files.metadata, self.key)

    def _among_others(self, rows: KeyRows) -> pa.Table:
        """Returns the rows of other files whose keys are among the keys of new rows."""
        others = self.files.others_with(rows) if rows.values.num_rows else []
        if not others:
            return rows.values.slice(0, 0)
        removed = self.files.removed_with(rows)
        if removed:
            # The keys of the base are unique: a key that was in a removed file is in no other file.
            rows = rows.without(self._reader.matching(removed, rows).keys)
            others = self.files.others_with(rows) if rows.values.num_rows else []
        return self._reader.matching(others, rows).values

    def _error(self, kind: type[DataRejectedError], what: str, examples: pa.Table) -> DataRejectedError:
        base = self.files.base
        since = None if base is None or self.files.is_new_rule else unverified_since(base.transactions, base.version)
        others = "" if since is None else f", with the rows that other engines have added since version {since}"
        shown, run = as_text(examples), "" if self.run is None else f", in the run {self.run}"
        return kind(
            f"{what} the enforced key `{self.name}`, {self.key.sql}{others}: {shown}{run}",
            table=self.log.name,
            version=None if base is None else base.version,
            details={"constraint": self.name, "columns": self.key.columns, "examples": shown, "run_id": self.run},
        )


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def reader(log: DeltaLog, base: Snapshot | None, metadata: Metadata, key: Key) -> KeyReader:
    version = 0 if base is None else base.version
    return KeyReader(log.store, log.name, version, metadata, key.columns)


def as_text(examples: pa.Table) -> str:
    """Returns the first rows as text: (`id` = 1), (`id` = 2)."""
    shown = examples.slice(0, EXAMPLES).to_pylist()
    return ", ".join(f"({', '.join(f'{quote(name)} = {value}' for name, value in row.items())})" for row in shown)


@dataclass(frozen=True)
class NewKeys:
    """The keys that a commit adds; they are compared with the rows of winners."""

    log: DeltaLog
    pending: PendingCommit

    def checked(self, winner: WinningCommit, pending: PendingCommit) -> PendingCommit:
        """Checks that the winner adds no row with a key that the commit adds too.

        Returns:
            The commit, without the statement that its keys hold if the winner does not state it.

        Raises:
            ConcurrentKeyError: if both have added the same key.
            The errors of `read_file`.
        """
        added = [each for each in winner.of(AddFile) if each.data_change]
        for name, key in enforced_keys(self._metadata.configuration).items() if added else ():
            self._check(winner, added, name, key)
        is_stated = states_keys_at(winner.version, winner.of(SetTransaction))
        if is_stated or not states_keys(pending.changes):
            return pending
        return replace(pending, changes=without_statement(pending.changes))

    def _check(self, winner: WinningCommit, added: Sequence[AddFile], name: str, key: Key) -> None:
        found_reader = reader(self.log, self.pending.base, self._metadata, key)
        rows = self._rows[name]
        files = list(may_match(added, self._metadata, rows.one_of(found_reader.schema))) if rows.keys else []
        found = found_reader.matching(files, rows).values
        if found.num_rows:
            what = f"added {found.num_rows} of the keys that it adds under `{name}` too, such as {as_text(found)}"
            raise conflict(ConcurrentKeyError, what, winner, self.pending, files)

    @property
    def _metadata(self) -> Metadata:
        return self.pending.changes.metadata or self.pending.base.metadata

    @functools.cached_property
    def _rows(self) -> Mapping[str, KeyRows]:
        new, _ = new_and_kept(self.log, self.pending.changes)
        keys = enforced_keys(self._metadata.configuration)
        base = self.pending.base
        return {name: reader(self.log, base, self._metadata, key).rows(new)[0] for name, key in keys.items()}
