"""Finds the named branches that have neither ended nor expired."""

from __future__ import annotations

from dbt.adapters.silt.engine.catalog.branches import named_documents
from dbt.adapters.silt.engine.catalog.branches.attempts import BranchAttempts, latest
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.catalog.names.relation_names import normalize
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.near_names import near_names, some_of
from dbt.adapters.silt.engine.kernel.publication.publications import Publications


def all_branches(register: Publications) -> list[NamedBranch]:
    """Returns the branches as they are now, sorted by name.

    Raises:
        StorageError: if the storage failed.
    """
    live = (each for each in named_documents.all_named(register.store) if each.is_live(register.clock))
    present = (latest(register, each) for each in live)
    return sorted((each for each in present if not _have_ended(register, each)), key=lambda each: each.name)


def known_branch(register: Publications, text: str) -> NamedBranch | None:
    """Returns the branch with a name as it is now, or None if it does not exist, has ended or has expired.

    Raises:
        CorruptLogError, StorageError: if its documents cannot be read.
    """
    named = named_documents.read_named(register.store, named_documents.path_of(normalize(text)))
    found = None if named is None else latest(register, named)
    return None if found is None or is_gone(register, found) else found


def present_branch(register: Publications, text: str) -> NamedBranch:
    """Returns the branch with a name as it is now.

    Raises:
        BranchNotFoundError: if it does not exist, has ended or has expired.
        CorruptLogError, StorageError: if its documents cannot be read.
    """
    found = known_branch(register, text)
    if found is None:
        raise missing(register, f"the branch `{text}` does not exist in this warehouse", text)
    return found


def missing(register: Publications, problem: str, text: str) -> errors.BranchNotFoundError:
    """Returns the error for the name of a branch that does not exist, with names of branches in its remedy."""
    known = [each.name for each in all_branches(register)]
    near = near_names(text, known)
    if near:
        remedy = f"Did you mean {' or '.join(near)}?"
    else:
        remedy = f"Use one of {some_of(known, 5)}" if known else "Create it: `silt branch NAME`"
    return errors.BranchNotFoundError(problem, remedy=remedy)


def is_gone(register: Publications, branch: NamedBranch) -> bool:
    """Returns whether a branch has ended or expired. Raises as `known_branch`."""
    return not branch.is_live(register.clock) or _have_ended(register, branch)


def _have_ended(register: Publications, branch: NamedBranch) -> bool:
    return BranchAttempts(register, branch.branch, branch).have_ended()
