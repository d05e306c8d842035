"""Finds the nodes that a run runs again after a conflict: nodes with invalid changes, and all nodes below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dbt.adapters.silt.records.commit_facts import CommitFacts

if TYPE_CHECKING:
    from dbt.adapters.silt.dbt_seams.run_again import RanNodes
    from dbt.adapters.silt.engine.catalog.branch_conflicts import BranchChange, Relation
    from dbt.adapters.silt.engine.catalog.branches import Branch

_RUN_WITH_OTHERS: Final = ("operation.", "unit_test.")
"""On-run hooks run before and after the other nodes, and unit tests before their model, whenever these run."""
_SHOWN: Final = 20


@dataclass(frozen=True)
class Affected:
    """The changes of a run that conflicts make invalid.

    Attributes:
        reasons: the conflicts.
        relations: the tables and names whose changes are invalid.
        nodes: the unique ids of the nodes and tests that have made these changes or depend on them.
    """

    reasons: Sequence[str]
    relations: frozenset[Relation]
    nodes: frozenset[str]

    def __str__(self) -> str:
        names = sorted(each.split(".")[2] for each in self.nodes)
        return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def affected_by_conflicts(branch: Branch, database: str, ran: RanNodes) -> Affected | None:
    """Returns the changes that the conflicts of a branch make invalid; empty without a conflict, or if the command
    cannot run all nodes again that have made them.

    Args:
        database: the database of the branch.
        ran: the nodes of the command.

    Raises:
        SiltError: if the branch cannot be published for another reason, or the storage failed.
    """
    conflicts = branch.conflicts(database)
    if not conflicts:
        return None
    found = _affected(conflicts, branch.changes(), ran)
    return found if found.nodes and found.nodes <= ran.selected else None


def _affected(conflicts: Mapping[Relation, str], changes: Sequence[BranchChange], ran: RanNodes) -> Affected:
    """Returns the changes that conflicts make invalid.

    A relation is invalid if it conflicts, if a node that is to run again has changed it, or if a statement that has
    changed it has read an invalid table. A node runs again if it has changed an invalid relation, or is built from a
    node that runs again.
    """
    writers = {each.relation: _writers(each) for each in changes}
    lost = set(conflicts)
    again = {ran.relations[each] for each in conflicts if each in ran.relations}
    while True:
        again |= {node for relation in lost for node in writers.get(relation, ())}
        again |= ran.with_descendants(again)
        more = {each.relation for each in changes if writers[each.relation] & again or each.reads & lost}
        if more <= lost:
            break
        lost |= more
    nodes = frozenset(each for each in again if not each.startswith(_RUN_WITH_OTHERS))
    return Affected(list(conflicts.values()), frozenset(lost), nodes)


def _writers(change: BranchChange) -> frozenset[str]:
    facts = (CommitFacts.of_info(each) for each in change.infos)
    return frozenset(each.node_id for each in facts if each is not None and each.node_id is not None)
