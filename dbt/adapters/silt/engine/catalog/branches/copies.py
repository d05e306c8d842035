"""Copies of named branches: a run works on a copy until it is published into the branch.

    _branches/<id>/copy.json    the branch that was copied, and a hash of each of its changes at that moment

A publication into a branch makes another copy, of the present branch with the changes of the run. One decision ends the
copy of the run, and lets the name of the branch mean the new copy. No number of a version changes thereby.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final, TypeAlias

from dbt.adapters.silt.engine.catalog.branches import named_documents
from dbt.adapters.silt.engine.catalog.branches.attempts import AttemptTakenError, Joined, latest, parsed
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments, in_progress
from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation, relation_of
from dbt.adapters.silt.engine.catalog.branches.live_branches import present_branch
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.catalog.branches.run_nodes import read_nodes, write_nodes
from dbt.adapters.silt.engine.catalog.names.log_end import is_last
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.documents import Status, new_publication
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog

_TRIES: Final = 5
"""How often a copy is made if the branch changes meanwhile."""

Hashes: TypeAlias = Mapping[Relation, str]
"""A hash of each change of a branch."""


class BranchCopy(Branch):
    """A copy of a named branch, with further changes. Data files that the branch may need are left for VACUUM.

    Args:
        register: the publications of the database.
        source: the named branch that was copied.
        branch_id: the id of an existing copy, to be opened by `reopen`; by default a new copy.
        known: a hash of each change that the branch had when it was copied.
    """

    def __init__(
        self, register: Publications, source: NamedBranch, branch_id: str | None = None, known: Hashes | None = None
    ) -> None:
        own_id = branch_id or str(new_publication(register.clock))
        self._own_name = replace(source, branch=own_id)
        super().__init__(register, own_id, self._own_name)
        self._source = source
        self._known: Hashes = {} if known is None else known

    def record(self, known: Hashes) -> None:
        """Records the state of the branch of which this is a copy.

        Raises:
            StorageError: if the storage failed.
        """
        self._known = known
        hashes = [[*relation, text] for relation, text in sorted(known.items())]
        body = {"format": FORMAT, "of": asdict(self._source), "hashes": hashes}
        self._register.store.make_folder(self._folder)
        self._register.store.put(named_documents.copy_path(self.id), json.dumps(body, ensure_ascii=False).encode())

    def take(self, branch: Branch, lost: Collection[Relation] = ()) -> None:
        """Takes over the changes of a branch, except the changes of some relations.

        Raises:
            ConcurrentModificationError: if the branch ends meanwhile.
            CorruptLogError, StorageError: if the storage failed.
        """
        try:
            self._take_over(branch, lost)
        except ObjectMissing as error:
            raise errors.ConcurrentModificationError("another process has ended the branch meanwhile") from error

    def publish_once(self, check: Callable[[], None] = lambda: None) -> dict[str, int]:
        """Publishes the changes into the branch, at one moment, and ends this copy; see `Branch.publish_once`.

        Raises:
            BranchNotFoundError: if the branch was merged or deleted, or has expired.
            RunInProgressError: if a dbt command works on the branch.
            ConcurrentModificationError: if other programs have changed the same relations on the branch, or another
                process has published or ended this copy.
        """
        for _ in range(_TRIES):
            versions = self._published_once(check)
            if versions is not None:
                return versions
        raise errors.RunInProgressError(f"other programs change the branch `{self._source.name}` all the time")

    def _published_once(self, check: Callable[[], None]) -> dict[str, int] | None:
        """Returns the new versions, or None if the branch changes meanwhile."""
        present = self._present()
        present.attempts.was_published()  # ends the attempts of other processes
        self._check_publishable(present)
        states = [self.hashes(), present.hashes()]
        following = self._following(present, self._mine())
        following.record(states[1])
        publication = new_publication(self._register.clock)
        try:
            is_announced = self._announced(publication, present, following, check)
            is_same = is_announced and [present_state(self._register, each) for each in (self, present)] == states
        except errors.SiltError:
            self._abort(publication, following)
            raise
        if not is_same:
            self._abort(publication, following)
            self.reopen()
            return None
        if not self._register.close(publication, Status.PUBLISHED):
            following.discard()
            return None
        return self._ended(present)

    def _announced(self, publication: int, present: Branch, following: BranchCopy, check: Callable[[], None]) -> bool:
        """Records the attempt to publish, on this copy and on the branch; returns whether no other process has."""
        with suppress(Joined):
            self.attempts.announce(publication)
        check()
        try:
            with suppress(Joined):
                present.attempts.announce(publication, following._own_name)
        except AttemptTakenError:
            return False
        return True

    def _abort(self, publication: int, following: BranchCopy) -> None:
        self._register.close(publication)
        following.discard()

    def _ended(self, present: Branch) -> dict[str, int]:
        """Lets the name refer to the new copy, and deletes both earlier branches; returns the new versions."""
        mine, tables = self._mine(), self.tables()
        snapshots = {name: log.snapshot() for name, log in tables.items() if relation_of(name) in mine}
        forget_earlier(self._register, present)
        self.forget()
        return {name: each.version for name, each in snapshots.items() if not is_last(each)}

    def conflicts(self, database: str) -> dict[Relation, str]:
        """Returns the relations that the branch has changed since it was copied, and this copy too.

        Raises:
            SiltError: as `publish_once`.
        """
        moved = self._moved(self._present())
        return {each: f"{database}.{self._reason(each)}" for each in sorted(moved & self._mine())}

    def outdated(self) -> dict[Relation, str]:
        """Returns the relations that the branch has changed since it was copied. Raises as `publish_once`."""
        return {each: self._reason(each) for each in sorted(self._moved(self._present()))}

    def without(self, lost: Collection[Relation]) -> BranchCopy:
        """Begins another copy of the present branch, with the changes of this copy except those of some relations.

        Raises:
            SiltError: as `publish_once`; the other copy is then never used.
        """
        present = self._present()
        other = self._following(present, self._mine() - set(lost))
        other.record(present.hashes())
        return other

    def _following(self, present: Branch, mine: Collection[Relation]) -> BranchCopy:
        """Returns a copy of the present branch with the changes of some relations of this copy."""
        assert present.named is not None
        other = BranchCopy(self._register, present.named)
        other.take(present, mine)
        other.take(self, self.hashes().keys() - set(mine))
        owed = read_nodes(self._register.store, present.id)
        if owed.again:
            write_nodes(self._register.store, other.id, owed)
        return other

    def _present(self) -> Branch:
        found = present_branch(self._register, self._source.name)
        if found.cut_ms != self._source.cut_ms:
            raise errors.ConcurrentModificationError(
                f"the branch `{found.name}` has begun again with other tables since the run began"
            )
        return Branch(self._register, found.branch, found).reopen()

    def _check_publishable(self, present: Branch) -> None:
        at_work = CommandDocuments(self._register.store, present.id, self._register.clock).at_work()
        if at_work:
            raise in_progress(at_work)
        both = sorted(self._moved(present) & self._mine())
        if both:
            raise errors.ConcurrentModificationError("; ".join(map(self._reason, both)))

    def _mine(self) -> set[Relation]:
        return _differing(self.hashes(), self._known)

    def _moved(self, present: Branch) -> set[Relation]:
        return _differing(present.hashes(), self._known)

    def _reason(self, relation: Relation) -> str:
        name = ".".join(filter(None, relation))
        return f"{name}: another program has changed it on the branch `{self._source.name}` since the run began"

    def _left_out(self, lost: Collection[Relation]) -> Collection[Relation]:
        return {*lost, *(self.hashes().keys() - self._mine())}

    def _keeps_schema(self, schema: str, lost: Collection[Relation]) -> bool:
        return (schema, "") in lost

    def _delete_files(self, logs: Iterable[BranchLog]) -> None:
        """Leaves the files for VACUUM: the branch may need them."""

    def _forget(self, meanings: Iterable[Any]) -> None:
        """Leaves the definitions: the branch may need them."""


def copied(register: Publications, name: str) -> BranchCopy:
    """Returns a new copy of a named branch.

    Raises:
        BranchNotFoundError: if the branch does not exist, has ended or has expired.
        ConcurrentModificationError: if the branch is published into all the time.
        SiltError: as `Branch.reopen`.
    """
    for tries in range(1, _TRIES + 1):
        source = present_branch(register, name)
        copy = BranchCopy(register, source)
        try:
            copy.take(Branch(register, source.branch, source).reopen())
        except errors.ConcurrentModificationError:
            if tries == _TRIES:
                raise
            continue
        copy.record(copy.hashes())
        break
    return copy


def with_id(register: Publications, branch_id: str) -> Branch:
    """Returns the branch of a run by its id, to be opened by `reopen`; a copy if the run is published into a branch.

    Raises:
        CorruptLogError, StorageError: if its documents cannot be read.
    """
    try:
        source, known = parsed(register.store, named_documents.copy_path(branch_id), _copy)
    except ObjectMissing:
        return Branch(register, branch_id)
    return BranchCopy(register, source, branch_id, known)


def _copy(body: Any) -> tuple[NamedBranch, Hashes]:
    hashes = {(str(schema), str(name)): str(text) for schema, name, text in body["hashes"]}
    return named_documents.parse(body["of"]), hashes


def forget_earlier(register: Publications, earlier: Branch) -> None:
    """Lets the name of a branch mean the copy on which it continues, and deletes the documents of the earlier branch.

    Raises:
        CorruptLogError, StorageError: if its documents cannot be read or written.
    """
    assert earlier.named is not None
    latest(register, earlier.named)
    earlier.forget()


def present_state(register: Publications, branch: Branch) -> Hashes:
    """Returns the hashes of a branch as the storage has it now. Raises as `Branch.reopen`."""
    return Branch(register, branch.id, branch.named).reopen().hashes()


def _differing(some: Hashes, others: Hashes) -> set[Relation]:
    return {each for each in some.keys() | others.keys() if some.get(each) != others.get(each)}
