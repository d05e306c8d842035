"""Keeps the effects of a node's hooks on its reuse: the relations that they change, and whether all of them have run.

A reused node's hooks do not run. So a pre-hook must not be able to change a relation that the node reads, and a build
counts only when the hooks after it have run: the log of its table says so (decision 0113).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dbt.adapters.silt.engine.builds.present import last_build
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.builds import ENDED_KEY, Build, Effect
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.records.units import Unit

PRE_HOOK: Final = "pre_hook"

_OPERATION: Final = "HOOKS HAVE RUN"
_HARMLESS: Final = (ast.Optimize, ast.Vacuum, ast.CreateSchema)
"""Statements that change no row and no definition that a query reads."""


@dataclass
class HookEffects:
    """The changes that the hooks of a node, which may be reused, have made so far.

    Attributes:
        own: the node's table.
        role: the kind of the hook that runs; None outside of hooks.
        before: the relations that pre-hooks have changed.
        is_unclear: whether a pre-hook may have changed anything else.
        changes_own: whether a later hook writes the node's table, even if it changes no row this time.
    """

    own: RelationName
    role: str | None = None
    before: set[RelationName] = field(default_factory=set)
    is_unclear: bool = False
    changes_own: bool = False

    def note(self, warehouse: Warehouse, statement: ast.Statement) -> None:
        """Notes a statement that is about to run."""
        if self.role is None or not statement.changes_something or isinstance(statement, _HARMLESS):
            return
        names = {*warehouse.affected_tables(statement), *warehouse.names_in_use(statement)}
        if self.role == PRE_HOOK:
            self.before |= names
            self.is_unclear |= not names or isinstance(statement, ast.DropSchema)
        elif statement.effect is not ast.Effect.METADATA:
            written = warehouse.written(statement)
            self.changes_own |= self.own in names or (written is not None and written.table is None)

    def build(self, build: Build) -> Build:
        """Returns the build with the changes of the pre-hooks."""
        unknown = ["a statement of its pre-hook may change its inputs"] if self.is_unclear else []
        if self.own in self.before and build.effect is not Effect.REPLACES:
            unknown.append("its pre-hook changes its table")
        return replace(build, changed=frozenset(map(str, self.before)), unknown=(*build.unknown, *unknown))

    def end(self, log: DeltaLog, unit: Unit, commit_info: Mapping[str, Json]) -> None:
        """Records in the log that the hooks after the node's write have run, if its build waits for them.

        Args:
            log: the log of the node's table.
            unit: the node's own write.
            commit_info: further fields of the commit.

        Raises:
            StorageError, ...: if the commit failed.
        """
        last = None if unit.build is None else last_build(log, unit.build.owner)
        if last is None or last.has_ended or last.changed_since is not None or not _is_of(last.facts.ends, unit):
            return
        ended: dict[str, Json] = {"of": last.facts.ends}
        ended |= {"unknown": ["its post-hook changes its table"]} if self.changes_own else {}
        settings = CommitSettings(commit_info={**commit_info, ENDED_KEY: ended})
        commit(log, log.snapshot(), Changes(Operation(_OPERATION)), ReadSet(), settings)


def with_end(unit: Unit) -> Unit:
    """Returns the unit of a write that counts as a build when the hooks after it have run."""
    ends = f"{unit.app_id}@{unit.version}"
    return unit if unit.build is None else replace(unit, build=replace(unit.build, ends=ends))


def _is_of(ends: str | None, unit: Unit) -> bool:
    return ends is not None and ends.rpartition("@")[0] == unit.app_id
