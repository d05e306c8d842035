"""Writes the results of statements as JSON, CSV or Parquet; a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.cli.shell.results import Result, RowsFound
from dbt.adapters.silt.cli.tables.rows import ShownRows, cell
from dbt.adapters.silt.engine.kernel import printable
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, UnavailableError
from dbt.adapters.silt.kept_spark.inherited_environment import umask


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
