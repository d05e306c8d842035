"""Progress callback of long operations, `silent` by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """A callback that is called often, from any thread of a statement: it must be quick and must not raise."""

    def __call__(self, what: str, done: int, total: int | None = None, /) -> object:
        """Receives the progress of the work.

        Args:
            what: the counted things in the plural and the action, such as `files deleted`.
            done: number of finished things.
            total: number of all things; None if not yet known.
        """
        ...


def silent(what: str, done: int, total: int | None = None, /) -> None:
    """Shows nothing."""


def counted(results: Iterable[T], progress: Progress, what: str, total: int) -> Iterator[T]:
    """Yields the results and reports progress for each."""
    for done, result in enumerate(results, 1):
        progress(what, done, total)
        yield result
