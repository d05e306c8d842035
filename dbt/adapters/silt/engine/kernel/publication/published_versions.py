"""Replaces versions of a branch by published versions in the commits that name them.

A commit names versions of other tables: the positions up to which it has consumed their changes (decision 0087), the
tables that its build has read, the source of a clone, and the versions that its statements have read. A version on a
branch exists only there. The published commit of a table has the rows of the table's last version on the branch if no
other writer has changed rows since the branch began. So the commit's version replaces that version (decision 0092).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.builds import (
    CLONED_KEY,
    INFO_KEY,
    KEYS_INFO_KEY,
    UNITS_KEY,
    BuildFacts,
    TableState,
)
from dbt.adapters.silt.engine.kernel.publication.branch_changes import BranchVersions
from dbt.adapters.silt.engine.kernel.publication.prepared import PreparedTable
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Json, SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes
from dbt.adapters.silt.engine.kernel.transaction.positions import END_OF_TIME, is_position, mark_of


def with_published_versions(
    tables: Sequence[PreparedTable], versions: Mapping[str, BranchVersions]
) -> list[PreparedTable]:
    """Returns the tables with commits that name published versions; pins the tables whose changes they have consumed.

    Args:
        tables: the tables of a publication, checked.
        versions: the versions of each changed table on the branch, by name.

    Raises:
        ConcurrentModificationError: if another writer has changed rows of a table whose changes on the branch a commit
            has consumed: it has not consumed the other writer's changes.
        UnsupportedStatementError: if the branch has changed a table again after a commit consumed its changes.
    """
    known = {each.log.name: _Published(each, versions[each.log.name]) for each in tables if each.log.name in versions}
    names = _Names(known)
    rewritten = [each.rewritten(_Rewriting(each.log.name, names)) for each in tables]
    return [each.pinned() if each.log.name in names.consumed else each for each in rewritten]


@dataclass(frozen=True)
class _Published:
    """A table that a publication changes, and its versions on the branch."""

    table: PreparedTable
    versions: BranchVersions

    def version_of(self, version: int) -> int | None:
        """Returns the published version with the rows of a version on the branch, or None if it does not exist."""
        if version <= self.versions.base:
            return version
        return None if version < self.versions.last_change else self.table.next_version

    @property
    def content(self) -> str | None:
        """The hash of the files of the published version; None if other writers have committed since the base."""
        return self.versions.content() if self.table.next_version == self.versions.base + 1 else None


@dataclass(frozen=True)
class _Names:
    """The tables that a publication changes, by name; `consumed` are the tables whose changes the branch has read."""

    tables: Mapping[str, _Published]
    consumed: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Rewriting:
    """Rewrites the commit of a table, whose name is `own`."""

    own: str
    names: _Names

    def __call__(self, changes: Changes, info: CommitInfo) -> tuple[Changes, CommitInfo]:
        transactions = tuple(self._position(each) for each in changes.transactions)
        extra = dict(info.extra)
        for key in (INFO_KEY, KEYS_INFO_KEY):
            facts = BuildFacts.of_info(info, key)
            if facts is not None:
                states = {name: self._state(name, each) for name, each in facts.tables.items()}
                known = {name: each for name, each in states.items() if each is not None}
                del extra[key]
                extra |= replace(facts, tables=known).commit_info(key) if len(known) == len(states) else {}
        extra |= self._cloned(extra.pop(CLONED_KEY, None))
        units = extra.get(UNITS_KEY)
        if isinstance(units, Mapping):
            own = {app_id: CommitInfo.from_json(each) for app_id, each in units.items() if isinstance(each, Mapping)}
            extra[UNITS_KEY] = {
                app_id: replace(each, read_versions=self._reads(each.read_versions)).to_json()
                for app_id, each in own.items()
            }
        reads = self._reads(info.read_versions)
        return replace(changes, transactions=transactions), replace(info, extra=extra, read_versions=reads)

    def _reads(self, given: Mapping[str, Sequence[int]] | None) -> dict[str, list[int]] | None:
        reads = {name: self._read(name, each) for name, each in (given or {}).items()}
        return {name: each for name, each in reads.items() if each} or None

    def _position(self, position: SetTransaction) -> SetTransaction:
        if not is_position(position.app_id):
            return position
        table_id = _consumed_table(position.app_id)
        for name, each in self.names.tables.items():
            if each.versions.table_id == table_id and position.version > each.versions.base:
                self.names.consumed.add(name)
                time = END_OF_TIME + (0 if each.content is None else mark_of(each.content))
                return replace(position, version=self._consumed(name, each, position.version), last_updated=time)
        return position

    def _consumed(self, name: str, consumed: _Published, version: int) -> int:
        found = consumed.version_of(version)
        if found is not None:
            return found
        if version < consumed.versions.last_change:
            raise UnsupportedStatementError(
                f"it has consumed the changes of {name} up to a version that the transaction has changed again",
                table=self.own,
                remedy=f"Consume the changes of {name} after its last change, or outside of the transaction",
            )
        raise ConcurrentModificationError(
            f"another writer has changed rows whose changes {self.own} would have consumed", table=name
        )

    def _state(self, name: str, state: TableState) -> TableState | None:
        """Returns the state of a table that a build has read, or None if no published version has its rows."""
        read = self.names.tables.get(name)
        if read is None or name == self.own or state.version <= read.versions.base:
            return state
        version = read.version_of(state.version) if read.versions.table_id == state.table_id else None
        return None if version is None else replace(state, version=version, content=read.content)

    def _cloned(self, source: Json) -> dict[str, Json]:
        """Returns the field for the source of a clone, if a published version has its rows."""
        if not isinstance(source, Mapping) or not isinstance(source.get("version"), int):
            return {}
        tables = self.names.tables.values()
        known = next((each for each in tables if each.versions.table_id == source.get("id")), None)
        version = source["version"] if known is None else known.version_of(source["version"])
        content = {} if known is None or source["version"] <= known.versions.base else {"content": known.content}
        return {} if version is None else {CLONED_KEY: {**source, "version": version, **content}}

    def _read(self, name: str, versions: Sequence[int]) -> list[int]:
        """Returns the versions of a table that were read, without the own table's versions on the branch.

        The base replaces a version whose rows are not published, so that the table counts as changed since.
        """
        read = self.names.tables.get(name)
        if read is None:
            return list(versions)
        base = read.versions.base
        if name == self.own:
            return [each for each in versions if each <= base]
        published = {read.version_of(each) for each in versions}
        return sorted(base if each is None else each for each in published)


def _consumed_table(app_id: str) -> str:
    """Returns the id of the table whose changes a position is in."""
    return app_id.split(":", 2)[1]
