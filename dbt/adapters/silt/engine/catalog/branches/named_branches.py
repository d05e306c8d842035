"""Named branches: several commands, people and processes change a line of a database together until it is merged.

A named branch is a branch as of a run (`run_branches`), but it begins at the moment of its creation, has a name and an
owner, and expires when nothing has used it for some days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches import live_branches, named_documents, updates
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments, in_progress
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.branches.updates import BranchUpdate, NodesOf
from dbt.adapters.silt.engine.catalog.names.relation_names import (
    RelationName,
    check_identifier,
    check_new_names,
    normalize,
)
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.publications import Publications

DAYS: Final = 14
"""How many days a branch is left if nothing uses it, by default."""
_MOST_DAYS: Final = 3650
_SHORTEST_HASH: Final = 12


@dataclass(frozen=True)
class BranchState:
    """The changes on a named branch, compared with its base.

    Attributes:
        changed: the full names of the relations and functions that it has changed, sorted.
        behind: how many versions the present table is ahead of the branch's base, by the full names of the tables that
            the branch has used; only tables that are ahead.
    """

    changed: Sequence[str]
    behind: Mapping[str, int]


@dataclass(frozen=True)
class MergeConflict:
    """A table, view or function that both a branch and its base have changed.

    Attributes:
        reason: its name and the conflict.
        commits: the commits of its base since the branch began with it, newest first, at most some of them.
    """

    reason: str
    commits: Sequence[str]

    def __str__(self) -> str:
        return f"{self.reason} ({', '.join(self.commits)})" if self.commits else self.reason


class NamedBranches:
    """The named branches of a database.

    Args:
        register: the publications of the database.
        database: its name.
        schemas: returns the names of the schemas of a database.
    """

    def __init__(self, register: Publications, database: str, schemas: Callable[[str], Sequence[str]]) -> None:
        self._register = register
        self._store = register.store
        self._database = database
        self._schemas = schemas
        self._runs = RunBranches(register)

    def all(self) -> list[NamedBranch]:
        """Returns the branches that have not ended or expired, sorted by name.

        Raises:
            StorageError: if the storage failed.
        """
        return live_branches.all_branches(self._register)

    def create(self, name: str, owner: str, days: int = DAYS) -> NamedBranch:
        """Creates a branch that begins with the present tables, without a copy.

        Args:
            owner: the user who creates it.
            days: how many days it is left if nothing uses it.

        Raises:
            InvalidNameError: if the name cannot be a name.
            InvalidArgumentError: if a branch, a run or a schema has the name, or the number of days is invalid.
            ReadOnlyStorageError: if the database is read-only.
            StorageError: if the storage failed.
        """
        self._store.check_writable()
        branch_attempts.delete_old_branches(self._store, self._register.clock)
        name = self._checked_new(name, days)
        branch_id, now_ms = Branch(self._register).id, self._register.clock.now_ms()
        created = NamedBranch(
            name, owner, branch_id, named_documents.now_of_store(self._store, branch_id), days, now_ms
        )
        while not named_documents.put_new(self._store, created):
            other = named_documents.read_named(self._store, created.path)
            other = None if other is None else branch_attempts.latest(self._register, other)
            if other is not None and not live_branches.is_gone(self._register, other):
                raise errors.InvalidArgumentError(
                    f"the branch `{name}` exists: {other.owner} has created it",
                    remedy="Choose another name, or delete the branch: `silt branch --delete`",
                )
            if other is not None:
                named_documents.forget(self._store, other)
        return created

    def find(self, text: str) -> NamedBranch:
        """Returns a branch by its name.

        Raises:
            BranchNotFoundError: if it does not exist, has ended or has expired.
            CorruptLogError, StorageError: if its document cannot be read.
        """
        return live_branches.present_branch(self._register, text)

    def branch(self, text: str, only: RelationName | None = None) -> Branch:
        """Returns a named branch, or the branch of a run that is not published, to read it.

        Args:
            text: the name of the branch, or the run's id or its beginning.
            only: see `Branch.reopen`.

        Raises:
            BranchNotFoundError: if neither exists.
            RunNotFoundError: if several runs match, or the beginning is too short to be meant.
            SiltError: as `Branch.reopen`.
        """
        return self._branch_of(text).reopen(only=only)

    def join(self, text: str) -> Branch:
        """Returns the same for a session that also writes, next to other processes. Raises as `branch`, and:

        Raises:
            ReadOnlyStorageError: if the database is read-only.
            ConcurrentModificationError: as `Branch.join`.
        """
        self._store.check_writable()
        return self._branch_of(text).join()

    def named(self, name: str) -> Branch:
        """Returns a named branch to work on it, next to other processes. Raises as `find` and `join`."""
        self._store.check_writable()
        found = self.find(name)
        named_documents.renew(self._store, found, self._register.clock)
        return self._opened(found).join()

    def opened(self, branch: NamedBranch) -> Branch:
        """Returns the changes on a branch. Raises as `Branch.reopen`."""
        return self._opened(branch).reopen()

    def state(self, branch: NamedBranch) -> BranchState:
        """Returns the changes on a branch. Raises as `Branch.reopen`."""
        opened = self._opened(branch).reopen(leaves_lost=True)
        return BranchState(opened.changed(self._database), opened.behind())

    def commands(self, branch: NamedBranch) -> CommandDocuments:
        """Returns the dbt commands that have worked on a branch."""
        return CommandDocuments(self._store, branch.branch, self._register.clock)

    def delete(self, branch: NamedBranch) -> None:
        """Deletes a branch with its changes.

        Raises:
            RunInProgressError: if a dbt command works on it.
            ConcurrentModificationError: if another process merges it.
            CorruptLogError, StorageError: if the storage failed; repeating it completes it.
        """
        self._check_idle(branch)
        for run in self._held(branch):
            self._runs.drop(run, self._runs.existing(run, to_drop=True))
        opened = self._opened(branch)
        if not opened.attempts.was_published():
            opened.reopen(leaves_lost=True).close()
        named_documents.forget(self._store, branch)

    def update(self, name: str, nodes_of: NodesOf) -> BranchUpdate:
        """Moves a branch to the present tables, and returns the nodes that must then be built again: see `built_again`.

        Raises:
            BranchNotFoundError: if the branch does not exist.
            RunInProgressError: if a dbt command works on it, or a run is held that is to be published into it.
            SiltError: as `update_branch`.
        """
        self._store.check_writable()
        branch = self.find(name)
        self._check_idle(branch)
        self._check_none_held(branch)
        return updates.update_branch(self._register, self._database, branch.name, nodes_of)

    def built_again(self, name: str) -> None:
        """Records that all nodes are built again which the updates of a branch have named. Raises as `find`."""
        updates.note_built(self._register, name)

    def merge(self, name: str, if_hash: str | None = None) -> dict[str, int]:
        """Publishes all changes of a branch at one moment, or none, and ends it; returns the new version of each
        changed table, by its name. Repeating a merge that was interrupted completes it.

        Args:
            if_hash: the `Branch.state_hash` of the only state that is merged, or its beginning.

        Raises:
            BranchNotFoundError: if the branch does not exist, or has expired.
            RunInProgressError: if a dbt command works on it, or a run is held that is to be published into it.
            MergeConflictError: if other programs have changed the same tables or names.
            ConcurrentModificationError: if the branch has changed since it had that hash, or another process merges or
                deletes it.
            SiltError: as `Branch.publish_once`.
        """
        known = named_documents.read_named(self._store, named_documents.path_of(normalize(name)))
        branch = self.find(name) if known is None else branch_attempts.latest(self._register, known)
        opened = self._opened(branch)
        if opened.attempts.was_published():
            return self._merged_before(branch, opened)
        if not branch.is_live(self._register.clock):
            self.find(name)  # raises the error that it does not exist: its files may be deleted
        self._check_idle(branch)
        self._check_none_held(branch)
        self._check_none_owed(branch)
        opened.reopen()
        self._check_conflicts(branch, opened)
        try:
            versions = opened.publish_once(lambda: self._check_hash(branch, if_hash))
        except errors.ConcurrentModificationError:
            if opened.attempts.was_published():  # ends the attempt
                return self._merged_before(branch, opened)
            raise
        named_documents.forget(self._store, branch)
        return versions

    def conflicts(self, branch: NamedBranch) -> list[MergeConflict]:
        """Returns the conflicts that a merge would meet now, sorted by name. Raises as `Branch.conflicts`."""
        return self._conflicts(self.opened(branch))

    def _conflicts(self, opened: Branch) -> list[MergeConflict]:
        found = opened.conflicts(self._database)
        return [MergeConflict(reason, tuple(opened.commits_since(each))) for each, reason in sorted(found.items())]

    def _check_conflicts(self, branch: NamedBranch, opened: Branch) -> None:
        found = self._conflicts(opened)
        if found:
            raise errors.MergeConflictError(
                f"the branch `{branch.name}` conflicts with other programs: {'; '.join(map(str, found))}"
            )

    def _check_hash(self, branch: NamedBranch, if_hash: str | None) -> None:
        if if_hash is None:
            return
        if len(if_hash) < _SHORTEST_HASH or not self.opened(branch).state_hash().startswith(if_hash.lower()):
            raise errors.ConcurrentModificationError(
                f"the branch `{branch.name}` does not have the hash {if_hash:.70}",
                remedy="Nothing was merged: look at its changes again, and give at least "
                f"{_SHORTEST_HASH} characters of its present hash",
            )

    def _merged_before(self, branch: NamedBranch, opened: Branch) -> dict[str, int]:
        versions = opened.attempts.published_versions()
        if versions is None:
            raise errors.BranchNotFoundError(f"the branch `{branch.name}` was deleted")
        named_documents.forget(self._store, branch)
        return versions

    def _check_idle(self, branch: NamedBranch) -> None:
        of_runs = (self._runs.commands(each) for each in self._held(branch))
        at_work = [command for each in (self.commands(branch), *of_runs) for command in each.at_work()]
        if at_work:
            raise in_progress(at_work)

    def _check_none_held(self, branch: NamedBranch) -> None:
        held = [each.run_id for each in self._held(branch)]
        if held:
            raise errors.RunInProgressError(
                f"the run {held[0]} on the branch `{branch.name}` is held, so the branch does not have its changes",
                remedy=f"Publish it into the branch (`silt publish {held[0]}`), or drop it (`silt drop-run {held[0]}`)",
            )

    def _check_none_owed(self, branch: NamedBranch) -> None:
        owed = sorted(updates.owed_nodes(self._register, branch.branch))
        if owed:
            raise errors.ConcurrentModificationError(
                f"the branch `{branch.name}` was updated and must build {', '.join(owed)} again",
                remedy=f"Build it: `silt branch {branch.name} --update`",
            )

    def _held(self, branch: NamedBranch) -> list[BranchedRun]:
        """Returns the runs that are not yet published into a branch."""
        return [each for each in self._runs.all() if each.onto == branch.name]

    def _branch_of(self, text: str) -> Branch:
        found = live_branches.known_branch(self._register, text)
        if found is not None:
            named_documents.renew(self._store, found, self._register.clock)
            return self._opened(found)
        try:
            return self._runs.of(text)
        except errors.RunNotFoundError as error:
            if "too short" in error.problem or "begin with" in error.problem:
                raise
            problem = f"neither a branch nor an unpublished run `{text}` exists in this warehouse"
            if self.all():
                raise live_branches.missing(self._register, problem, text) from error
            raise errors.RunNotFoundError(problem, remedy=error.action) from error

    def _opened(self, branch: NamedBranch) -> Branch:
        return Branch(self._register, branch.branch, branch)

    def _checked_new(self, text: str, days: int) -> str:
        """Returns the normalized name of a new branch if nothing else has it."""
        name = check_identifier(text, "branch")
        check_new_names(name)
        if not 1 <= days <= _MOST_DAYS:
            raise errors.InvalidArgumentError(
                f"a branch cannot expire after {days} days", remedy=f"Give 1 to {_MOST_DAYS} days"
            )
        run = next((each.run_id for each in self._runs.all() if normalize(each.run_id).startswith(name)), None)
        if run is not None or name in self._schemas(self._database):
            what = f"the schema `{name}` exists" if run is None else f"the run `{run}` is not published"
            raise errors.InvalidArgumentError(f"{what}, and the names would be confused", remedy="Choose another name")
        return name
