"""Checks enforced foreign keys when commits are published, with the tables that the keys depend on (decision 0131).

A commit that adds rows of a child reads the files of its parent that hold their keys. A commit that removes keys of a
parent reads the rows of its children that have these keys. So both become publications, each of which first puts its
own commit, then checks that the other table has not changed: of two that do not go together, one is aborted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.engine.kernel.errors import (
    ForeignKeyViolationError,
    NotATableError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication.prepared import PreparedTable
from dbt.adapters.silt.engine.kernel.publication.publication_tables import ExistingTable, NewTable
from dbt.adapters.silt.engine.kernel.rows.key_rows import EXAMPLES, KeyReader, KeyRows
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.active_files import file_key
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.keys import (
    Key,
    children,
    enforced_keys,
    enforced_references,
    may_be_parent,
    unverified_since,
    with_child,
)
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import padded_type
from dbt.adapters.silt.engine.kernel.transaction.changes import (
    DROPPED_PROPERTY,
    Changes,
    Operation,
    ReadSet,
    merged_reads,
)
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit_info_of
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit
from dbt.adapters.silt.engine.kernel.transaction.enforced_keys import (
    adds_rows,
    as_text,
    run_of,
    with_keys_to_publish,
    with_statement,
)
from dbt.adapters.silt.engine.kernel.transaction.key_files import KeyFiles, may_match

_ONLY_READ: Final = Operation("TRANSACTION")
_REFERENCED: Final = Operation("ADD CONSTRAINT")
_GONE: Final = "the table that it references is not in this database, or was dropped"
_REMEDY: Final = "Drop the foreign key first: alter table ... drop constraint"


@dataclass
class ForeignKeys:
    """The tables of a publication, and the other tables on which their foreign keys depend.

    Args:
        open_log: opens the table in a folder of the database, given with a name for messages.
        location_of: returns the folder of a table, relative to the database's root.
    """

    open_log: Callable[[str, str], DeltaLog]
    location_of: Callable[[DeltaLog], str]
    _sides: dict[str, _Side] = field(default_factory=dict)

    def checked(self, tables: Sequence[PreparedTable]) -> list[PreparedTable]:
        """Returns the tables of a publication with what their foreign keys have read, and the tables that they read.

        Raises:
            ForeignKeyViolationError: if a row would reference a key that its parent does not have.
            UnsupportedStatementError: if a parent would no longer have the key that a child references.
            The errors of `read_file`.
        """
        self._sides = {self.location_of(each.log): _Side(each) for each in tables}
        for location, side in list(self._sides.items()):
            if side.table.is_changed and not side.is_dropped:
                self._check_references(location, side)
            if side.table.is_changed:
                self._check_children(location, side)
        return [each.table for each in self._sides.values()]

    def check_droppable(self, log: DeltaLog, base: Snapshot) -> None:
        """Checks that no child has an enforced foreign key to a table.

        Raises:
            ForeignKeyViolationError: if one has.
        """
        pending = PendingCommit(base, Changes(_ONLY_READ), ReadSet(), IsolationLevel.SERIALIZABLE)
        parent = _Side(ExistingTable(log, pending, None))
        for child, name, key in self._keys_to(self.location_of(log), parent):
            if not key.is_of_itself:
                raise _dropped(child, name, key, parent)

    def _keys_to(self, location: str, parent: _Side) -> Iterator[tuple[_Side, str, Key]]:
        """Yields the enforced foreign keys to a table, its own too, with their tables and names."""
        assert parent.base is not None
        for name, key in {} if parent.is_dropped else enforced_references(parent.metadata.configuration).items():
            if key.is_of_itself:
                yield parent, name, key
        for child_id, (folder, child_name) in children(parent.base.metadata.configuration).items():
            child = self._other(folder, child_id, child_name)
            for name, key in () if child is None else enforced_references(child.metadata.configuration).items():
                if child is not None and (key.location, key.parent_id) == (location, parent.base.metadata.id):
                    yield child, name, key

    def _other(self, location: str, table_id: str, name: str) -> _Side | None:
        """Returns the table in a folder, or None if it was dropped or another table replaced it."""
        if location not in self._sides:
            log = self.open_log(location, name)
            try:
                base = log.snapshot()
            except NotATableError:
                return None
            pending = PendingCommit(base, Changes(_ONLY_READ), ReadSet(), IsolationLevel.SERIALIZABLE)
            self._sides[location] = _Side(ExistingTable(log, pending, None))
        found = self._sides[location]
        return found if found.metadata.id == table_id and not found.is_dropped else None

    def _check_references(self, location: str, child: _Side) -> None:
        """Checks that each added row of a child has a parent."""
        before = {} if child.base is None else enforced_references(child.base.metadata.configuration)
        for name, key in enforced_references(child.metadata.configuration).items():
            is_new = before.get(name) != key or (child.base is not None and child.types(key.columns) != child.old(key))
            files = KeyFiles.of(child.table.log, child.base, child.changes, child.metadata, is_new)
            rows = child.reader(key.columns).rows(files.new)[0] if files.new else None
            if not is_new and (rows is None or not rows.values.num_rows):
                continue
            is_other = not key.is_of_itself
            parent = self._other(key.location, key.parent_id, ".".join(key.references)) if is_other else child
            if parent is None:
                raise _violation(child, name, key, _GONE)
            _check_definition(child, name, key, parent)
            if is_new and is_other:
                parent.add_child(child, location)
            missing = None if rows is None else parent.missing(_renamed(rows, key.to))
            if missing is None or not missing.num_rows:
                continue
            if not is_new and not adds_rows(child.changes):
                child.forget_statement()
                continue
            what = f"{_rows(missing.num_rows)} a key that {parent.name} does not have"
            raise _violation(child, name, key, what, missing)

    def _check_children(self, location: str, parent: _Side) -> None:
        """Checks that no child has a row of a key that the parent loses."""
        if parent.base is None or not may_be_parent(parent.base.metadata.configuration):
            return
        is_verified = unverified_since(parent.base.transactions, parent.base.version) is None
        gone = {key.columns: parent.gone(key.columns) for key in _unique_keys(parent)} if is_verified else {}
        if is_verified and parent.changes.metadata is None and not any(each.values.num_rows for each in gone.values()):
            return
        for child, name, key in self._keys_to(location, parent):
            if parent.is_dropped:
                raise _dropped(child, name, key, parent)
            _check_definition(child, name, key, parent)
            lost = _of_keys(gone, key, child) if is_verified else child.without_parent(key, parent)
            if not lost.num_rows:
                continue
            if not is_verified and not any(each.data_change for each in parent.changes.removes):
                parent.forget_statement()
                continue
            what = f"{_rows(lost.num_rows)} a key that {parent.name} would no longer have"
            raise _violation(child, name, key, what, lost, parent)


@dataclass
class _Side:
    """A table on a side of a foreign key."""

    table: PreparedTable

    @property
    def name(self) -> str:
        return self.table.log.name

    @property
    def base(self) -> Snapshot | None:
        return self.table.pending.base if isinstance(self.table, ExistingTable) else None

    @property
    def changes(self) -> Changes:
        if isinstance(self.table, ExistingTable):
            return self.table.pending.changes
        assert isinstance(self.table, NewTable)
        return self.table.changes

    @property
    def metadata(self) -> Metadata:
        found = self.changes.metadata or (None if self.base is None else self.base.metadata)
        assert found is not None, "the first commit of a table has metadata"
        return found

    @property
    def is_dropped(self) -> bool:
        return DROPPED_PROPERTY in self.metadata.configuration

    @property
    def run(self) -> str | None:
        info = self.table.info if isinstance(self.table, (ExistingTable, NewTable)) else None
        return None if info is None else run_of(info.extra)

    def types(self, columns: Sequence[str], metadata: Metadata | None = None) -> list[object]:
        schema = StructType.from_json((metadata or self.metadata).schema_string)
        return [padded_type(schema.require(name, self.name)) for name in columns]

    def old(self, key: Key) -> list[object] | None:
        """Returns the types of a key's columns before the commit; None if a column is new."""
        assert self.base is not None
        is_there = set(key.columns) <= set(self.base.schema.names)
        return self.types(key.columns, self.base.metadata) if is_there else None

    def reader(self, columns: Sequence[str], metadata: Metadata | None = None) -> KeyReader:
        version = 0 if self.base is None else self.base.version
        return KeyReader(self.table.log.store, self.name, version, metadata or self.metadata, tuple(columns))

    def missing(self, wanted: KeyRows) -> pa.Table:
        """Returns the rows whose keys the table does not have after the commit; notes the files that were read."""
        reader = self.reader(wanted.values.schema.names)
        condition = wanted.one_of(reader.schema)
        wanted = wanted.without(reader.matching(self._added(condition), wanted).keys)
        if not wanted.values.num_rows:
            return wanted.values
        others = self._kept(condition)
        self.add_reads(ReadSet(paths=frozenset(each.path for each in others)))
        return wanted.without(reader.matching(others, wanted).keys).values

    def having(self, wanted: KeyRows) -> pa.Table:
        """Returns the rows of the table after the commit that have any of the keys; notes that others have not."""
        reader = self.reader(wanted.values.schema.names)
        condition = wanted.one_of(reader.schema)
        self.add_reads(ReadSet(predicates=(condition,)))
        return reader.matching([*self._added(condition), *self._kept(condition)], wanted).values

    def without_parent(self, key: Key, parent: _Side) -> pa.Table:
        """Returns the rows of the table after the commit without a parent."""
        rows = self.reader(key.columns).rows([*self._added(TRUE), *self._kept(TRUE)])[0]
        self.add_reads(ReadSet(whole_table=True))
        return parent.missing(_renamed(rows, key.to)) if rows.values.num_rows else rows.values

    def gone(self, columns: Sequence[str]) -> KeyRows:
        """Returns the keys of removed files that no added file has: the keys of a table are unique."""
        assert self.base is not None
        files = (each for each in self.changes.removes if each.data_change)
        removed = frozenset(file_key(each.path, each.deletion_vector) for each in files)
        before = self.base.add_files(self.base.active.with_keys(removed)) if removed else []
        rows = self.reader(columns, self.base.metadata).rows(before)[0]
        if not rows.values.num_rows:
            return rows
        reader = self.reader(columns)
        return rows.without(reader.matching(self._added(rows.one_of(reader.schema)), rows).keys)

    def _added(self, condition: Expression) -> list[AddFile]:
        return list(may_match(self.changes.adds, self.metadata, condition))

    def _kept(self, condition: Expression) -> list[AddFile]:
        """Returns the files of the base that stay and may match."""
        if self.base is None:
            return []
        removed = frozenset(file_key(each.path, each.deletion_vector) for each in self.changes.removes)
        pruned = skipping.prune(replace(self.base, metadata=self.metadata), condition)
        return self.base.add_files(active_files.without(pruned, removed))

    def add_reads(self, reads: ReadSet) -> None:
        """Notes what a foreign key has read; other writers' rows then do not come between."""
        if not isinstance(self.table, ExistingTable):
            return
        level, info = IsolationLevel.SERIALIZABLE, self.table.info
        pending = replace(
            self.table.pending, reads=merged_reads(self.table.pending.reads, reads), isolation_level=level
        )
        info = None if info is None else replace(info, isolation_level=level.value)
        self.table = replace(self.table, pending=pending, info=info)

    def add_child(self, child: _Side, location: str) -> None:
        """Adds a child to the table's metadata, even if it is there: a drop at the same moment then conflicts."""
        metadata = with_child(self.metadata, child.metadata.id, (location, child.name))
        self._change(lambda changes: replace(changes, metadata=metadata))

    def forget_statement(self) -> None:
        """Leaves out the statement that keys hold: only rows of other engines break them."""
        self._change(lambda changes: with_statement(changes, holds=False))

    def _change(self, edit: Callable[[Changes], Changes]) -> None:
        table = self.table
        if isinstance(table, NewTable):
            self.table = replace(table, changes=edit(table.changes))
        elif isinstance(table, ExistingTable):
            pending, info = table.pending, table.info
            given = pending.changes if info is not None else Changes(_REFERENCED)
            changes = edit(given)
            if info is None:
                changes = with_keys_to_publish(table.log, pending.base, changes)
                info = commit_info_of(table.log, pending.base, changes, pending.reads, CommitSettings())
            self.table = replace(table, pending=replace(pending, changes=changes), info=info)


def _unique_keys(side: _Side) -> Iterator[Key]:
    """Yields the unique keys of a parent, as far as the table has had their columns before."""
    assert side.base is not None
    names = side.base.schema.names
    for key in enforced_keys(side.metadata.configuration).values():
        if all(each in names for each in key.columns):
            yield key


def _of_keys(gone: Mapping[tuple[str, ...], KeyRows], key: Key, child: _Side) -> pa.Table:
    """Returns the rows of a child with a key that its parent loses."""
    for columns, rows in gone.items():
        if set(columns) == set(key.to) and rows.values.num_rows:
            return child.having(_renamed(KeyRows(rows.values.select(key.to)), key.columns))
    return pa.table({})


def _renamed(rows: KeyRows, columns: Sequence[str]) -> KeyRows:
    return KeyRows(rows.values.rename_columns(list(columns)))


def _check_definition(child: _Side, name: str, key: Key, parent: _Side) -> None:
    """Checks that the parent has an enforced key of the referenced columns, of the same types."""
    unique = enforced_keys(parent.metadata.configuration).values()
    if not any(set(each.columns) == set(key.to) for each in unique):
        raise UnsupportedStatementError(
            f"the enforced foreign key `{name}` of {child.name} needs an enforced PRIMARY KEY or UNIQUE key of the "
            f"columns {quoted_list(key.to)}",
            table=parent.name,
            remedy="Define that key: alter table ... add primary key (...) enforced, or a constraint in the new "
            f"definition of the table. {_REMEDY} to remove or rename the columns",
        )
    if child.types(key.columns) != parent.types(key.to):
        raise UnsupportedStatementError(
            f"the enforced foreign key `{name}`, {key.sql}, compares columns of different types",
            table=child.name,
            remedy=f"Give the columns the same type. {_REMEDY} to change a type",
        )


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _dropped(child: _Side, name: str, key: Key, parent: _Side) -> ForeignKeyViolationError:
    return ForeignKeyViolationError(
        f"it cannot be dropped: the enforced foreign key `{name}` of {child.name}, {key.sql}, references it",
        remedy=f"Drop {child.name} first, or the foreign key: alter table ... drop constraint {quote(name)}",
        table=parent.name,
        version=None if parent.base is None else parent.base.version,
        details={"constraint": name, "columns": key.columns},
    )


def _violation(
    child: _Side, name: str, key: Key, what: str, rows: pa.Table | None = None, parent: _Side | None = None
) -> ForeignKeyViolationError:
    changed = parent or child
    shown = "" if rows is None else as_text(rows.slice(0, EXAMPLES))
    run = changed.run
    return ForeignKeyViolationError(
        f"{what}, under the enforced foreign key `{name}` of {child.name}, {key.sql}"
        f"{f': {shown}' if shown else ''}{'' if run is None else f', in the run {run}'}",
        table=changed.name,
        version=None if changed.base is None else changed.base.version,
        details={"constraint": name, "columns": key.columns, "examples": shown, "run_id": run},
    )
