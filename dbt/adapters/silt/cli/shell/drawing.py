"""Draws rows as a table, or each row as a list of its values if the table is too wide for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.cli.tables.rows import ShownRows
from dbt.adapters.silt.cli.tables.texts import padded, width
from dbt.adapters.silt.engine.kernel.printable import line

MOST_SHOWN: Final = 100
"""The maximum of rows on a terminal."""

MOST_COUNTED: Final = 10_000
"""The maximum number of rows that are computed for a terminal, which shows how many of them it omits."""

_GAP = "  "
_PLAN = ["plan"]
"""The column in which Spark returns plans, as strings of many lines."""

_WIDEST = 200
"""The maximum of a value's width on a terminal, in columns."""


def drawn(rows: pa.Table, columns: int | None = None) -> Iterator[str]:
    """Returns the lines that show the rows.

    Args:
        columns: the width of the terminal, on which long results and values are cut; unset for a file or a pipe.
    """
    if rows.column_names == _PLAN:
        yield from (line(each) for text in rows.column(0).to_pylist() for each in str(text).splitlines())
        return
    shown = ShownRows.of(rows if columns is None else rows.slice(0, MOST_SHOWN))
    names = [line(name) for name in shown.names]
    cells = [[_cut(line(cell), columns) for cell in row] for row in shown.cells()]
    widths = [max(map(width, column)) for column in zip(names, *cells, strict=True)]
    if columns is None or sum(widths) + len(_GAP) * (len(widths) - 1) <= columns:
        yield from _aligned([names, *cells], widths, shown.numbers, has_rule=columns is not None)
    else:
        yield from _one_by_one(names, cells)


def summary(rows: int, most: int) -> str:
    """Returns the number of rows, and the number that a terminal does not show.

    Args:
        most: the maximum number of rows that were computed.
    """
    if rows <= MOST_SHOWN:
        return f"({rows} row{'' if rows == 1 else 's'})"
    left_out = f"more than {most - MOST_SHOWN:,}" if rows >= most else f"{rows - MOST_SHOWN:,}"
    return f"(the first {MOST_SHOWN} rows; {left_out} are left out: `--csv FILE`, `--parquet FILE` or a pipe gets all)"


def _cut(cell: str, columns: int | None) -> str:
    if columns is None or len(cell) <= _WIDEST:
        return cell
    return f"{cell[: _WIDEST - 1]}…"


def _aligned(
    rows: Sequence[Sequence[str]], widths: Sequence[int], numbers: Sequence[bool], has_rule: bool
) -> Iterator[str]:
    for at, row in enumerate(rows):
        cells = zip(row, widths, numbers, strict=True)
        yield _GAP.join(padded(cell, wide, number) for cell, wide, number in cells).rstrip()
        if at == 0 and has_rule:
            yield _GAP.join("─" * wide for wide in widths)


def _one_by_one(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a line with name and value for each value of each row."""
    wide = max(map(width, names))
    for number, row in enumerate(rows, 1):
        yield f"── row {number}"
        yield from (f"{padded(name, wide, False)}{_GAP}{cell}" for name, cell in zip(names, row, strict=True))
