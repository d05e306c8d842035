"""Shows progress bars on a terminal, and nothing elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

T = TypeVar("T")


class Bars:
    """A bar for the tables, and a bar for the files of the table that is being checked."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._files = shown.add_task("", visible=False)

    def over(self, tables: Sequence[T]) -> Iterator[T]:
        """Yields the tables; each is counted when the next table is requested."""
        return iter(self._shown.track(tables, description="tables"))

    def of_table(self, name: str) -> Callable[[int, int], None]:
        """Returns the callback that counts the checked files of a table; see `check.check`."""
        self._shown.reset(self._files, description=name, visible=True)

        def report(done: int, total: int) -> None:
            self._shown.update(self._files, advance=done, total=total)

        return report


@contextlib.contextmanager
def bars(out: TextIO) -> Iterator[Bars]:
    """Shows bars on a terminal while the block runs, and removes them afterwards."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=out)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        yield Bars(shown)
