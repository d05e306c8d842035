"""Moves a named branch to the present tables: keeps the changes that are still valid, and names what to build again.

A change is no longer valid if others have changed the same relation since the branch began with it, or a table that the
change has read, also through other changes of the branch. The branch continues on a copy without these changes. The
nodes that have made them are recorded there until they are built again: `_branches/<id>/run.nodes.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from dbt.adapters.silt.engine.catalog.branches import copies, named_documents
from dbt.adapters.silt.engine.catalog.branches.attempts import AttemptTakenError, Joined
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation
from dbt.adapters.silt.engine.catalog.branches.copies import BranchCopy
from dbt.adapters.silt.engine.catalog.branches.live_branches import present_branch
from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes, read_nodes, write_nodes
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.documents import Status, new_publication
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

NodesOf: TypeAlias = Callable[[Relation, Sequence[CommitInfo]], frozenset[str]]
"""Returns the nodes that have made the commits of a relation; without nodes, it was changed by hand."""


@dataclass(frozen=True)
class BranchUpdate:
    """The move of a branch to the present tables.

    Attributes:
        kept: the relations whose changes are still valid, sorted.
        lost: the relations whose changes are no longer valid, each with the reason.
        nodes: the unique ids of the nodes that must be built again, also since earlier updates.
    """

    kept: Sequence[Relation]
    lost: Mapping[Relation, str]
    nodes: frozenset[str]


def update_branch(register: Publications, database: str, name: str, nodes_of: NodesOf) -> BranchUpdate:
    """Moves a branch to the present tables, at one moment.

    Args:
        database: the name of the database.
        name: the normalized name of the branch.

    Raises:
        BranchNotFoundError: if it does not exist.
        MergeConflictError: if a change that is no longer valid was made by hand, so that nothing can make it again.
        ConcurrentModificationError: if the branch is changed, merged or deleted meanwhile; nothing was changed.
        CorruptLogError, StorageError: if the storage failed.
    """
    source = present_branch(register, name)
    present = Branch(register, source.branch, source)
    present.attempts.was_published()  # ends the attempts of other processes
    present.reopen()
    state = present.hashes()
    lost = _invalid(present, database, state)
    nodes = _nodes(present, database, lost, nodes_of) | read_nodes(register.store, present.id).again
    following = _begun(register, replace(source, used_ms=register.clock.now_ms()))
    following.take(present, lost)
    following.record(state)
    write_nodes(register.store, following.id, RunNodes(again=nodes))
    _continue(register, present, state, following)
    return BranchUpdate(sorted(state.keys() - lost.keys()), lost, nodes)


def owed_nodes(register: Publications, branch_id: str) -> frozenset[str]:
    """Returns the nodes that must be built again on a branch since it was updated. Raises as `update_branch`."""
    return read_nodes(register.store, branch_id).again


def note_built(register: Publications, name: str) -> None:
    """Records that all nodes are built again which a branch has lost. Raises as `update_branch`."""
    write_nodes(register.store, present_branch(register, name).branch, RunNodes())


def _invalid(present: Branch, database: str, changed: Mapping[Relation, str]) -> dict[Relation, str]:
    """Returns the changes that are not valid with the present tables, each with the reason."""
    moved = {**present.outdated(), **present.conflicts(database)}
    lost = {each: reason for each, reason in moved.items() if each in changed}
    reads = {each.relation: each.reads - {each.relation} for each in present.changes(database) if each.infos}
    while True:
        causes = moved.keys() | lost.keys()
        more = {each: min(found) for each, read in reads.items() if each not in lost and (found := read & causes)}
        if not more:
            return lost
        lost |= {each: f"it has read {'.'.join(cause)}" for each, cause in more.items()}


def _nodes(present: Branch, database: str, lost: Mapping[Relation, str], nodes_of: NodesOf) -> frozenset[str]:
    infos = {each.relation: list(each.infos.values()) for each in present.changes(database)}
    found = {each: nodes_of(each, infos.get(each, [])) for each in lost}
    by_hand = sorted(each for each, nodes in found.items() if not nodes)
    if by_hand:
        reasons = "; ".join(f"{'.'.join(each)} ({lost[each]})" for each in by_hand)
        raise errors.MergeConflictError(
            f"these changes were made by hand, and others have changed what they are based on: {reasons}",
            remedy="Nothing was changed. Delete the branch, create it again, and make them on the present tables",
        )
    return frozenset[str]().union(*found.values())


def _begun(register: Publications, source: named_documents.NamedBranch) -> BranchCopy:
    """Returns a new copy of a branch that begins with the present tables."""
    branch_id = str(new_publication(register.clock))
    cut_ms = named_documents.now_of_store(register.store, branch_id)
    return BranchCopy(register, replace(source, cut_ms=cut_ms), branch_id)


def _continue(register: Publications, present: Branch, state: Mapping[Relation, str], following: BranchCopy) -> None:
    """Lets the name of a branch mean a copy of it, unless the branch has changed since it had a state."""
    publication = new_publication(register.clock)
    try:
        with suppress(Joined):
            present.attempts.announce(publication, following.named)
        is_same = copies.present_state(register, present) == state
    except AttemptTakenError:
        is_same = False
    if not (is_same and register.close(publication, Status.PUBLISHED)):
        register.close(publication)
        following.discard()
        raise errors.ConcurrentModificationError("the branch has changed meanwhile", remedy="Run it again")
    copies.forget_earlier(register, present)
