"""Checks that overlapping operations on names took effect in some sequential order.

An operation takes effect at one instant between its start and its end. An operation that crashed, or whose outcome is
unknown, takes effect at an instant after its start, or never (Herlihy and Wing, "Linearizability", 1990). The search is
that of Wing and Gong, "Testing and Verifying Concurrent Objects" (1993).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

State = frozenset[tuple[str, str]]
"""The relation of each name: `table <id>` or `view <text>`; absent names have no entry."""

Effect = Callable[[dict[str, str], str], dict[str, str] | None]
"""A function that returns the state after an outcome of an operation, or None if the outcome is impossible."""


@dataclass(frozen=True)
class Operation:
    """An operation that was started.

    Attributes:
        outcome: the answer, or None without an answer.
        success: the outcome if it takes effect without an answer.
    """

    what: str
    effect: Effect
    began: int
    ended: int | None
    outcome: str | None
    success: str = "ok"


def order_of(operations: Sequence[Operation], first: State = frozenset()) -> list[int] | None:
    """Returns an order in which the operations may have taken effect, as their numbers, or None if no order exists."""
    seen: set[tuple[frozenset[int], State]] = set()

    def search(done: tuple[int, ...], state: State) -> list[int] | None:
        left = [number for number in range(len(operations)) if number not in done]
        if all(operations[number].outcome is None for number in left):
            return list(done)
        key = (frozenset(done), state)
        if key in seen:
            return None
        seen.add(key)
        soonest = min(  # type: ignore[type-var]
            (operations[number].ended for number in left if operations[number].ended is not None), default=None
        )
        for number in left:
            operation = operations[number]
            if soonest is not None and operation.began > soonest:
                continue
            after = operation.effect(dict(state), operation.outcome or operation.success)
            if after is not None and (found := search((*done, number), frozenset(after.items()))) is not None:
                return found
        return None

    return search((), first)
