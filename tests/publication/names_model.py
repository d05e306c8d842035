"""An explicit-state model of the names that publications change: all interleavings of their requests, with crashes.

The value of a name is the sequence of the changes that were made to it. A publication notes its change at each name,
decides, and finishes: it appends its change to the names, or only removes its notes. In an object store all names are
one document, which is replaced if it is the document that was read; a request can arrive after its sender has
crashed. In folders a lock makes the steps at each name one step, and no request under a lock arrives later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from tests.publication.model import Status, Violation

T = TypeVar("T")

WRITER: Final = 9
"""The change of the writer outside of publications: it drops the name."""
FREE: Final = -1

Value = tuple[int, ...]


class Name(NamedTuple):
    """A name: its value, the publication that has noted a change of it, and how often it was replaced."""

    value: Value = ()
    note: int = FREE
    tag: int = 0


class Step(NamedTuple):
    """The next request of a process.

    Attributes:
        kind: the name of a method of `NamesModel`.
        publication: the publication that it is about.
        name: the name that it reads or replaces.
        read: the name as it was read before it is replaced.
        seen: the value that a reader has seen before.
    """

    kind: str
    publication: int = FREE
    name: int = 0
    read: Name | None = None
    seen: Value | None = None


Stack = tuple[Step, ...]


class State(NamedTuple):
    """The storage and the processes.

    Attributes:
        documents: the status of each publication.
        bases: the values of the names that each publication has seen on its branch; empty before.
        late: requests of crashed processes that the storage has not received yet.
        crashes: the number of crashes that may still happen.
    """

    documents: tuple[Status, ...]
    bases: tuple[tuple[Value, ...], ...]
    names: tuple[Name, ...]
    processes: tuple[Stack, ...]
    late: frozenset[Step]
    crashes: int


@dataclass(frozen=True)
class Rules:
    """The rules of the protocol; each can be switched off, so that a violation shows that it is needed.

    Attributes:
        is_locked: whether a lock makes the steps at a name one step, as in folders.
        checks_value: a change is noted only if the name has the value of the branch.
        checks_decision: the decision is looked up between the reading of a name and the note.
        settles_notes: a writer settles the publication that has noted a change before it changes the name.
        replaces_if_unchanged: a name is replaced only if it is the name that was read.
        readers_look_up: readers look up the decision of the publication that has noted a change.
        finishes_aborted: the notes of an aborted publication are removed.
    """

    is_locked: bool = False
    checks_value: bool = True
    checks_decision: bool = True
    settles_notes: bool = True
    replaces_if_unchanged: bool = True
    readers_look_up: bool = True
    finishes_aborted: bool = True


class NamesModel:
    """The steps of the protocol.

    Args:
        rules: the rules that processes obey.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def after(self, state: State, process: int) -> State:
        """Returns the state after the next request of a process.

        Raises:
            Violation: if a reader sees a value that it must not see.
        """
        step = state.processes[process][-1]
        following: State = getattr(self, f"_{step.kind}")(state, process, step)
        return following

    # Publishers, and processes that settle the publications of others.

    def _branch(self, state: State, process: int, step: Step) -> State:
        """Reads the values of the names on a new branch."""
        values = tuple(shown(state, name) for name in range(len(state.names)))
        bases = _with(state.bases, step.publication, values)
        return _then(state._replace(bases=bases), process, Step("begin", step.publication))

    def _begin(self, state: State, process: int, step: Step) -> State:
        return _then(with_status(state, step.publication, Status.BEGUN), process, Step("note", step.publication))

    def _note(self, state: State, process: int, step: Step) -> State:
        """Reads the next name, and decides what to do with it."""
        own = step.publication
        if step.name == len(state.names):
            return _then(state, process, Step("decide", own))
        at = step.name if own == 0 else len(state.names) - 1 - step.name
        name = state.names[at]
        if name.note == own:
            return _then(state, process, step._replace(name=step.name + 1))
        if name.note != FREE:
            return self._settling(state, process, step, name.note)
        if self.rules.is_locked and self.rules.checks_decision and state.documents[own] is not Status.BEGUN:
            return _then(state, process, Step("finish", own))
        if self.rules.checks_value and meaning(name.value) != meaning(state.bases[own][at]):
            return _then(state, process, Step("abort", own))
        put = Step("put_note", own, at, name)
        if self.rules.is_locked:
            return _then(received(state, put, self.rules), process, step)
        return _then(state, process, step, put, *([Step("check", own)] if self.rules.checks_decision else []))

    def _settling(self, state: State, process: int, step: Step, other: int) -> State:
        """Settles a publication; of two that wait for each other, aborts the later."""
        waiting = [each.publication for each in state.processes[process][:-1] if each.kind == "note"]
        if other in waiting:
            return _then(state, process, Step("abort", max(other, step.publication)))
        return _then(state, process, step, Step("settle", other))

    def _settle(self, state: State, process: int, step: Step) -> State:
        """Reads the document of a publication."""
        status = state.documents[step.publication]
        following = {Status.MISSING: (), Status.BEGUN: (Step("note", step.publication),)}
        return _then(state, process, *following.get(status, (Step("finish", step.publication),)))

    def _check(self, state: State, process: int, step: Step) -> State:
        """Reads the document before the note that is about to be put; a decided publication is only finished."""
        if state.documents[step.publication] is Status.BEGUN:
            return _then(state, process)
        return with_stack(state, process, (*state.processes[process][:-3], Step("finish", step.publication)))

    def _put_note(self, state: State, process: int, step: Step) -> State:
        return _then(received(state, step, self.rules), process)

    def _decide(self, state: State, process: int, step: Step) -> State:
        return _then(received(state, step, self.rules), process, Step("finish", step.publication))

    def _abort(self, state: State, process: int, step: Step) -> State:
        state = _without_note(received(state, step, self.rules), process, step.publication)
        return _then(state, process, Step("finish", step.publication))

    def _finish(self, state: State, process: int, step: Step) -> State:
        """Reads the next name, and replaces it if it has the note of the publication."""
        if step.name == len(state.names):
            return _then(state, process)
        name = state.names[step.name]
        is_left = state.documents[step.publication] is Status.ABORTED and not self.rules.finishes_aborted
        if name.note != step.publication or is_left:
            return _then(state, process, step._replace(name=step.name + 1))
        put = Step("put_end", step.publication, step.name, name)
        if self.rules.is_locked:
            return _then(received(state, put, self.rules), process, step)
        return _then(state, process, step, put)

    def _put_end(self, state: State, process: int, step: Step) -> State:
        return _then(received(state, step, self.rules), process)

    # Other processes.

    def _change(self, state: State, process: int, step: Step) -> State:
        """Reads a name, settles the publication that has noted a change, and changes the name."""
        name = state.names[step.name]
        if WRITER in name.value:
            return _then(state, process)
        if name.note != FREE and self.rules.settles_notes:
            return _then(state, process, step, Step("settle", name.note))
        put = Step("put_change", FREE, step.name, name)
        if self.rules.is_locked:
            return _then(received(state, put, self.rules), process, step)
        return _then(state, process, step, put)

    def _put_change(self, state: State, process: int, step: Step) -> State:
        return _then(received(state, step, self.rules), process)

    def _show(self, state: State, process: int, step: Step) -> State:
        return _then(state, process, step._replace(kind="look_up", read=state.names[step.name]))

    def _look_up(self, state: State, process: int, step: Step) -> State:
        """Reads the document of the publication in the name that was read."""
        assert step.read is not None
        value, note = step.read.value, step.read.note
        if note != FREE and (state.documents[note] is Status.PUBLISHED or not self.rules.readers_look_up):
            value = (*value, note)
        unpublished = [each for each in value if each != WRITER and state.documents[each] is not Status.PUBLISHED]
        if unpublished:
            raise Violation(f"a reader sees the change of publication {unpublished[0]}, which is not published")
        if step.seen is not None and value[: len(step.seen)] != step.seen:
            raise Violation(f"a reader sees {value} after {step.seen}")
        return _then(state, process, *([step._replace(kind="show", seen=value)] if step.seen is None else []))


def meaning(value: Value) -> Value:
    """Returns what the name means: nothing after the change of the writer, which drops it."""
    return () if value and value[-1] == WRITER else value


def shown(state: State, name: int) -> Value:
    """Returns the value of a name that a reader sees."""
    value, note, _ = state.names[name]
    return (*value, note) if note != FREE and state.documents[note] is Status.PUBLISHED else value


def received(state: State, step: Step, rules: Rules) -> State:
    """Returns the state after the storage has received a request."""
    if step.kind in ("begin", "decide", "abort"):
        expected = Status.MISSING if step.kind == "begin" else Status.BEGUN
        status = {"begin": Status.BEGUN, "decide": Status.PUBLISHED, "abort": Status.ABORTED}[step.kind]
        is_expected = state.documents[step.publication] is expected
        return with_status(state, step.publication, status) if is_expected else state
    assert step.read is not None
    value, note, tag = step.read
    if rules.replaces_if_unchanged and not rules.is_locked and state.names[step.name].tag != tag:
        return state
    if step.kind == "put_note":
        note = step.publication
    elif step.kind == "put_end":
        is_published = state.documents[step.publication] is Status.PUBLISHED
        value, note = ((*value, step.publication) if is_published else value), FREE
    else:
        value = (*value, WRITER)
    return state._replace(names=_with(state.names, step.name, Name(value, note, state.names[step.name].tag + 1)))


def explore(first: State, rules: Rules) -> int:
    """Checks all states that can be reached, and returns their number.

    Raises:
        Violation: if a state breaks a rule.
    """
    model, found, waiting = NamesModel(rules), {first}, [first]
    while waiting:
        state = waiting.pop()
        if any(len(set(name.value)) < len(name.value) for name in state.names):
            raise Violation("a change is made twice")
        if not any(state.processes) and not state.late:
            check_end(recovered(state, model))
        for following in _following(state, model):
            if following not in found:
                found.add(following)
                waiting.append(following)
    return len(found)


def _following(state: State, model: NamesModel) -> Iterator[State]:
    for process, stack in enumerate(state.processes):
        if stack:
            yield model.after(state, process)
        if stack and state.crashes:
            crashed = with_stack(state, process, ())._replace(crashes=state.crashes - 1)
            yield crashed
            if stack[-1].kind in ("begin", "decide", "abort", "put_note", "put_end", "put_change"):
                yield crashed._replace(late=state.late | {stack[-1]})
    for late in state.late:
        yield received(state._replace(late=state.late - {late}), late, model.rules)


def recovered(state: State, model: NamesModel, most: int = 200) -> State:
    """Returns the state after a process that is not disturbed has settled all publications.

    Raises:
        Violation: if that does not end.
    """
    process = len(state.processes)
    begun = [each for each, status in enumerate(state.documents) if status is not Status.MISSING]
    state = state._replace(processes=(*state.processes, tuple(Step("settle", each) for each in begun)))
    for _ in range(most):
        if not state.processes[process]:
            return state
        state = model.after(state, process)
    raise Violation("a recovery never ends")


def check_end(state: State) -> None:
    """Checks a state in which every publication is settled.

    Raises:
        Violation: if a name has a note, lacks a change, or has that of an aborted publication.
    """
    for at, name in enumerate(state.names):
        if name.note != FREE:
            raise Violation(f"the note of publication {name.note} is left")
        for publication, status in enumerate(state.documents):
            if name.value.count(publication) != (status is Status.PUBLISHED):
                raise Violation(f"publication {publication} is {status.value}, and the name has {name.value}")
            if status is Status.PUBLISHED:
                before = name.value[: name.value.index(publication)]
                if meaning(before) != meaning(state.bases[publication][at]):
                    raise Violation(f"publication {publication} is published over a change that it has not seen")


def with_status(state: State, publication: int, status: Status) -> State:
    return state._replace(documents=_with(state.documents, publication, status))


def with_stack(state: State, process: int, stack: Stack) -> State:
    return state._replace(processes=_with(state.processes, process, stack))


def _with(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _then(state: State, process: int, *steps: Step) -> State:
    """Replaces the next step of a process by these steps, of which the last is next."""
    return with_stack(state, process, (*state.processes[process][:-1], *steps))


def _without_note(state: State, process: int, publication: int) -> State:
    """Removes the steps that note the changes of an aborted publication, and the steps above them except the last."""
    *below, last = state.processes[process]
    kinds = [(each.kind, each.publication) for each in below]
    if ("note", publication) not in kinds:
        return state
    return with_stack(state, process, (*below[: kinds.index(("note", publication))], last))
