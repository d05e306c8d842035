"""BranchDatabase: a database as a branch shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.catalog import name_errors
from dbt.adapters.silt.engine.catalog.branches import Branch
from dbt.adapters.silt.engine.catalog.database import BranchNames, Database
from dbt.adapters.silt.engine.catalog.documents import (
    Function,
    View,
    parse_function,
    parse_view,
    serialize_function,
    serialize_view,
)
from dbt.adapters.silt.engine.catalog.names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.branch_changes import OUTSIDE
from dbt.adapters.silt.engine.kernel.publication.documents import Kind, Meaning, NameChange
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import (
    DROP_OPERATION,
    DROPPED_PROPERTY,
    Changes,
    Operation,
    ReadSet,
)
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

_KINDS: Final = {Kind.TABLE: RelationKind.TABLE, Kind.VIEW: RelationKind.VIEW}


class BranchDatabase:
    """A database as a branch shows it. Schemas are the database's own: a new schema exists at once.

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
        return BranchDatabase(self._name, self._main.for_statement(), self._branch)

    def schemas(self) -> list[str]:
        return self._main.schemas()

    def has_schema(self, schema: str) -> bool:
        return self._main.has_schema(schema)

    def create_schema(self, schema: str, if_not_exists: bool) -> None:
        self._main.create_schema(schema, if_not_exists)

    def drop_schema(self, schema: str, cascade: bool) -> None:  # noqa: ARG002
        raise _refused("a schema cannot be dropped", schema)

    def relations(self, schema: str) -> list[RelationEntry]:
        found = {each.name: each for each in self._main.relations(schema)}
        for change in self._branch.changes_in(schema):
            name = RelationName(self._name, schema, change.name)
            found.pop(name, None)
            if change.after is not None:
                found[name] = RelationEntry(name, _KINDS[change.after.kind])
        return sorted(found.values(), key=lambda entry: entry.name)

    def find(self, name: RelationName) -> RelationEntry | None:
        change = self._branch.change_of(name)
        if change is None:
            return self._main.find(name)
        return None if change.after is None else RelationEntry(name, _KINDS[change.after.kind])

    def rename(self, name: RelationName, new_name: RelationName) -> None:
        """Renames a view; repeating an interrupted rename completes it. In folders, the name of a table is its folder,
        which cannot change at the moment of a publication.
        """
        present, target = self._present(name), self._present(new_name)
        if present.after is None:
            raise name_errors.nothing(name, "table or view")
        if present.after.kind is Kind.TABLE:
            raise _refused("a table cannot be renamed", str(name))
        renamed = replace(self.view(name), name=new_name)
        if target.after is not None and (target.after.kind is Kind.TABLE or self.view(new_name) != renamed):
            raise name_errors.exists(new_name)
        self._change(target, self.published.define(Kind.VIEW, serialize_view(renamed)))
        self._change(present, None)

    def table(self, name: RelationName) -> DeltaLog:
        change = self._branch.change_of(name)
        if change is None:
            return self._branch.log(self._main.table(name))
        if change.after is None:
            raise name_errors.nothing(name, "table or view")
        if change.after.kind is not Kind.TABLE:
            raise name_errors.is_no_table(name)
        return self._branch.created(name, change.after)

    def table_of_file(self, path: str) -> RelationName | None:
        return self._main.table_of_file(path)

    def new_table(self, name: RelationName, replace_view: bool) -> DeltaLog:
        """Creates the log of a table on the branch; its folder has no log of its own before the publication."""
        present = self._present(name)
        _check_free(name, present.after, replace_view)
        if present.before is not None and present.before.kind is Kind.TABLE:
            raise _refused("a table that was dropped cannot be created again", str(name))
        return self._branch.new_log(self._main.new_table(name, replace_view=True))

    def publish_table(self, name: RelationName, log: DeltaLog, replace_view: bool) -> None:
        """Gives a table that the branch has created its name on the branch."""
        if not isinstance(log, BranchLog) or log.base() is not None:
            return
        present, created = self._present(name), Meaning(Kind.TABLE, self._branch.location_of(log))
        if present.after != created:
            _check_free(name, present.after, replace_view)
            self._change(present, created)

    def drop_table(self, name: RelationName, if_exists: bool, version: int | None) -> None:
        present = self._present(name)
        if if_exists and present.after is None:
            return
        log = self.table(name)
        if not isinstance(log, BranchLog) or present.after != Meaning(Kind.TABLE, self._branch.location_of(log)):
            raise name_errors.changed_meanwhile(name)
        snapshot = log.snapshot()
        if version not in (None, snapshot.version):
            raise ConcurrentModificationError(
                f"another statement has committed after version {version}, so it was not dropped",
                table=str(name),
                version=snapshot.version,
            )
        if log.base() is not None and DROPPED_PROPERTY not in snapshot.metadata.configuration:
            _end(log)
        self._change(present, None)
        if log.base() is None:
            self._branch.remove(log)

    def view(self, name: RelationName) -> View:
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
            raise name_errors.is_no_view(name)
        if present.after is not None:
            self._change(present, None)

    def functions(self, schema: str) -> list[RelationName]:
        found = set(self._main.functions(schema))
        for change in self._branch.changes_in(schema, is_function=True):
            name = RelationName(self._name, schema, change.name)
            found.discard(name)
            if change.after is not None:
                found.add(name)
        return sorted(found)

    def has_function(self, name: RelationName) -> bool:
        change = self._branch.change_of(name, is_function=True)
        return self._main.has_function(name) if change is None else change.after is not None

    def function(self, name: RelationName) -> Function:
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
        if present.after is not None:
            self._change(present, None)

    def _present(self, name: RelationName, is_function: bool = False) -> NameChange:
        """Returns the change of a name on the branch so far; its meanings are equal if the branch has not changed it.

        Raises:
            SchemaNotFoundError: if its schema does not exist.
        """
        if not self.has_schema(name.schema):
            raise name_errors.no_schema(f"{name.database}.{name.schema}")
        known = self._branch.change_of(name, is_function)
        if known is not None:
            return known
        meaning = self.published.meaning(name, is_function)
        return NameChange(name.schema, name.identifier, meaning, meaning, is_function)

    def _change(self, present: NameChange, after: Meaning | None) -> None:
        self._branch.change(replace(present, after=after))

    def _document(self, name: RelationName, change: NameChange, kind: Kind) -> bytes:
        if change.after is None or change.after.kind is not kind:
            raise name_errors.nothing(name, kind.value)
        return self.published.document(change.after)


def _check_free(name: RelationName, present: Meaning | None, replace_view: bool) -> None:
    if present is not None and present.kind is Kind.TABLE:
        raise name_errors.table_exists(name)
    if present is not None and not replace_view:
        raise name_errors.view_in_the_way(name)


def _end(log: BranchLog) -> None:
    """Commits the last version of a table on the branch."""
    snapshot = log.snapshot()
    properties = {**snapshot.metadata.configuration, DROPPED_PROPERTY: str(log.clock.now_ms())}
    last = Changes(Operation(DROP_OPERATION), metadata=replace(snapshot.metadata, configuration=properties))
    commit(log, snapshot, last, ReadSet(), CommitSettings())


def _refused(what: str, name: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(f"{what} in a transaction", table=name, remedy=OUTSIDE)
