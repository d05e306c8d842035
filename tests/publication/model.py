"""An explicit-state model of the publication of a run: all interleavings of its requests, with crashes between them.

Two publications change two tables each. A publication is a document, which is `begun` until a conditional replacement
turns it into `published` or `aborted`, and one commit in the log of each table, which is put if its version is free.
A reader of this package takes the version before the commit of a publication that is not `published`. In the code,
the decision is a second document, which is written if it does not exist: the conditional replacement of the model.

Any process that meets a commit of a `begun` publication completes the publication before it commits on top; if two
publications wait for each other, the later one is aborted. The commits of an aborted publication are undone by a
commit each.

A process is a stack of steps. Each step is one request to the storage: it reads a log or a document, puts a commit, or
replaces a document. Between any two requests other processes run, and the process can crash; its last request can
reach the storage later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple


class Status(Enum):
    """What the document of a publication says."""

    MISSING = "missing"
    BEGUN = "begun"
    PUBLISHED = "published"
    ABORTED = "aborted"


class Kind(Enum):
    """What a commit in a log is."""

    PUBLICATION = "publication"
    UNDO = "undo of the publication"
    OVERWRITE = "overwrite by a writer of this package"
    FOREIGN = "append by another engine"


class Commit(NamedTuple):
    """A commit; `publication` is the number of its publication, or -1."""

    kind: Kind
    publication: int = -1


class Step(NamedTuple):
    """A request that a process makes next.

    Attributes:
        name: the name of a method of `Model`.
        publication: the publication that it is about.
        table: the table whose log it reads or writes; in a step through all tables, the number of finished tables.
        version: the version at which it puts a commit.
        commit: that commit.
        seen: the versions of the tables that a reader has read so far.
    """

    name: str
    publication: int = -1
    table: int = 0
    version: int = 0
    commit: Commit | None = None
    seen: tuple[int, ...] = ()


Log = tuple[Commit, ...]
Stack = tuple[Step, ...]


@dataclass(frozen=True)
class State:
    """The storage and the processes.

    Attributes:
        documents: the status of each publication.
        logs: the commits of each table.
        processes: the steps of each process, the next step last.
        late: requests of crashed processes that the storage has not received yet.
        crashes: the number of crashes that may still happen.
    """

    documents: tuple[Status, ...]
    logs: tuple[Log, ...]
    processes: tuple[Stack, ...]
    late: frozenset[Step]
    crashes: int

    def __hash__(self) -> int:
        return hash((self.documents, self.logs, self.processes, self.late, self.crashes))


class Violation(Exception):
    """A state that must not be reached."""


TABLES: Final = 2
ORDERS: Final = ((0, 1), (1, 0))
"""The order in which the publisher of each publication puts its commits; the real publisher puts them in parallel."""


@dataclass(frozen=True)
class Rules:
    """The rules of the protocol; each can be switched off, so that a violation shows that it is needed.

    Attributes:
        conflicts: whether the two publications conflict with each other in each table.
        overwrites_conflict: whether an overwrite of table 1 conflicts with the publications.
        completes_others: a process completes a `begun` publication before it commits on top of it.
        looks_for_its_commit: a process looks for the publication's commit in the log before it puts the commit.
        checks_conflicts: commits that were made since the publication's base are checked.
        replaces_if_begun: a document is replaced only while it is `begun`.
        decides_last: a publication is `published` only after all of its commits were put.
        reads_twice: a reader reads all tables again until it sees the same versions twice.
        leaves_out_undecided: a reader leaves out the commit of a publication that is `begun`, and later commits.
        leaves_out_aborted: a reader leaves out the commit of an aborted publication that is not undone yet, and later
            commits.
    """

    conflicts: tuple[bool, ...] = (False, False)
    overwrites_conflict: bool = False
    completes_others: bool = True
    looks_for_its_commit: bool = True
    checks_conflicts: bool = True
    replaces_if_begun: bool = True
    decides_last: bool = True
    reads_twice: bool = True
    leaves_out_undecided: bool = True
    leaves_out_aborted: bool = True


class Model:
    """The steps of the protocol.

    Args:
        rules: the rules that processes obey.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def after(self, state: State, process: int) -> State:
        """Returns the state after the next request of a process.

        Raises:
            Violation: if a reader sees rows that it must not see.
        """
        step = state.processes[process][-1]
        run: Callable[[State, int, Step], State] = getattr(self, f"_{step.name}")
        return run(state, process, step)

    # Publishers, and processes that complete the work of others.

    def _begin(self, state: State, process: int, step: Step) -> State:
        """Puts the document; its content is enough for any process to complete or to undo the publication."""
        state = with_status(state, step.publication, Status.BEGUN)
        return _then(state, process, Step("place", step.publication))

    def _place(self, state: State, process: int, step: Step) -> State:
        """Reads the log of the next table, and decides what to do there."""
        if step.table == (TABLES if self.rules.decides_last else 1):
            return _then(state, process, Step("decide", step.publication))
        table = ORDERS[step.publication][step.table]
        log, own = state.logs[table], Commit(Kind.PUBLICATION, step.publication)
        if own in log and self.rules.looks_for_its_commit:
            return _then(state, process, step._replace(table=step.table + 1))
        other = Commit(Kind.PUBLICATION, 1 - step.publication)
        put = Step("put", step.publication, table, len(log), own)
        following = () if self.rules.looks_for_its_commit else (step._replace(table=step.table + 1),)
        if self._is_beaten(log):
            return _then(state, process, Step("abort", step.publication))
        if other in log and (self.rules.completes_others or self.rules.checks_conflicts):
            return _then(state, process, step, put._replace(name="look"))
        return _then(state, process, *(following or (step,)), put)

    def _is_beaten(self, log: Log) -> bool:
        overwritten = self.rules.overwrites_conflict and Commit(Kind.OVERWRITE) in log
        return overwritten and self.rules.checks_conflicts

    def _look(self, state: State, process: int, step: Step) -> State:
        """Reads the document of the other publication, whose commit is in the log."""
        other = 1 - step.publication
        status = state.documents[other]
        if status is Status.BEGUN and self.rules.completes_others:
            waiting = [each.publication for each in state.processes[process] if each.name == "place"]
            is_circle = other in waiting
            following = Step("abort", max(other, step.publication)) if is_circle else Step("place", other)
            return _then(state, process, following)
        if status is Status.ABORTED and is_undone(state.logs[step.table], other) is False:
            return _then(state, process, Step("undo", other))
        is_conflict = self.rules.conflicts[step.table] and status is Status.PUBLISHED and self.rules.checks_conflicts
        return _then(state, process, Step("abort", step.publication) if is_conflict else step._replace(name="put"))

    def _put(self, state: State, process: int, step: Step) -> State:
        """Puts a commit if its version is free; the step below reads the log again."""
        return _then(received(state, step), process)

    def _decide(self, state: State, process: int, step: Step) -> State:
        """Replaces the document if it is `begun`: the moment of the publication."""
        if state.documents[step.publication] is Status.BEGUN or not self.rules.replaces_if_begun:
            return _then(with_status(state, step.publication, Status.PUBLISHED), process)
        is_aborted = state.documents[step.publication] is Status.ABORTED
        return _then(state, process, *([Step("undo", step.publication)] if is_aborted else []))

    def _abort(self, state: State, process: int, step: Step) -> State:
        """Replaces the document if it is `begun`; steps that wait for the publication find out by its document."""
        state = _without_place(state, process, step.publication)
        if state.documents[step.publication] is Status.BEGUN or not self.rules.replaces_if_begun:
            state = with_status(state, step.publication, Status.ABORTED)
        is_aborted = state.documents[step.publication] is Status.ABORTED
        return _then(state, process, *([Step("undo", step.publication)] if is_aborted else []))

    def _undo(self, state: State, process: int, step: Step) -> State:
        """Reads the log of the next table, and undoes the commit of the aborted publication if it is there."""
        if step.table == TABLES:
            return _then(state, process)
        log = state.logs[step.table]
        if is_undone(log, step.publication) is not False:
            return _then(state, process, step._replace(table=step.table + 1))
        undo = Commit(Kind.UNDO, step.publication)
        return _then(state, process, step, Step("put", step.publication, step.table, len(log), undo))

    # Other processes.

    def _recover(self, state: State, process: int, step: Step) -> State:
        """Reads the document of a publication, as a command does that finds it in the warehouse."""
        following = {Status.BEGUN: [Step("place", step.publication)], Status.ABORTED: [Step("undo", step.publication)]}
        return _then(state, process, *following.get(state.documents[step.publication], []))

    def _append_foreign(self, state: State, process: int, step: Step) -> State:
        """Appends to a table as another engine does, which knows no publications."""
        put = Step("put", table=step.table, version=len(state.logs[step.table]), commit=Commit(Kind.FOREIGN))
        return _then(received(state, put), process)

    def _overwrite(self, state: State, process: int, step: Step) -> State:
        """Reads a log, completes the publications that it meets, and puts a commit that replaces all rows."""
        log, own = state.logs[step.table], Commit(Kind.OVERWRITE)
        if own in log:
            return _then(state, process)
        met = [each.publication for each in log if each.kind is Kind.PUBLICATION]
        undecided = [each for each in met if state.documents[each] is Status.BEGUN]
        not_undone = [each for each in met if state.documents[each] is Status.ABORTED and is_undone(log, each) is False]
        if undecided and self.rules.completes_others:
            return _then(state, process, step, Step("place", undecided[0]))
        if not_undone:
            return _then(state, process, step, Step("undo", not_undone[0]))
        return _then(state, process, step, Step("put", table=step.table, version=len(log), commit=own))

    def _read(self, state: State, process: int, step: Step) -> State:
        """Reads the log of the next table; a reader goes through all tables until two rounds are the same."""
        table = len(step.seen) % TABLES
        return _then(state, process, step._replace(name="look_up", table=table, version=len(state.logs[table])))

    def _look_up(self, state: State, process: int, step: Step) -> State:
        """Reads the document of the newest publication in the log that was read, unless a later commit settles it."""
        seen = (*step.seen, self.newest_version(state, state.logs[step.table][: step.version]))
        following = Step("read", seen=seen)
        if len(seen) == TABLES and not self.rules.reads_twice:
            return self._checked(state, process, seen)
        if len(seen) == 2 * TABLES:
            if seen[:TABLES] == seen[TABLES:]:
                return self._checked(state, process, seen[TABLES:])
            following = Step("read", seen=seen[TABLES:])
        return _then(state, process, following)

    def newest_version(self, state: State, log: Log) -> int:
        """Returns the number of commits of a log that a reader sees: those before an unpublished publication."""
        of_package = [place for place, commit in enumerate(log) if commit.kind is not Kind.FOREIGN]
        if not of_package or log[of_package[-1]].kind is not Kind.PUBLICATION:
            return len(log)
        status = state.documents[log[of_package[-1]].publication]
        is_left_out = (status is Status.BEGUN and self.rules.leaves_out_undecided) or (
            status is Status.ABORTED and self.rules.leaves_out_aborted
        )
        return of_package[-1] if is_left_out else len(log)

    def _checked(self, state: State, process: int, seen: tuple[int, ...]) -> State:
        found = [rows(log[: seen[table]]) for table, log in enumerate(state.logs)]
        for publication, status in enumerate(state.documents):
            has = [publication in each for each in found]
            if any(has) and not all(has):
                raise Violation(f"a reader sees a part of publication {publication}")
            if any(has) and status is not Status.PUBLISHED:
                raise Violation(f"a reader sees publication {publication}, which is {status.value}")
        return _then(state, process)


def rows(log: Log) -> set[int]:
    """Returns the publications whose rows are in a table with these commits."""
    found: set[int] = set()
    for commit in log:
        if commit.kind is Kind.PUBLICATION:
            found.add(commit.publication)
        if commit.kind is Kind.UNDO:
            found.discard(commit.publication)
    return found


def is_undone(log: Log, publication: int) -> bool | None:
    """Returns whether the commit of a publication is undone; None if it is not in the log."""
    if Commit(Kind.PUBLICATION, publication) not in log:
        return None
    return Commit(Kind.UNDO, publication) in log


def position(log: Log, publication: int) -> int:
    commit = Commit(Kind.PUBLICATION, publication)
    return log.index(commit) if commit in log else -1


def received(state: State, step: Step) -> State:
    """Returns the state after the storage has received the put of a commit."""
    log = state.logs[step.table]
    if step.commit is None or len(log) != step.version:
        return state
    logs = (*state.logs[: step.table], (*log, step.commit), *state.logs[step.table + 1 :])
    return replace(state, logs=logs)


def with_status(state: State, publication: int, status: Status) -> State:
    documents = (*state.documents[:publication], status, *state.documents[publication + 1 :])
    return replace(state, documents=documents)


def _then(state: State, process: int, *steps: Step) -> State:
    """Replaces the next step of a process by these steps, of which the last is next."""
    stack = (*state.processes[process][:-1], *steps)
    return with_stack(state, process, stack)


def with_stack(state: State, process: int, stack: Stack) -> State:
    return replace(state, processes=(*state.processes[:process], stack, *state.processes[process + 1 :]))


def _without_place(state: State, process: int, publication: int) -> State:
    """Removes the steps that place the commits of an aborted publication, and the steps above them except the last."""
    *below, last = state.processes[process]
    names = [(each.name, each.publication) for each in below]
    if ("place", publication) not in names:
        return state
    return with_stack(state, process, (*below[: names.index(("place", publication))], last))
