"""The branches on which runs work until they are published, by the runs' ids.

    _branches/runs/<digest>.json              the branch of a run, and the run
    _branches/published/<id of branch>.json   a run that was published

The first is deleted when the run is published and its later statements have run, or it is dropped, or too old to be
published; the second when it is too old.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches import copies
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments, in_progress
from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation
from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement, LaterStatements
from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes, read_nodes, write_nodes
from dbt.adapters.silt.engine.catalog.names.documents import file_name
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.storage_errors import is_denied
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, PutResult
from dbt.adapters.silt.engine.kernel.table.json_fields import FORMAT

_logger = logging.getLogger(__name__)

_RUNS: Final = f"{branch_attempts.FOLDER}/runs"
_PUBLISHED: Final = f"{branch_attempts.FOLDER}/published"
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
        held: why it was not published when a command of it ended; empty if no command has ended so.
        onto: the name of the branch into which it is published; empty if it is published for everyone.
    """

    project: str
    target: str
    run_id: str
    branch: str = ""
    held: str = ""
    onto: str = ""

    @property
    def path(self) -> str:
        """The path of its document, relative to the database's root."""
        key = json.dumps([self.project, self.target, self.run_id, *filter(None, [self.onto])])
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
        found = _found(text, known)
        if found is not None:
            return found
        ids = ", ".join(each.run_id for each in known[-_SHOWN:])
        raise errors.RunNotFoundError(
            f"no run `{text}` with unpublished changes exists in this warehouse",
            remedy=f"Use one of {ids}" if ids else "No run is held: all changes are published or dropped",
        )

    def find_published(self, text: str) -> BranchedRun | None:
        """Returns the run that was published within the age limit of branches, by its id or the beginning of its id.

        Raises:
            RunNotFoundError: if several runs match, or the beginning is too short to be meant.
            StorageError: if the storage failed.
        """
        newest = {each.path: each for each in self._readable(_PUBLISHED)}
        return _found(text, list(newest.values()))

    def open(
        self, run: BranchedRun, enter: Callable[[CommandDocuments], None] = lambda _: None
    ) -> tuple[BranchedRun, Branch]:
        """Returns the run with its branch: the branch on which an earlier process has begun it, unless that was
        published or closed, or else a new branch.

        Args:
            enter: records the command of this process; called again if the branch has ended.

        Raises:
            BranchNotFoundError: if the branch into which the run is published does not exist.
            ReadOnlyStorageError: if the database is read-only.
            CorruptLogError: if a document of the branch cannot be read.
            StorageError: if the storage failed.
        """
        self._store.check_writable()
        self._delete_old()
        while True:
            known = self._read(run.path)
            if known is not None and branch_attempts.is_too_old(known.branch, self._register.clock):
                self._store.delete(run.path)
                known = None
            begun = known or replace(run, branch=self._new_branch(run).id, held="")
            self._store.make_folder(_RUNS)
            if known is None and self._store.put_if_absent(run.path, _text(begun)) is not PutResult.CREATED:
                continue
            # A publisher records its attempt and then looks for commands; a command does so in the other order.
            commands = self.commands(begun)
            enter(commands)
            branch = self._branch(begun)
            if not branch.attempts.was_published():
                return begun, branch.reopen()
            commands.leave()
            self._store.delete(run.path)

    def _new_branch(self, run: BranchedRun) -> Branch:
        return copies.copied(self._register, run.onto) if run.onto else Branch(self._register)

    def _branch(self, run: BranchedRun) -> Branch:
        """Returns the branch of a run, to be opened by `reopen`."""
        return copies.with_id(self._register, run.branch) if run.onto else Branch(self._register, run.branch)

    def existing(self, run: BranchedRun, to_drop: bool = False) -> Branch:
        """Returns the branch of a run.

        Args:
            to_drop: whether it is only to be dropped, so that it may have lost tables.

        Raises:
            ConcurrentModificationError: if it was published or closed.
            CorruptLogError, StorageError: as `open`.
        """
        branch = self._branch(run)
        if branch.attempts.was_published():
            how = self.end_of(run)
            self._store.delete(run.path)
            raise errors.ConcurrentModificationError(f"another process has {how} the run {run.run_id}")
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
        return self.of(text).join()

    def of(self, text: str) -> Branch:
        """Returns the branch of a run, to be opened by `reopen`. Raises as `find`."""
        return self._branch(self.find(text))

    def hold(self, run: BranchedRun, why: str) -> None:
        """Records why a run was not published, unless another process has ended it.

        Raises:
            CorruptLogError, StorageError: if the storage failed.
        """
        self._store.put(run.path, _text(replace(run, held=why)))
        if self.end_of(run) is not None:
            self._store.delete(run.path)

    def commands(self, run: BranchedRun) -> CommandDocuments:
        """Returns the commands that have worked on the branch of a run."""
        return CommandDocuments(self._store, run.branch, self._register.clock)

    def check_idle(self, run: BranchedRun) -> None:
        """Checks that no command works on a run.

        Raises:
            RunInProgressError: if a command works on it.
            CorruptLogError, StorageError: if its commands cannot be read.
        """
        at_work = self.commands(run).at_work()
        if at_work:
            raise in_progress(at_work)

    def end_of(self, run: BranchedRun) -> str | None:
        """Returns how the branch of a run has ended, as a participle, if it has ended.

        Raises:
            CorruptLogError, StorageError: if its documents cannot be read.
        """
        attempts = Branch(self._register, run.branch).attempts
        if not attempts.have_ended():
            return None
        if attempts.published_versions() is not None:
            return "published"
        other = self._read(run.path)
        return "dropped" if other is None or other.branch == run.branch else "continued"

    def read_others(self, run: BranchedRun, branch: Branch, commands: CommandDocuments) -> None:
        """Reads the changes of other commands on the branch since the command of this process began.

        Raises:
            ConcurrentModificationError: if the run was published or dropped.
            CorruptLogError, StorageError: if the branch cannot be read.
        """
        if not commands.has_parallel():
            return
        if branch.attempts.was_published():
            raise errors.ConcurrentModificationError(f"another process has {self.end_of(run)} the run {run.run_id}")
        branch.reopen()

    def publish(self, run: BranchedRun, branch: Branch, commands: CommandDocuments | None = None) -> dict[str, int]:
        """Publishes a run; returns the new version of each changed table, by its name. Its later statements have not
        run yet: see `run_later`.

        Args:
            commands: the commands of the run as they were read when it was decided to publish it.

        Raises:
            RunInProgressError: if a command has begun since, or another process tries to publish the run.
            SiltError: as `Branch.publish_once`.
        """
        is_waiting = bool(self.later(run))
        if commands is None:
            commands = self.commands(run)
            commands.all()
        try:
            versions = branch.publish_once(commands.check_unchanged)
        except errors.ConcurrentModificationError as error:
            if isinstance(error, branch_attempts.AttemptTakenError):
                branch.attempts.was_published()  # ends the attempt of the other process
            how = self.end_of(run)
            if how is not None:
                raise errors.ConcurrentModificationError(f"another process has {how} the run {run.run_id}") from error
            if isinstance(error, branch_attempts.AttemptTakenError):
                raise errors.RunInProgressError("another process tries to publish the run") from error
            raise
        self._note_published(run)
        if not is_waiting:
            self._forget(run)
        return versions

    def nodes(self, run: BranchedRun) -> RunNodes:
        """Returns the nodes of a run; empty if they are not recorded.

        Raises:
            CorruptLogError, StorageError: if they cannot be read.
        """
        return read_nodes(self._store, run.branch)

    def note_nodes(self, run: BranchedRun, nodes: RunNodes) -> None:
        """Records the nodes of a run.

        Raises:
            StorageError: if the storage failed.
        """
        write_nodes(self._store, run.branch, nodes)

    def begin_again(
        self,
        run: BranchedRun,
        branch: Branch,
        lost: Collection[Relation],
        later: LaterStatements,
        nodes: RunNodes | None = None,
    ) -> tuple[BranchedRun, Branch, LaterStatements]:
        """Drops the changes of some relations of a run; returns the run with the branch on which it continues, and its
        later statements.

        Another branch gets the other changes, so a process or session that still works on this branch cannot lose a
        change: it gets the error that the branch has ended.

        Args:
            nodes: the nodes of the run from then on; by default as they are.

        Raises:
            ConcurrentModificationError: if another process has published, continued or dropped the run.
            CorruptLogError, StorageError: if the storage failed.
        """
        other = branch.without(lost)
        continued = replace(run, branch=other.id, held="")
        self.commands(run).copy_to(other.id)
        copied = self.later(continued)
        later.copy(copied)
        self.note_nodes(continued, self.nodes(run) if nodes is None else nodes)
        branch.end(lost, other)
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

    def _note_published(self, run: BranchedRun) -> None:
        """Records that a run was published: if it has changed nothing, no table shows it."""
        try:
            self._store.make_folder(_PUBLISHED)
            self._store.put(f"{_PUBLISHED}/{run.branch}.json", _text(run))
            for each in self._store.files_in_order(_PUBLISHED):
                branch = each.name.removesuffix(".json")
                if branch_attempts.is_branch_id(branch) and branch_attempts.is_too_old(branch, self._register.clock):
                    self._store.delete(each.path)
        except errors.SiltError as error:
            _logger.warning("it is not recorded that the run %s was published: %s", run.run_id, error)

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
                with _left(run.path):
                    self._store.delete(run.path)

    def _readable(self, folder: str = _RUNS) -> list[BranchedRun]:
        paths: list[str] = []
        found: list[BranchedRun | None] = []
        with _left(folder):
            paths = branch_attempts.documents(self._store, folder)
        for path in paths:
            with _left(path):
                found.append(self._read(path))
        return [run for run in found if run is not None]

    def _read(self, path: str) -> BranchedRun | None:
        try:
            found = branch_attempts.parsed(self._store, path, _run)
        except ObjectMissing:
            return None
        if not branch_attempts.is_branch_id(found.branch):
            raise errors.CorruptLogError(f"{path} cannot be read: {found.branch!r:.100} is not the id of a branch")
        return found


@contextmanager
def _left(path: str) -> Iterator[None]:
    """Passes over a document that is damaged, or of another user; any other failure of the storage is raised."""
    try:
        yield
    except (errors.TableDamagedError, errors.UnsupportedFeatureError, errors.StorageError) as error:
        if isinstance(error, errors.StorageError) and not is_denied(error):
            raise
        _logger.warning("%s is left out: %s", path, error)


def _found(text: str, known: Sequence[BranchedRun]) -> BranchedRun | None:
    """Returns the run with an id, or with an id that begins with the text.

    Raises:
        RunNotFoundError: if several runs match, or the beginning is too short to be meant.
    """
    found = [each for each in known if each.run_id == text] or [
        each for each in known if text and each.run_id.startswith(text)
    ]
    if len(found) > 1:
        ids = ", ".join(f"{each.run_id} (target {each.target})" for each in found[:_SHOWN])
        raise errors.RunNotFoundError(f"{len(found)} runs begin with `{text}`: {ids}", remedy="Type more of the id")
    if found and found[0].run_id != text:
        check_length(text)
    return found[0] if found else None


def _run(body: Any) -> BranchedRun:
    found = {name: str(body[name]) for name in ("project", "target", "run_id", "branch", "held")}
    return BranchedRun(**found, onto=str(body.get("onto", "")))


def _text(run: BranchedRun) -> bytes:
    return json.dumps({"format": FORMAT, **asdict(run)}, ensure_ascii=False).encode()
