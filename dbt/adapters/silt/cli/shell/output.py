"""The results of statements: drawn on a terminal, or written as JSON, CSV or Parquet, completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.cli.tables.rows import ShownRows, cell
from dbt.adapters.silt.engine.kernel import printable
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, UnavailableError
from dbt.adapters.silt.engine.kernel.printable import line, number_of, padded, width
from dbt.adapters.silt.kept_spark.inherited_environment import umask

_MOST_SHOWN: Final = 100
"""The maximum of rows on a terminal."""

MOST_COUNTED: Final = 10_000
"""The maximum number of rows that are computed for a terminal, which shows how many of them it omits."""

_GAP = "  "
_PLAN = ["plan"]
"""The column in which Spark returns plans, as strings of many lines."""

_WIDEST = 200
"""The maximum of a value's width on a terminal, in columns."""


@dataclass(frozen=True)
class RowsFound:
    """Rows of a query.

    Attributes:
        note: the line that people see if there are no rows.
    """

    rows: pa.Table
    note: str = ""


@dataclass(frozen=True)
class Change:
    """The effect of a statement.

    Attributes:
        text: such as `v12: 4,120 inserted in 3 files`; `OK` if it changes no table.
        document: the same as JSON.
    """

    text: str
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Explanation:
    """A description of how a query is answered.

    Attributes:
        lines: the description for display.
        document: the same as JSON.
    """

    lines: tuple[str, ...]
    document: Mapping[str, Any]


Result: TypeAlias = RowsFound | Change | Explanation


class StatementFailedError(Exception):
    """A statement that another process ran has failed; the text describes the failure and the remedy.

    Attributes:
        is_damage: whether a table is damaged.
    """

    def __init__(self, text: str, is_damage: bool = False) -> None:
        super().__init__(text)
        self.is_damage = is_damage


class CancelledError(Exception):
    """A statement was cancelled, and has committed nothing."""


def check_target(file: str, overwrite: bool) -> None:
    """Checks that the file can be written.

    Raises:
        InvalidArgumentError: if it exists, or its folder does not.
    """
    path = Path(file)
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise InvalidArgumentError(f"{file} {problem}", remedy="Name a file in an existing folder")
    if path.exists() and not overwrite:
        raise InvalidArgumentError(f"{file} already exists", remedy="Name another file, or add --overwrite")
    if not os.access(path.parent, os.W_OK):
        raise InvalidArgumentError(f"{file} cannot be written", remedy="Name a file in a folder that you can write to")


def write_csv(rows: pa.Table, file: str) -> None:
    """Writes the rows as a CSV file; raises as `_replacing`."""
    with _replacing(file) as partial, open(partial, "w", encoding="utf-8", newline="", errors="replace") as out:
        out.writelines(f"{each}\r\n" for each in csv_lines(rows))


def write_parquet(rows: pa.Table, file: str) -> None:
    """Writes the rows as a Parquet file; raises as `_replacing`."""
    with _replacing(file) as partial:
        pq.write_table(rows, partial, compression="zstd")


def print_csv(rows: pa.Table, out: TextIO) -> None:
    """Prints the rows as CSV; on a terminal, control characters in the values are escaped."""
    escaped = printable.line if out.isatty() else str
    out.writelines(f"{escaped(each)}\n" for each in csv_lines(rows))


def csv_lines(rows: pa.Table) -> Iterator[str]:
    """Yields the lines of a CSV: null is empty, an empty string is `""`."""
    shown = ShownRows.of(rows)
    yield ",".join(map(_quoted, shown.names))
    for row in shown.rows:
        yield ",".join("" if value is None else _quoted(cell(value)) for value in row)


def json_text(results: list[Result]) -> str:
    """Returns the results as JSON: the value of a single statement, or a list of values."""
    documents = [_document(result) for result in results]
    document = documents[0] if len(documents) == 1 else documents
    return printable.json_text(document)


def _document(result: Result) -> object:
    return ShownRows.of(result.rows).documents() if isinstance(result, RowsFound) else result.document


def _quoted(text: str) -> str:
    if text and not any(character in '",\r\n' for character in text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


@contextlib.contextmanager
def _replacing(file: str) -> Iterator[str]:
    """Yields a temporary file that replaces the target when it is complete.

    Raises:
        UnavailableError: if it cannot be written.
    """
    path = Path(file)
    partial = None
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        yield partial
        os.chmod(partial, 0o666 & ~umask())
        os.replace(partial, path)
        partial = None
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(f"{file} cannot be written: {error}", remedy="Name another file") from error
    finally:
        if partial is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)


def drawn(rows: pa.Table, columns: int | None = None) -> Iterator[str]:
    """Returns the lines that show the rows.

    Args:
        columns: the width of the terminal, on which long results and values are cut; unset for a file or a pipe.
    """
    if rows.column_names == _PLAN:
        yield from (line(each) for text in rows.column(0).to_pylist() for each in str(text).splitlines())
        return
    shown = ShownRows.of(rows if columns is None else rows.slice(0, _MOST_SHOWN))
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
    if rows <= _MOST_SHOWN:
        return f"({number_of(rows, 'row')})"
    left_out = f"more than {most - _MOST_SHOWN:,}" if rows >= most else f"{rows - _MOST_SHOWN:,}"
    return f"(the first {_MOST_SHOWN} rows; {left_out} are left out: `--csv FILE`, `--parquet FILE` or a pipe gets all)"


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
