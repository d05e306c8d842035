"""The branches on which runs work until they are published, by the runs' ids.

    _branches/runs/<digest>.json   the branch of a run, the run, and why it is held

The document is deleted when the run is published and its later statements have run, or it is dropped, or too old to be
published.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from dbt.adapters.silt.engine.catalog import branch_attempts
from dbt.adapters.silt.engine.catalog.branch_conflicts import Relation
from dbt.adapters.silt.engine.catalog.branches import Branch
from dbt.adapters.silt.engine.catalog.documents import file_name
from dbt.adapters.silt.engine.catalog.later_statements import LaterStatement, LaterStatements
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PutResult

_logger = logging.getLogger(__name__)

_RUNS: Final = f"{branch_attempts.FOLDER}/runs"
_SHORTEST: Final = 4
_SHOWN: Final = 5


def check_length(text: str) -> None:
    """Checks that the beginning of a run's id is long enough to be meant: the run may be undone by it.

    Raises:
        RunNotFoundError: if it is shorter.
    """
    if len(text) < _SHORTEST:
        raise errors.RunNotFoundError(
            f"`{text}` is too short for the beginning of a run's id", remedy=f"Type at least {_SHORTEST} characters"
        )


@dataclass(frozen=True)
class BranchedRun:
    """A run that works on a branch.

    Attributes:
        project, target: the project and the target of the run.
        run_id: its id within the project and the target.
        branch: the id of its branch.
        held: why it was not published when it ended; empty if it has not ended.
    """

    project: str
    target: str
    run_id: str
    branch: str = ""
    held: str = ""

    @property
    def path(self) -> str:
        """The path of its document, relative to the database's root."""
        key = json.dumps([self.project, self.target, self.run_id])
        return f"{_RUNS}/{file_name(key)}.json"


class RunBranches:
    """The branches of the runs of a database.

    Args:
        register: the publications of the database.
    """

    def __init__(self, register: Publications) -> None:
        self._register = register
        self._store = register.store

    def all(self) -> list[BranchedRun]:
        """Returns the runs that are not published, oldest first, without runs whose documents cannot be read.

        Raises:
            StorageError: if the storage failed.
        """
        live = [run for run in self._readable() if not branch_attempts.is_too_old(run.branch, self._register.clock)]
        return sorted(live, key=lambda run: int(run.branch))

    def find(self, text: str) -> BranchedRun:
        """Returns the run that is not published, by its id or the beginning of its id.

        Raises:
            RunNotFoundError: if no run or several runs match, or the beginning is too short to be meant.
            StorageError: if the storage failed.
        """
        known = self.all()
        found = [each for each in known if each.run_id == text] or [
            each for each in known if text and each.run_id.startswith(text)
        ]
        if len(found) == 1:
            if found[0].run_id != text:
                check_length(text)
            return found[0]
        if found:
            ids = ", ".join(f"{each.run_id} (target {each.target})" for each in found[:_SHOWN])
            raise errors.RunNotFoundError(f"{len(found)} runs begin with `{text}`: {ids}", remedy="Type more of the id")
        ids = ", ".join(each.run_id for each in known[-_SHOWN:])
        raise errors.RunNotFoundError(
            f"no run `{text}` with unpublished changes exists in this warehouse",
            remedy=f"Use one of {ids}" if ids else "No run is held: all changes are published or dropped",
        )

    def open(self, run: BranchedRun) -> tuple[BranchedRun, Branch]:
        """Returns the run with its branch: the branch on which an earlier process has begun it, unless that was
        published or closed, or else a new branch.

        Raises:
            ReadOnlyStorageError: if the database is read-only.
            CorruptLogError: if a document of the branch cannot be read.
            StorageError: if the storage failed.
        """
        self._store.check_writable()
        self._delete_old()
        while True:
            known = self._read(run.path)
            if known is not None and not branch_attempts.is_too_old(known.branch, self._register.clock):
                branch = Branch(self._register, known.branch)
                if not branch.attempts.was_published():
                    return known, branch.reopen()
            if known is not None:
                self._store.delete(run.path)
            branch = Branch(self._register)
            begun = replace(run, branch=branch.id, held="")
            self._store.make_folder(_RUNS)
            if self._store.put_if_absent(run.path, _text(begun)) is PutResult.CREATED:
                return begun, branch

    def existing(self, run: BranchedRun, to_drop: bool = False) -> Branch:
        """Returns the branch of a run.

        Args:
            to_drop: whether it is only to be dropped, so that it may have lost tables.

        Raises:
            ConcurrentModificationError: if it was published or closed.
            CorruptLogError, StorageError: as `open`.
        """
        branch = Branch(self._register, run.branch)
        if branch.attempts.was_published():
            self._store.delete(run.path)
            raise errors.ConcurrentModificationError(f"another process has published or dropped the run {run.run_id}")
        return branch.reopen(leaves_lost=to_drop)

    def join(self, text: str) -> Branch:
        """Returns the branch of a run for a session that works on it next to the run.

        Args:
            text: the run's id, or the beginning of its id.

        Raises:
            RunNotFoundError: if no run or several runs match.
            ReadOnlyStorageError: if the database is read-only.
            ConcurrentModificationError, CorruptLogError, StorageError: as `Branch.join`.
        """
        self._store.check_writable()
        return Branch(self._register, self.find(text).branch).join()

    def hold(self, run: BranchedRun, why: str) -> None:
        """Records why a run was not published.

        Raises:
            StorageError: if the storage failed.
        """
        self._store.put(run.path, _text(replace(run, held=why)))

    def publish(self, run: BranchedRun, branch: Branch) -> dict[str, int]:
        """Publishes a run; returns the new version of each changed table, by its name. Its later statements have not
        run yet: see `run_later`. Raises as `Branch.publish_once`.
        """
        is_waiting = bool(self.later(run))
        versions = branch.publish_once()
        if not is_waiting:
            self._forget(run)
        return versions

    def begin_again(
        self, run: BranchedRun, branch: Branch, lost: Collection[Relation], later: LaterStatements
    ) -> tuple[BranchedRun, Branch, LaterStatements]:
        """Drops the changes of some relations of a run; returns the run with the branch on which it continues, and its
        later statements.

        Another branch gets the other changes, so a process or session that still works on this branch cannot lose a
        change: it gets the error that the branch has ended.

        Raises:
            ConcurrentModificationError: if a session works on the branch, or another process has published, continued
                or dropped the run.
            CorruptLogError, StorageError: if the storage failed.
        """
        if branch.attempts.has_sessions():
            raise errors.ConcurrentModificationError("a session works on the branch of the run")
        other = branch.without(lost)
        continued = replace(run, branch=other.id, held="")
        copied = self.later(continued)
        later.copy(copied)
        branch.end(lost)
        self._store.put(run.path, _text(continued))
        later.forget()
        return continued, other, copied

    def later(self, run: BranchedRun) -> LaterStatements:
        """Returns the statements that are to run after the publication of a run."""
        return LaterStatements(self._store, run.branch)

    def waiting(self, run: BranchedRun) -> BranchedRun | None:
        """Returns the run with its branch if it was published, and a statement is still to run after that.

        Raises:
            CorruptLogError: if a document of the branch cannot be read.
            StorageError: if the storage failed.
        """
        known = self._read(run.path)
        if known is None or not self.later(known):
            return None
        return known if Branch(self._register, known.branch).attempts.is_visible() else None

    def run_later(
        self, run: BranchedRun, carry_out: Callable[[LaterStatement], None], later: LaterStatements | None = None
    ) -> int:
        """Runs the later statements of a run that was published, at least once each; returns their number.

        Args:
            later: the statements, if this process has added some of them; by default they are read.

        Raises:
            CorruptLogError, StorageError: as `waiting`.
            Exception: of `carry_out`; the next call begins with that statement.
        """
        done = (later or self.later(run)).run(carry_out)
        if done:
            self._forget(run)
        return done

    def drop(self, run: BranchedRun, branch: Branch) -> None:
        """Drops the changes of a run, and its later statements. Raises as `Branch.close`."""
        branch.close()
        self.later(run).forget()
        self._forget(run)

    def drop_later(self, run: BranchedRun) -> int:
        """Drops the later statements of a run that was published; returns their number. Raises as `waiting`."""
        done = self.later(run).forget()
        self._forget(run)
        return done

    def _forget(self, run: BranchedRun) -> None:
        """Deletes the document of a run that has ended; the next process of the run deletes it otherwise."""
        try:
            self._store.delete(run.path)
        except errors.SiltError as error:
            _logger.warning("the document of the run %s is left: %s", run.run_id, error)

    def _delete_old(self) -> None:
        branch_attempts.delete_old_branches(self._store, self._register.clock)
        for run in self._readable():
            if branch_attempts.is_too_old(run.branch, self._register.clock):
                self._store.delete(run.path)

    def _readable(self) -> list[BranchedRun]:
        found = []
        for each in self._store.files_below(_RUNS):
            try:
                found.append(self._read(each.path))
            except errors.CorruptLogError as error:
                _logger.warning("%s", error)
        return [run for run in found if run is not None]

    def _read(self, path: str) -> BranchedRun | None:
        try:
            found = branch_attempts.parsed(self._store, path, _run)
        except ObjectMissing:
            return None
        if not branch_attempts.is_branch_id(found.branch):
            raise errors.CorruptLogError(f"{path} cannot be read: {found.branch!r:.100} is not the id of a branch")
        return found


def _run(body: Any) -> BranchedRun:
    return BranchedRun(**{name: str(body[name]) for name in asdict(BranchedRun("", "", ""))})


def _text(run: BranchedRun) -> bytes:
    return json.dumps(asdict(run), ensure_ascii=False).encode()
