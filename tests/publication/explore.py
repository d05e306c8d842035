"""Visits all states of the model that can be reached, and checks each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.publication.model import (
    Commit,
    Kind,
    Model,
    Rules,
    State,
    Status,
    Step,
    Violation,
    is_undone,
    position,
    received,
    with_stack,
    with_status,
)

_WRITES = ("begin", "put", "decide", "abort")


def explore(first: State, rules: Rules) -> int:
    """Checks all states that can be reached, and returns their number.

    Raises:
        Violation: if a state breaks a rule, with the state.
    """
    model, count = Model(rules), 0
    for state in reachable(first, model):
        count += 1
        if any(len(set(log)) < len(log) for log in state.logs):
            raise Violation("a commit is applied twice")
        if not any(state.processes) and not state.late:
            check_end(recovered(state, model), rules)
    return count


def reachable(first: State, model: Model) -> Iterator[State]:
    """Returns all states that can be reached, each once."""
    found, waiting = {first}, [first]
    while waiting:
        state = waiting.pop()
        yield state
        for following in _following(state, model):
            if following not in found:
                found.add(following)
                waiting.append(following)


def _following(state: State, model: Model) -> Iterator[State]:
    for process, stack in enumerate(state.processes):
        if stack:
            yield model.after(state, process)
        if stack and state.crashes:
            crashed = replace(with_stack(state, process, ()), crashes=state.crashes - 1)
            yield crashed
            if stack[-1].name in _WRITES:
                yield replace(crashed, late=state.late | {stack[-1]})
    for late in state.late:
        yield _landed(replace(state, late=state.late - {late}), late, model)


def _landed(state: State, late: Step, model: Model) -> State:
    """Returns the state after the storage has received the last request of a crashed process."""
    if late.name == "put":
        return received(state, late)
    if late.name == "begin":
        is_free = state.documents[late.publication] is Status.MISSING
        return with_status(state, late.publication, Status.BEGUN) if is_free else state
    status = Status.PUBLISHED if late.name == "decide" else Status.ABORTED
    is_begun = state.documents[late.publication] is Status.BEGUN or not model.rules.replaces_if_begun
    return with_status(state, late.publication, status) if is_begun else state


def recovered(state: State, model: Model, most: int = 100) -> State:
    """Returns the state after a process that is not disturbed has recovered all publications.

    Raises:
        Violation: if the recovery does not end.
    """
    process = len(state.processes)
    steps = tuple(Step("recover", publication) for publication in range(len(state.documents)))
    state = replace(state, processes=(*state.processes, steps))
    for _ in range(most):
        if not state.processes[process]:
            return state
        state = model.after(state, process)
    raise Violation("a recovery never ends")


def check_end(state: State, rules: Rules) -> None:
    """Checks a state in which no process has anything left to do, and a last recovery has run.

    Raises:
        Violation: if a publication is neither complete nor undone, or if rows are lost or applied twice.
    """
    for publication, status in enumerate(state.documents):
        commit = Commit(Kind.PUBLICATION, publication)
        if status is Status.BEGUN:
            raise Violation(f"publication {publication} never ends")
        if status is Status.PUBLISHED and any(commit not in log for log in state.logs):
            raise Violation(f"publication {publication} is published, and a table lacks its rows")
        undone = [is_undone(log, publication) for log in state.logs]
        if status is Status.PUBLISHED and True in undone:
            raise Violation(f"publication {publication} is published and undone")
        if status is Status.ABORTED and False in undone:
            raise Violation(f"publication {publication} is aborted and not undone")
    if any(rules.conflicts) and list(state.documents) == [Status.PUBLISHED] * 2:
        raise Violation("two publications that conflict are both published")
    overwrite, published = Commit(Kind.OVERWRITE), [p for p, s in enumerate(state.documents) if s is Status.PUBLISHED]
    for log in state.logs if rules.overwrites_conflict else ():
        if overwrite in log and any(log.index(overwrite) < position(log, each) for each in published):
            raise Violation("a publication is published over an overwrite that conflicts with it")
