"""BranchDatabase: a database as a branch shows it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.names import name_errors
from dbt.adapters.silt.engine.catalog.names.database import BranchNames, Database
from dbt.adapters.silt.engine.catalog.names.documents import (
    Function,
    View,
    parse_function,
    parse_view,
    serialize_function,
    serialize_view,
)
from dbt.adapters.silt.engine.catalog.names.log_end import is_last
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentCreateError,
    ConcurrentModificationError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import OUTSIDE
from dbt.adapters.silt.engine.kernel.publication.documents import Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.publication_marks import OF_TABLES
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction import changes
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog, branch_of
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

COPY: Final = (
    "Run `create table ... deep clone` for the new name and `drop table` for the old name, or rename it outside of the "
    "transaction"
)
"""The remedy for a rename of a table, which a transaction cannot contain."""

_KINDS: Final = {Kind.TABLE: RelationKind.TABLE, Kind.VIEW: RelationKind.VIEW}


class BranchDatabase:
    """A database as a branch shows it. A new schema exists at once for everyone; a schema that the branch drops exists
    until the branch is published.

    Args:
        name: the name of the database.
        main: the database.
        branch: the branch of its tables and names.
    """

    def __init__(self, name: str, main: Database, branch: Branch) -> None:
        self._name = name
        self._main = main
        self._branch = branch

    @property
    def store(self) -> Store:
        return self._main.store

    @property
    def published(self) -> BranchNames:
        return self._main.published

    def for_statement(self) -> BranchDatabase:
        self._branch.read_names()
        return BranchDatabase(self._name, self._main.for_statement(), self._branch)

    def schemas(self) -> list[str]:
        return [each for each in self._main.schemas() if not self._branch.drops_schema(each)]

    def has_schema(self, schema: str) -> bool:
        return not self._branch.drops_schema(schema) and self._main.has_schema(schema)

    def create_schema(self, schema: str, if_not_exists: bool) -> None:
        if self._branch.drops_schema(schema):
            self._main.create_schema(schema, if_not_exists=True)
            self._branch.keep_schema(schema)
        else:
            self._main.create_schema(schema, if_not_exists)

    def drop_schema(self, schema: str, cascade: bool) -> None:
        """Drops all names of the schema, which change when the branch is published, and then the schema itself."""
        self._require(schema)
        relations, functions = self.relations(schema), self.functions(schema)
        if not cascade and (relations or functions):
            raise name_errors.schema_not_empty(f"{self._name}.{schema}")
        for each in relations:
            if each.kind is RelationKind.TABLE:
                self.drop_table(each.name, False, None)
            else:
                self.drop_view(each.name, False)
        for name in functions:
            self.drop_function(name, False)
        self._branch.drop_schema(schema, cascade)

    def relations(self, schema: str) -> list[RelationEntry]:
        self._require(schema)
        found = {each.name: each for each in self._all_shown(self._main.relations(schema)) if each is not None}
        for change in self._branch.changes_in(schema):
            name = RelationName(self._name, schema, change.name)
            found.pop(name, None)
            if change.after is not None:
                found[name] = RelationEntry(name, _KINDS[change.after.kind])
        return sorted(found.values(), key=lambda entry: entry.name)

    def find(self, name: RelationName) -> RelationEntry | None:
        change = self._branch.change_of(name)
        if self._branch.drops_schema(name.schema):
            return None
        if change is None:
            entry = self._main.find(name)
            return None if entry is None else self._shown(entry)
        return None if change.after is None else RelationEntry(name, _KINDS[change.after.kind])

    def _all_shown(self, listed: list[RelationEntry]) -> list[RelationEntry | None]:
        if self._branch.named is None or self.store.has_folders:
            return [self._shown(each) for each in listed]
        with ThreadPoolExecutor(self.store.files_at_once) as pool:
            return list(pool.map(self._shown, listed))

    def _shown(self, entry: RelationEntry) -> RelationEntry | None:
        """Returns a relation that the branch has not changed, unless it is a table that was created later."""
        if self._branch.named is None or entry.kind is not RelationKind.TABLE:
            return entry
        return None if self._branch.hides(self._main.listed(entry.name)) else entry

    def listed(self, name: RelationName) -> DeltaLog:
        return self.table(name)

    def rename(self, name: RelationName, new_name: RelationName) -> None:
        """Renames a view; repeating an interrupted rename completes it. In folders, the name of a table is its folder,
        which cannot change at the moment of a publication.
        """
        present, target = self._present(name), self._present(new_name)
        if present.after is None:
            raise name_errors.nothing(name, "table or view")
        if present.after.kind is Kind.TABLE:
            raise UnsupportedStatementError("a table cannot be renamed in a transaction", table=str(name), remedy=COPY)
        renamed = replace(self.view(name), name=new_name)
        if target.after is not None and (target.after.kind is Kind.TABLE or self.view(new_name) != renamed):
            raise name_errors.exists(new_name)
        self._change(target, self.published.define(Kind.VIEW, serialize_view(renamed)))
        self._change(present, None)

    def table(self, name: RelationName) -> DeltaLog:
        self._require(name.schema)
        _check_schema(name)
        change = self._branch.change_of(name)
        if change is None:
            return self._branch.log(self._main.table(name))
        if change.after is None:
            raise name_errors.nothing(name, "table or view")
        if change.after.kind is not Kind.TABLE:
            raise name_errors.not_a_table(name)
        return self._branch.created(name, change.after)

    def table_of_file(self, path: str) -> RelationName | None:
        return self._main.table_of_file(path)

    def new_table(self, name: RelationName, replace_view: bool) -> DeltaLog:
        """Creates the log of a table on the branch; its folder has no log of its own before the publication."""
        present = self._present(name)
        _check_schema(name)
        _check_free(name, present.after, replace_view)
        if present.before is not None and present.before.kind is Kind.TABLE:
            raise _refused("a table that was dropped cannot be created again by this program", str(name))
        return self._branch.new_log(self._main.new_table(name, replace_view=True))

    def dropped_table(self, name: RelationName) -> BranchLog | None:
        """Returns the table that the branch has dropped or replaced by a view, if it exists outside of the branch.

        A statement that creates a table of that name replaces the dropped table, whose log outside of the branch goes
        on; `publish_table` then gives it its name again.
        """
        change = self._branch.change_of(name)
        if change is None or change.before is None or change.before.kind is not Kind.TABLE:
            return None
        return None if change.after == change.before else self._branch.created(name, change.before)

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool) -> None:
        """Gives a table that the branch has created, or created again, its name on the branch."""
        own = branch_of(log)
        if own is None or (own.base() is not None and self._branch.change_of(name) is None):
            return
        present, created = self._present(name), Meaning(Kind.TABLE, self._branch.location_of(own))
        if present.after != created and not is_last(own.snapshot()):
            _check_free(name, present.after, replace_view)
            self._change(present, created)

    def drop_table(self, name: RelationName, if_exists: bool, version: int | None) -> None:
        if (
            if_exists
            and self.find(name) is None
            and self._branch.change_of(name) is None
            and self.has_schema(name.schema)
        ):
            self._branch.note_lookup(name, NameChange(name.schema, name.identifier, None, None))
            return
        present = self._present(name)
        if if_exists and present.after is None:
            self._branch.note_lookup(name, present)
            return
        log = branch_of(self.table(name))
        if log is None or present.after != Meaning(Kind.TABLE, self._branch.location_of(log)):
            raise name_errors.changed_meanwhile(name)
        snapshot = log.snapshot()
        if version not in (None, snapshot.version):
            raise ConcurrentModificationError(
                f"another statement has committed after version {version}, so it was not dropped",
                table=str(name),
                version=snapshot.version,
            )
        if log.base() is not None and not is_last(snapshot):
            _end(log, has_read=version is not None)
        self._change(present, None)
        if log.base() is None:
            self._branch.remove(log)

    def view(self, name: RelationName) -> View:
        self._require(name.schema)
        change = self._branch.change_of(name)
        if change is None:
            return self._main.view(name)
        return parse_view(self._document(name, change, Kind.VIEW), name)

    def put_view(self, view: View, replace: bool, replace_table: bool) -> None:
        name, present = view.name, self._present(view.name)
        is_table = present.after is not None and present.after.kind is Kind.TABLE
        if is_table and not (replace and replace_table):
            raise name_errors.table_in_the_way(name)
        if present.after is not None and not replace:
            raise name_errors.exists(name)
        if is_table:
            self.drop_table(name, False, None)
            present = self._present(name)
        self._change(present, self.published.define(Kind.VIEW, serialize_view(view)))

    def drop_view(self, name: RelationName, if_exists: bool) -> None:
        present = self._present(name)
        if present.after is None and not if_exists:
            raise name_errors.nothing(name, "view")
        if present.after is not None and present.after.kind is Kind.TABLE:
            raise name_errors.not_a_view(name)
        self._drop(name, present)

    def functions(self, schema: str) -> list[RelationName]:
        self._require(schema)
        found = set(self._main.functions(schema))
        for change in self._branch.changes_in(schema, is_function=True):
            name = RelationName(self._name, schema, change.name)
            found.discard(name)
            if change.after is not None:
                found.add(name)
        return sorted(found)

    def has_function(self, name: RelationName) -> bool:
        change = self._branch.change_of(name, is_function=True)
        if self._branch.drops_schema(name.schema):
            return False
        return self._main.has_function(name) if change is None else change.after is not None

    def function(self, name: RelationName) -> Function:
        self._require(name.schema)
        change = self._branch.change_of(name, is_function=True)
        if change is None:
            return self._main.function(name)
        return parse_function(self._document(name, change, Kind.FUNCTION), name)

    def put_function(self, function: Function, replace: bool) -> None:
        name, present = function.name, self._present(function.name, is_function=True)
        if present.after is not None and not replace:
            raise name_errors.exists(name)
        self._change(present, self.published.define(Kind.FUNCTION, serialize_function(function)))

    def drop_function(self, name: RelationName, if_exists: bool) -> None:
        present = self._present(name, is_function=True)
        if present.after is None and not if_exists:
            raise name_errors.nothing(name, "function")
        self._drop(name, present)

    def note_lookup(self, name: RelationName, is_function: bool = False) -> None:
        """Notes that a statement did nothing because the name exists."""
        self._branch.note_lookup(name, self._present(name, is_function))

    def _drop(self, name: RelationName, present: NameChange) -> None:
        """Drops a view or function if it exists."""
        if present.after is None:
            self._branch.note_lookup(name, present)
        else:
            self._change(present, None)

    def _present(self, name: RelationName, is_function: bool = False) -> NameChange:
        """Returns the change of a name on the branch so far; its meanings are equal if the branch has not changed it.

        Raises:
            SchemaNotFoundError: if its schema does not exist.
            ConcurrentCreateError: if another program has created a table of that name since the branch began.
        """
        if not self.has_schema(name.schema):
            raise name_errors.no_schema(f"{name.database}.{name.schema}")
        known = self._branch.change_of(name, is_function)
        if known is not None:
            return known
        meaning = self.published.meaning(name, is_function)
        if meaning is not None and meaning.kind is Kind.TABLE and self._branch.hides(self._main.table(name)):
            raise ConcurrentCreateError("another program has created it since the branch began", table=str(name))
        return NameChange(name.schema, name.identifier, meaning, meaning, is_function)

    def _require(self, schema: str) -> None:
        """Raises SchemaNotFoundError if the branch has dropped the schema."""
        if self._branch.drops_schema(schema):
            raise name_errors.no_schema(f"{self._name}.{schema}")

    def _change(self, present: NameChange, after: Meaning | None) -> None:
        self._branch.change(replace(present, after=after))

    def _document(self, name: RelationName, change: NameChange, kind: Kind) -> bytes:
        if change.after is None or change.after.kind is not kind:
            raise name_errors.nothing(name, kind.value)
        return self.published.document(change.after)


def _check_schema(name: RelationName) -> None:
    """Checks that no other table can have the same full name. A branch and its commits use that name for the table."""
    if "." in name.schema:
        raise _refused("a table of a schema whose name contains a dot cannot be read or changed", str(name))


def _check_free(name: RelationName, present: Meaning | None, replace_view: bool) -> None:
    if present is not None and present.kind is Kind.TABLE:
        raise name_errors.table_exists(name)
    if present is not None and not replace_view:
        raise name_errors.view_in_the_way(name)


def _end(log: BranchLog, has_read: bool) -> None:
    """Commits the last version of a table on the branch: a table that is created again has done no unit of work.

    Args:
        has_read: whether the drop depends on the table's rows, so that another program's change of them is a conflict.
    """
    snapshot = log.snapshot()
    properties = {**snapshot.metadata.configuration, changes.DROPPED_PROPERTY: str(log.clock.now_ms())}
    metadata = replace(snapshot.metadata, configuration=properties)
    done = (
        each.app_id for each in snapshot.transactions.values() if each.version >= 0 and each.app_id not in OF_TABLES
    )
    forgotten = tuple(SetTransaction(app_id, changes.NOT_DONE) for app_id in done)
    last = changes.Changes(changes.Operation(changes.DROP_OPERATION), metadata=metadata, forgotten=forgotten)
    level = IsolationLevel.SERIALIZABLE if has_read else None
    commit(log, snapshot, last, changes.ReadSet(whole_table=has_read), CommitSettings(isolation_level=level))


def _refused(what: str, name: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(f"{what} in a transaction", table=name, remedy=OUTSIDE)
