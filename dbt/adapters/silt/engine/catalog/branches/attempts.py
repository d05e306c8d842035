"""The attempts to publish a branch, its end, its other sessions, and the files that live branches need.

_branches/<id>/...                        the documents of a branch; its id contains the time of its beginning
_branches/<id>/<n>.attempt.json           the n-th attempt to publish the branch, or its end
_branches/<id>/<id of a session>.joined   a session that works on the branch

`run_commands` describes the documents of the run's commands.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, TypeVar

from dbt.adapters.silt.engine.catalog.branches import named_documents
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import named_files
from dbt.adapters.silt.engine.kernel.publication.branch_changes import needed_files
from dbt.adapters.silt.engine.kernel.publication.documents import Status, began_ms
from dbt.adapters.silt.engine.kernel.publication.documents import parsed as parsed_document
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, ObjectMissing, PutResult, Store
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BASE, BranchLog

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_ATTEMPT: Final = ".attempt.json"
JOINED: Final = ".joined"
COMMAND: Final = ".command.json"
SIGN: Final = ".sign.json"

FOLDER: Final = "_branches"
_LONGEST_ID: Final = 19
_AGE_MS: Final = 7 * 24 * 60 * 60 * 1000
"""The age at which the commits of a branch that nothing has published are deleted, in milliseconds."""


class Joined(Exception):
    """Another session works on the branch, so its documents must be read again: no session begins a change any more."""


class AttemptTakenError(errors.ConcurrentModificationError):
    """Another process has recorded the next attempt to publish a branch, or its end."""


class BranchAttempts:
    """The attempts to publish a branch that several processes may publish or end.

    Args:
        register: the publications of the database.
        branch_id: the id of the branch.
        named: the named branch that it is, if it has a name.

    Attributes:
        number: the number of attempts that this process knows.
    """

    def __init__(self, register: Publications, branch_id: str, named: NamedBranch | None = None) -> None:
        self._register = register
        self._branch_id = branch_id
        self._named = named
        self._folder = f"{FOLDER}/{branch_id}"
        self._is_read_again = False
        self.number = 0

    def note_session(self) -> None:
        """Records a session that works on the branch, and checks that the branch is open.

        Raises:
            ConcurrentModificationError, CorruptLogError, StorageError: as `check_open`.
        """
        # The publisher records its attempt and then looks for sessions; a session does so in the other order.
        self._register.store.make_folder(self._folder)
        self._register.store.put(f"{self._folder}/{self._register.clock.new_id()}{JOINED}", b"{}")
        self.check_open()

    def has_sessions(self) -> bool:
        """Returns whether a session works on the branch, or has done so."""
        return any(path.endswith(JOINED) for path in documents(self._register.store, self._folder))

    def check_open(self) -> None:
        """Checks that no attempt to publish or close the branch is recorded, except attempts that were aborted.

        Raises:
            ConcurrentModificationError: if the branch is being published, or was published or closed.
            CorruptLogError, StorageError: if its documents cannot be read.
        """
        found = self._recorded()
        decisions = [self._register.documents.decision(each) for each in found if each is not None]
        if None in found:
            end = "was published or dropped, or continues on another branch"
        elif any(each is not None and each.status is Status.PUBLISHED for each in decisions):
            end = "was published"
        elif None in decisions:
            end = "is being published, or its process has ended while it published"
        elif self._is_too_old():
            end = "is too old to be published"
        else:
            return
        what = "run on whose branch" if self._named is None else f"branch `{self._named.name}` on which"
        raise errors.ConcurrentModificationError(
            f"the {what} this session works {end}",
            remedy="Run `reset silt.branch`, or leave the option `branch` out; then set it again if it continues",
        )

    def _is_too_old(self) -> bool:
        clock = self._register.clock
        return is_too_old(self._branch_id, clock) if self._named is None else not self._named.is_live(clock)

    def check_done(self) -> None:
        """Checks the same after a change of a session.

        Raises:
            CommitStateUnknownError: if the change may or may not have been published with the branch.
            CorruptLogError, StorageError: as `check_open`.
        """
        try:
            self.check_open()
        except errors.ConcurrentModificationError as error:
            problem = f"the change may or may not have been published with the run: {error.problem}"
            raise errors.CommitStateUnknownError(problem, remedy=error.remedy) from error

    def have_ended(self) -> bool:
        """Returns whether the branch was published or closed, as far as that is decided.

        Raises:
            CorruptLogError, StorageError: if its documents cannot be read.
        """
        found = self._recorded()
        decisions = (self._register.documents.decision(each) for each in found if each is not None)
        return None in found or any(each is not None and each.status is Status.PUBLISHED for each in decisions)

    def was_published(self) -> bool:
        """Ends all attempts to publish the branch; returns whether an attempt was published, or the branch is closed.

        Raises:
            CorruptLogError: if its documents cannot be read.
            StorageError: if the storage failed.
        """
        found = self._recorded()
        self.number = len(found)
        return any(each is None or self._register.close(each) for each in found)

    def is_visible(self) -> bool:
        """Returns whether an attempt to publish the branch was published; ends all attempts. Raises as
        `was_published`.
        """
        return any(each is not None and self._register.close(each) for each in self._recorded())

    def published_versions(self) -> dict[str, int] | None:
        """Returns the version of each table that the publication of the branch has changed, by its name, if it
        was published, as far as that is decided.

        Raises:
            CorruptLogError, StorageError: if its documents cannot be read.
        """
        for each in self._recorded():
            decision = None if each is None else self._register.documents.decision(each)
            if decision is not None and decision.status is Status.PUBLISHED:
                return decision.versions
        return None

    def continuation(self) -> NamedBranch | None:
        """Returns the named branch as it continues on another branch, if a publication has decided that it does.

        Raises:
            CorruptLogError, StorageError: if its documents cannot be read.
        """
        for path in self._attempts():
            publication, following = parsed(self._register.store, path, _attempt)
            if publication is not None and following is not None:
                decision = self._register.documents.decision(publication)
                if decision is not None and decision.status is Status.PUBLISHED:
                    return following
        return None

    def announce(self, publication: int | None, following: NamedBranch | None = None) -> None:
        """Records the next attempt to publish the branch, or its end; each number exists once.

        Args:
            publication: the publication that decides about the attempt; None ends the branch.
            following: the named branch as it continues on another branch if the publication is decided.

        Raises:
            Joined: if the attempt is recorded, and a session works on the branch, once.
            ConcurrentModificationError: if another process has recorded it.
        """
        number = self.number + 1
        body = json.dumps(
            {
                "publication": None if publication is None else str(publication),
                "following": None if following is None else asdict(following),
                "format": FORMAT,
            }
        ).encode()
        self._register.store.make_folder(self._folder)
        if self._register.store.put_if_absent(f"{self._folder}/{number}{_ATTEMPT}", body) is PutResult.EXISTS:
            raise AttemptTakenError("another process has published, continued or dropped these changes")
        self.number = number
        if publication is not None and not self._is_read_again:
            self._is_read_again = self.has_sessions()
            if self._is_read_again:
                raise Joined

    def _recorded(self) -> list[int | None]:
        """Returns the publication of each recorded attempt, or None if it closed the branch."""
        return [parsed(self._register.store, path, _attempt)[0] for path in self._attempts()]

    def _attempts(self) -> list[str]:
        return [path for path in documents(self._register.store, self._folder) if path.endswith(_ATTEMPT)]


def latest(register: Publications, branch: NamedBranch) -> NamedBranch:
    """Returns a named branch as it is now, after runs were published into it; its document then says so.

    Raises:
        CorruptLogError, StorageError: if its documents cannot be read.
    """
    found = branch
    while (following := BranchAttempts(register, found.branch, found).continuation()) is not None:
        found = replace(following, used_ms=max(following.used_ms, branch.used_ms))
    if found is not branch:
        with contextlib.suppress(errors.ReadOnlyStorageError):
            named_documents.move(register.store, branch, found)
    return found


def documents(store: Store, folder: str) -> list[str]:
    """Returns the paths of the documents of a branch, without the documents of its tables."""
    try:
        return [each.path for each in store.files_in_order(folder)]
    except ObjectMissing:
        return []


def parsed(store: Store, path: str, parse: Callable[[Any], T]) -> T:
    """Returns the value in a document of a branch.

    Raises:
        ObjectMissing: if it is missing.
        CorruptLogError, UnsupportedFeatureError: as `documents.parsed`.
    """
    return parsed_document(path, store.read(path, DOCUMENT_BYTES), parse)


def _attempt(body: Any) -> tuple[int | None, NamedBranch | None]:
    """Returns the publication of a recorded attempt, or None if it closed the branch, and how the branch continues."""
    following = body.get("following")
    return (
        None if body["publication"] is None else int(body["publication"]),
        None if following is None else named_documents.parse(following),
    )


def held_files(register: Publications, log: DeltaLog) -> dict[str, set[str]]:
    """Returns the files of a table that branches need, by the branch's id; see `needed_files`.

    Args:
        register: the publications of the table's database.
        log: the table.

    Raises:
        TableDamagedError: if a branch cannot be read.
        StorageError: if the storage failed.
    """
    held, location = {}, register.location_of(log)
    named = _present(register)
    for branch_id in _live(register, named):
        folder = f"{FOLDER}/{branch_id}/{location}"
        # A branch whose base was cleaned up can no longer be published.
        with contextlib.suppress(errors.VersionNotFoundError):
            if register.store.status(f"{folder}/{BASE}") is not None:
                held[branch_id] = needed_files(BranchLog(log, register.store.child(folder)))
            elif branch_id in named:
                version = named_documents.version_at(register, named[branch_id].cut_ms, log)
                held[branch_id] = set() if version is None else set(named_files(log.snapshot_at(version).files))
    return held


def used_on(register: Publications, log: DeltaLog) -> list[str]:
    """Returns the ids of the live branches on which a statement has used a table. Raises as `held_files`."""
    location = register.location_of(log)
    live = _live(register, _present(register))
    return [each for each in live if register.store.status(f"{FOLDER}/{each}/{location}/{BASE}") is not None]


def _present(register: Publications) -> dict[str, NamedBranch]:
    """Returns the named branches by the ids of their present branches."""
    present = (latest(register, each) for each in named_documents.all_named(register.store))
    return {each.branch: each for each in present}


def _live(register: Publications, named: Mapping[str, NamedBranch]) -> list[str]:
    """Returns the ids of the branches that can still be published or merged, sorted."""
    live = {branch_id for branch_id, is_old in _branches(register.store, register.clock, named) if not is_old}
    return sorted(live | {each.branch for each in named.values() if each.is_live(register.clock)})


def delete_old_branches(store: Store, clock: Clock) -> None:
    """Deletes the commits of branches that programs left long ago; their data files are left for VACUUM.

    A branch that cannot be deleted, because another user owns it, is left.

    Raises:
        StorageError: if the branches cannot be listed.
    """
    named = named_documents.by_id(store)
    for branch in named.values():
        if not branch.is_live(clock):
            named_documents.forget(store, branch)
    for branch_id, is_old in _branches(store, clock, named):
        if is_old:
            try:
                store.delete_folder(f"{FOLDER}/{branch_id}")
            except errors.StorageError as error:
                _logger.warning("an old branch is left: %s", error)


def _branches(store: Store, clock: Clock, named: Mapping[str, NamedBranch]) -> list[tuple[str, bool]]:
    """Returns the ids of the branches, and whether each is too old to be published."""
    names = {each.name for each in named.values() if each.is_live(clock)}

    def is_old(branch_id: str) -> bool:
        own = named.get(branch_id)
        if own is not None:
            return not own.is_live(clock)
        # A branch continues on a copy, of which its document may not know yet.
        return is_too_old(branch_id, clock) and named_documents.name_of_copy(store, branch_id) not in names

    return [(name, is_old(name)) for name in folders(store, FOLDER) if is_branch_id(name)]


def folders(store: Store, folder: str) -> list[str]:
    """Returns the names of the folders in a folder; empty if it does not exist."""
    try:
        return store.list_folders(folder)
    except ObjectMissing:
        return []


def is_branch_id(text: str) -> bool:
    """Returns whether a text can be the id of a branch."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID


def is_too_old(branch_id: str, clock: Clock) -> bool:
    """Returns whether a branch is too old to be published."""
    return began_ms(int(branch_id)) < clock.now_ms() - _AGE_MS
