"""Draws answers and progress bars on a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from dbt.adapters.silt.cli.output.answers import (
    RESULT,
    UNKNOWN,
    UTC,
    Block,
    Facts,
    Rows,
    States,
    heading,
    is_number,
    mark,
)
from dbt.adapters.silt.engine.kernel.printable import line, lines
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from rich import progress
else:
    progress = lazy_module("rich.progress")

T = TypeVar("T")

_STYLES: Final = {
    "succeeded": "green",
    "failed": "red",
    "broken off": "red",
    "interrupted": "yellow",
    "running": "cyan",
}


def draw(blocks: Sequence[Block], out: TextIO) -> None:
    """Prints the blocks, separated by empty lines."""
    console = Console(file=out, highlight=False)
    for number, block in enumerate(blocks):
        if number:
            console.print()
        console.print(_drawn(block))


def _drawn(block: Block) -> RenderableType:
    if isinstance(block, str):
        return Text(lines(block))
    if isinstance(block, States):
        marks = (Text(mark(state), _STYLES.get(state or "", "")) for state in block.states)
        return Text.assemble(f"{line(block.title)}: ", *marks)
    if isinstance(block, Rows):
        return _rows(block) if block.rows else Text(line(block.empty))
    return _facts(block)


def _rows(block: Rows) -> Table:
    """Draws the rows; columns without any known value are omitted, to leave space for the other columns."""
    table = _table(block.title)
    cells = list(zip(*block.rows, strict=True))
    known = [index for index, column in enumerate(cells) if any(cell != UNKNOWN for cell in column)]
    for index in known:
        column = block.columns[index]
        right, whole = is_number(column), is_number(column) or column.endswith(UTC)
        table.add_column(
            Text(line(heading(column))), justify="right" if right else "left", overflow="fold", no_wrap=whole
        )
    for row in block.rows:
        table.add_row(*(_cell(block.columns[index], row[index]) for index in known))
    return table


def _facts(block: Facts) -> Table:
    table = _table(block.title)
    table.show_header = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in block.facts.items():
        table.add_row(Text(line(name)), _cell(name, value))
    return table


def _cell(name: str, value: str) -> Text:
    found = [style for state, style in _STYLES.items() if name == RESULT and value.startswith(state)]
    return Text(line(value), style=found[0] if found else "")


def _table(title: str) -> Table:
    heading_line = Text(line(title), style="bold") if title else None
    return Table(title=heading_line, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


class Bars:
    """A bar for the tables, and a bar for the files of the table that is being checked."""

    def __init__(self, shown: progress.Progress) -> None:
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
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    console = Console(file=out)
    with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        yield Bars(shown)
