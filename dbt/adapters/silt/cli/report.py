"""`silt report`: writes runs, models and tables as a page of HTML."""

from __future__ import annotations

import contextlib
import errno
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from dbt.adapters.silt.cli.output.answers import Answer, size
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.names.locations import is_local
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, NotWrittenError
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.report.document import RUNS, Document, Source, document
from dbt.adapters.silt.report.page import page

FILE: Final = "silt_report.html"
_DESCRIPTION = """\
Writes one HTML file, which any browser opens from disk and which fetches nothing. It shows the runs over time, each run
as a timeline of its nodes, the graph of models with their states, and the versions, files and columns of each table.
Its sources are the tables' logs, the project's journal and dbt's artifacts in target/; the page notes whatever could
not be read. It contains no values of rows, except those of partition columns."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "report", "write the runs, models and tables as one page of HTML", _DESCRIPTION)
    add_runs(parser)
    parser.add_argument(
        "-o",
        "--output",
        default=FILE,
        metavar="FILE",
        help=f"where to write it, by default {FILE} in the current folder",
    )


def add_runs(parser: ArgumentParser) -> None:
    """Declares the option for the number of runs."""
    parser.add_argument(
        "-n", "--runs", type=int, default=RUNS, metavar="N", help=f"only the newest N runs, by default {RUNS}"
    )


def run(arguments: Namespace) -> int:
    """Writes the page, and prints its path."""
    warehouse = open_warehouse(arguments)
    made = document(source_of(warehouse, arguments), SystemClock().now_ms())
    output = Path(arguments.output).expanduser().absolute()
    _write(output, page(made.json))
    return show(answer(output, made), arguments.json)


def source_of(warehouse: OpenWarehouse, arguments: Namespace) -> Source:
    """Returns the source of the page.

    Raises:
        InvalidArgumentError: if the number of runs is negative.
    """
    if arguments.runs < 0:
        raise InvalidArgumentError(f"`--runs {arguments.runs}` is not a number of runs", remedy="Use 0 or more")
    return Source(
        warehouse.catalog,
        warehouse.target_path,
        arguments.runs,
        all(is_local(location) for location in warehouse.locations.values()),
    )


def answer(output: Path, made: Document) -> Answer:
    """Returns the facts of the written file, and the problems of unreadable tables."""
    written = output.stat().st_size
    facts = {
        "file": str(output),
        "bytes": written,
        "runs": made.runs,
        "tables": made.tables,
        "notes": list(made.notes),
        "problems": list(made.problems),
    }
    line = f"{output}: {number_of(made.tables, 'table')}, {number_of(made.runs, 'run')}, {size(written)}"
    left = f"{number_of(len(made.problems), 'table')} could not be read: the page gives the reasons"
    return Answer(facts, [line, *made.notes, *([left] if made.problems else [])], 1 if made.problems else 0)


def _write(output: Path, text: str) -> None:
    """Writes the file atomically, so that a browser never sees half of it.

    Raises:
        NotWrittenError: if it cannot be written.
    """
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        _replace(output, text)
    except OSError as error:
        raise NotWrittenError(
            f"{output} cannot be written: {error.strerror or error}", remedy="Name another file with `--output`"
        ) from error


def _replace(output: Path, text: str) -> None:
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, output)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
