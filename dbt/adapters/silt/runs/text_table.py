"""Formats rows as text for a terminal."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from typing import Any

import agate
from dbt.adapters.contracts.connection import AdapterResponse
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbt.adapters.silt.engine.kernel.printable import line, lines

_LEAST_WIDTH = 120
_NOT_SHOWN = ("code", "app_id", "txn_version")


def text_table(rows: agate.Table) -> str:
    """Returns the rows below the column names; a single row as names and values in lines, with structs expanded."""
    if len(rows.rows) == 1:
        names = ["", ""]
        shown = [
            pair for name, value in zip(rows.column_names, rows.rows[0], strict=True) for pair in _pairs(name, value)
        ]
    else:
        names = list(rows.column_names)
        shown = [[_text(value) for value in row] for row in rows.rows]
    return _rendered(names, shown)


def response_table(response: AdapterResponse) -> str:
    """Returns the effect of a statement without rows, as names and values below each other."""
    done = {name: value for name, value in response.to_dict(omit_none=True).items() if name not in _NOT_SHOWN}
    return _rendered(["", ""], [[name.lstrip("_"), _text(value)] for name, value in done.items()])


def _pairs(name: str, value: Any) -> Iterator[list[str]]:
    """Yields the names and values of a value's fields, or the value itself if it has no fields."""
    fields = _fields(value)
    if fields is None:
        yield [line(name), _text(value)]
        return
    for field, inner in fields.items():
        yield from _pairs(f"{name}.{field}", inner)


def _fields(value: Any) -> dict[str, Any] | None:
    """Returns the fields of a struct, which a result contains as JSON."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str:
    return "" if value is None else lines(str(value))


def _rendered(names: list[str], rows: list[list[str]]) -> str:
    table = Table(box=box.SIMPLE, show_header=any(names), show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(Text(line(name)), overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    width = max(_LEAST_WIDTH, shutil.get_terminal_size().columns)
    printed = io.StringIO()
    Console(file=printed, width=width, color_system=None).print(table)
    return printed.getvalue().rstrip()
