"""Finds the changes of a run on its branch that are no longer valid: because they conflict with another program's, or
because the run was held and is corrected.

A publication has one state of each input. So if a node runs again and reads the newest rows of an input, all nodes run
again that have read older rows of it, and all that is built from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dbt.adapters.silt.dbt_seams.definitions import code_of, settings_of
from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation, relation_of
from dbt.adapters.silt.engine.catalog.branches.run_commands import TESTS
from dbt.adapters.silt.engine.catalog.names.relation_names import name_parts, normalize
from dbt.adapters.silt.engine.kernel.clock import utc_text
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.log.builds import FILES_KEY
from dbt.adapters.silt.engine.kernel.transaction.changes import DROP_OPERATION
from dbt.adapters.silt.records.command_result import is_on_run_hook
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.runs.logical_run.changed_inputs import changed_inputs

if TYPE_CHECKING:
    from dbt.adapters.silt.dbt_seams.run_again import RanNodes
    from dbt.adapters.silt.engine.catalog.branches.conflicts import BranchChange
    from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

_OF_FILES: Final = ""
"""The schema that stands for lists of files among inputs."""
_SOURCES: Final = "source."
_SHOWN: Final = 20
_OPTIMIZE: Final = "OPTIMIZE"
VARIABLE: Final = "silt_session_changes"
"""The variable (`--vars`) that says whether a correction keeps the changes of sessions on the branch of the run."""

Inputs: TypeAlias = Mapping[Relation, str]
"""Inputs that have changed, each with the change, as it is printed."""


@dataclass(frozen=True)
class Affected:
    """The changes of a run that are no longer valid.

    Attributes:
        reasons: why, for display.
        relations: the tables and names whose changes are invalid.
        nodes: the unique ids of the nodes and tests that have made these changes or depend on them.
    """

    reasons: Sequence[str]
    relations: frozenset[Relation]
    nodes: frozenset[str]

    def __str__(self) -> str:
        names = sorted(each.split(".")[2] for each in self.nodes if not is_on_run_hook(each))
        return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


class BranchWork:
    """The work of a run on its branch.

    Args:
        changes: the changes of the branch.
        ran: the nodes of the present command.
        known: the nodes of the run.
    """

    def __init__(self, changes: Sequence[BranchChange], ran: RanNodes, known: RunNodes) -> None:
        self._changes = changes
        self._ran = ran
        self._known = known
        self._written = frozenset[str]().union(*(_writers(each) for each in changes))
        self._of_run = ran.selected | known.definitions.keys() | self._written
        self._owners = {each: node for each, node in ran.relations.items() if node in self._of_run}
        self._writers = {each.relation: _writers(each) | self._owner(each.relation) for each in changes}
        self._reads = {each.relation: _reads(each) for each in changes}

    def affected_by_conflicts(self, conflicts: Inputs, changed: Callable[[], Inputs]) -> Affected | None:
        """Returns the changes that conflicts make invalid; None without a conflict, or if the command cannot run all
        nodes again that have made them.

        Args:
            changed: returns the inputs that have changed since the run read them; of these, only the inputs of nodes
                that run again count, because all others are read as before.
        """
        if not conflicts:
            return None
        found = self._closed(list(conflicts.values()), set(conflicts), set(), changed())
        nodes = frozenset(each for each in found.nodes if not (is_on_run_hook(each) or each.startswith("unit_test.")))
        return Affected(found.reasons, found.relations, nodes) if nodes and nodes <= self._ran.selected else None

    def affected_by_corrections(
        self,
        changed: Inputs,
        failures: Iterable[str],
        parents: Callable[[str], Iterable[str]],
        keeps_by_hand: bool = True,
    ) -> Affected:
        """Returns the changes of a run that was held which a correction makes invalid.

        Args:
            changed: the inputs that have changed since the run read them.
            failures: the nodes and tests of this command that have failed in the run, and have not succeeded since.
            parents: gives the nodes from which a node or test is built.
            keeps_by_hand: whether the changes of sessions on the branch are kept; otherwise they are invalid, too.

        Raises:
            ConcurrentModificationError: if the change of a session would be lost that is to be kept.
        """
        found = {each.relation: change for each in self._changes if (change := _by_hand(each)) is not None}
        by_hand, dropped = (found, {}) if keeps_by_hand else ({}, found)
        kept = frozenset[str]().union(*(self._writers[each] for each in by_hand))
        edited = {each for each, text in self._known.definitions.items() if self._is_edited(each, text)}
        edited |= {each for each in self._known.definitions if each not in self._ran.of_project}
        edited |= self._written - self._known.definitions.keys()
        failed = self._built_for(failures, parents) & self._of_run - kept
        after = self._readers_before(by_hand) - kept
        reasons = [
            *changed.values(),
            *(f"a session's change of {'.'.join(each)} is dropped" for each in sorted(dropped)),
            *(f"the definition of {_name(each)} changed" for each in sorted(edited)),
            *(f"{_name(each)} failed or a test of it" for each in sorted(failed - edited)),
            *(f"{_name(each)} has read a table that a session has changed since" for each in sorted(after)),
        ]
        affected = self._closed(reasons, changed.keys() | dropped.keys(), edited | failed | after, {})
        _check_kept(affected, by_hand)
        return affected

    def _is_edited(self, node: str, known: str) -> bool:
        """Returns whether the definition of a node has changed; only its own command tells the variables of a node."""
        present = self._ran.definitions().get(node, "")
        if node in self._ran.selected:
            return present != known
        return code_of(present) != code_of(known)

    def impossible(self, nodes: Iterable[str]) -> set[str]:
        """Returns the nodes among `nodes` that this command cannot run: because of their kind, or because it has other
        variables than the command that has run them.
        """
        present = self._ran.definitions()
        others = {each for each in nodes if each not in self._ran.selected and not is_on_run_hook(each)}
        return {
            each
            for each in others
            if each not in self._ran.others
            or settings_of(present.get(each, "")) != settings_of(self._known.definitions.get(each, ""))
        }

    def changed_inputs(self, catalog: Catalog, database: str | None = None) -> Inputs:
        """Returns the inputs of the changes that other programs have changed since, except tables on the branch.

        Args:
            catalog: the relations of the warehouse, outside of the branch.
            database: the database of the branch, unless all inputs are in it: a table of another database may have the
                name of a table on the branch.
        """
        own = {each.relation for each in self._changes}
        found: dict[Relation, str] = {}
        for change in self._changes:
            code = "\n".join(map(self._ran.code, self._writers[change.relation]))
            for info in change.infos.values():
                for each in changed_inputs(catalog, "", info, code, self._ran.files):
                    key = (_OF_FILES, each.name) if each.is_list else relation_of(each.name)
                    if key not in own or (database and name_parts(each.name)[0] != normalize(database)):
                        found[key] = each.text
        return found

    def _closed(self, reasons: Sequence[str], lost: set[Relation], again: set[str], changed: Inputs) -> Affected:
        """Returns all changes that are invalid with some relations and nodes.

        A relation is invalid if a node that is to run again has changed it, or if a statement that has changed it has
        read an invalid relation. A node runs again if it has changed an invalid relation, or is built from a node that
        runs again or from an invalid source.

        Args:
            changed: further inputs that are invalid if a node that runs again has read them.
        """
        reasons = list(reasons)
        while True:
            again |= {node for each in lost for node in self._writers.get(each, self._owner(each))}
            sources = {node for each in lost if (node := self._ran.relations.get(each, "")).startswith(_SOURCES)}
            again |= self._ran.with_descendants(again | sources) & self._of_run
            more = {each for each, writers in self._writers.items() if writers & again or self._reads[each] & lost}
            read = frozenset[Relation]().union(*(self._reads[each] for each in more))
            moved = {each: text for each, text in changed.items() if each in read and each not in lost}
            reasons += moved.values()
            if more | moved.keys() <= lost:
                return Affected(reasons, frozenset(lost), frozenset(again))
            lost |= more | moved.keys()

    def _owner(self, relation: Relation) -> frozenset[str]:
        owner = self._owners.get((relation[0].lower(), relation[1].lower()))
        return frozenset() if owner is None else frozenset({owner})

    def _built_for(self, failures: Iterable[str], parents: Callable[[str], Iterable[str]]) -> set[str]:
        """Returns the nodes that have failed, and the nodes whose tests have failed."""
        failed = set(failures)
        return {each for each in failed if not each.startswith(TESTS)}.union(
            *(parents(each) for each in failed if each.startswith(TESTS))
        )

    def _readers_before(self, by_hand: Mapping[Relation, _ByHand]) -> set[str]:
        """Returns the nodes that have read a table before a session changed it."""
        return {
            node
            for change in self._changes
            for info in change.infos.values()
            for name, versions in (info.read_versions or {}).items()
            if (relation := relation_of(name)) != change.relation
            and relation in by_hand
            and max(versions, default=0) < by_hand[relation].version
            for node in self._writers[change.relation]
        }


def _check_kept(affected: Affected, by_hand: Mapping[Relation, _ByHand]) -> None:
    lost = sorted(each for each in by_hand if each in affected.relations)
    if lost:
        names = ", ".join(f"{'.'.join(each)} ({by_hand[each]})" for each in lost)
        raise ConcurrentModificationError(
            f"a session has changed {names} on the branch of this run, and the run would build it again, because "
            f"{'; '.join(affected.reasons[:_SHOWN])}",
            remedy="Nothing was changed. To keep the change, publish the run (`silt publish`). To lose it, run the "
            f"same command again with `--vars '{{{VARIABLE}: drop}}'`, or drop the run (`silt drop-run`)",
        )


def keeps_changes_by_hand(variables: Mapping[str, Any]) -> bool:
    """Returns whether a correction keeps the changes of sessions on the branch, by the variables of the command.

    Raises:
        InvalidSettingError: if the variable has another value than `keep` and `drop`.
    """
    given = variables.get(VARIABLE, "keep")
    if given not in ("keep", "drop"):
        raise InvalidSettingError(f"the variable `{VARIABLE}` must be `keep` or `drop`, not `{given}`")
    return bool(given == "keep")


@dataclass(frozen=True)
class _ByHand:
    """The last change that a session has made to a table on the branch."""

    version: int
    operation: str
    at_ms: int

    def __str__(self) -> str:
        return f"{self.operation} at {utc_text(self.at_ms)}"


def _by_hand(change: BranchChange) -> _ByHand | None:
    """Returns the last change of rows or columns that a session has made, unless the table was dropped since."""
    dropped = max((version for version, info in change.infos.items() if info.operation == DROP_OPERATION), default=-1)
    found = [version for version, info in change.infos.items() if version > dropped and _is_by_hand(info)]
    if not found:
        return None
    info = change.infos[max(found)]
    return _ByHand(max(found), info.operation or "an unnamed operation", info.timestamp or 0)


def _is_by_hand(info: CommitInfo) -> bool:
    return CommitFacts.of_info(info) is None and info.operation not in (DROP_OPERATION, _OPTIMIZE)


def _writers(change: BranchChange) -> frozenset[str]:
    facts = (CommitFacts.of_info(each) for each in change.infos.values())
    return frozenset(each.node_id for each in facts if each is not None and each.node_id is not None)


def _reads(change: BranchChange) -> frozenset[Relation]:
    files = (info.extra.get(FILES_KEY) for info in change.infos.values())
    paths = (path for each in files if isinstance(each, Mapping) for path in each)
    return change.reads | {(_OF_FILES, path) for path in paths}


def _name(unique_id: str) -> str:
    return unique_id.split(".")[2]
