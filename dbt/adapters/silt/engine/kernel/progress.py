"""How long work says how far it is, to whoever shows that: a callback, which by default is `silent`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Is called often, by any thread that does a statement's work: it must be quick, and raise nothing."""

    def __call__(self, what: str, done: int, total: int | None = None, /) -> object:
        """Takes how far the work is.

        Args:
            what: things in the plural, and what was done with them: `files deleted`.
            done: how many.
            total: of how many; None where that is not known yet.
        """
        ...


def silent(what: str, done: int, total: int | None = None, /) -> None:
    """Shows nothing."""


def counted(results: Iterable[T], progress: Progress, what: str, total: int) -> Iterator[T]:
    """Yields the results, and says of each that it is there."""
    for done, result in enumerate(results, 1):
        progress(what, done, total)
        yield result
