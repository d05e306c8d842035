"""Prints the answer of a subcommand: as JSON, as plain text for another program, or for a person.

On a terminal, rows are drawn as a table of the terminal's width. Otherwise each row is a line that is never cut, with
two or more spaces between its cells.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from dbt.adapters.silt.cli.output.answers import Answer, Block, Facts, States, heading, is_number, mark
from dbt.adapters.silt.engine.kernel.printable import json_text, line, lines, padded, width
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.cli.output import terminal
else:
    terminal = lazy_module("dbt.adapters.silt.cli.output.terminal")

GAP = "  "
"""The space between two cells of a row."""


def show(answer: Answer, as_json: bool, out: TextIO | None = None) -> int:
    """Prints an answer and returns its exit code."""
    out = out or sys.stdout
    if as_json:
        out.write(json_text(answer.document) + "\n")
    elif out.isatty():
        terminal.draw(answer.blocks, out)
    else:
        out.write("\n".join(_plain(block) for block in answer.blocks))
    out.flush()
    return answer.exit_code


def complain(problem: object) -> None:
    """Prints a problem on the standard error."""
    print(f"silt: {lines(str(problem))}", file=sys.stderr)


def _plain(block: Block) -> str:
    if isinstance(block, str):
        return f"{lines(block)}\n"
    if isinstance(block, States):
        return f"{line(block.title)}: {''.join(map(mark, block.states))}\n"
    title = f"{line(block.title)}\n" if block.title else ""
    if isinstance(block, Facts):
        return title + _aligned([[line(name), line(value)] for name, value in block.facts.items()], ())
    if not block.rows:
        return f"{title}{line(block.empty)}\n" if title or block.empty else ""
    names = [line(heading(column)) for column in block.columns]
    right = [index for index, column in enumerate(block.columns) if is_number(column)]
    return title + _aligned([names, *([line(cell) for cell in row] for row in block.rows)], right)


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return "".join(f"{_joined(row, widths, right)}\n" for row in rows)


def _joined(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    cells = enumerate(zip(row, widths, strict=True))
    return GAP.join(padded(cell, wide, index in right) for index, (cell, wide) in cells).rstrip()
