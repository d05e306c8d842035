"""`silt catalog duckdb FILE`: writes a file of DuckDB with a view for each table, for BI tools."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from dbt.adapters.silt.cli.output.answers import Answer, Block, Rows
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.duckdb_file import file
from dbt.adapters.silt.duckdb_file.file import LeftOut, Shown
from dbt.adapters.silt.engine.kernel.printable import number_of

_DESCRIPTION = """\
Writes a file of DuckDB with a view for each table of the warehouse's database, all as of the same moment. Tools that
open DuckDB files read the tables with it: Superset, Metabase, Evidence, Hex, DBeaver. The views read the data files of
those versions, so write the file again after each run: `duckdb_file` in the profile does so at the end of each dbt
command. It is replaced at one moment. VACUUM deletes files that an old file still names. Views of the warehouse are
left out, because their queries are written for Spark, and so are tables that DuckDB cannot read."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "catalog", "write a DuckDB file with a view for each table", _DESCRIPTION)
    parser.add_argument("format", choices=["duckdb"], help="the kind of file")
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to write, as in warehouse.duckdb")


def run(arguments: Namespace) -> int:
    """Writes the file, and prints the tables that it shows.

    Raises:
        InvalidSettingError: if DuckDB is not installed.
        InvalidStatementError, StorageError: if the file cannot be replaced or written.
    """
    target = arguments.file.absolute()
    warehouse = open_warehouse(arguments)
    shown, left_out = file.write_tables(target, warehouse.catalog, warehouse.database)
    return show(answer(target, shown, left_out), arguments.json)


def answer(target: Path, shown: list[Shown], left_out: list[LeftOut]) -> Answer:
    """Renders the content of the file."""
    document = {
        "file": str(target),
        "tables": [{"table": str(each.name), "version": each.version} for each in shown],
        "left_out": [{"relation": str(each.name), "reason": each.reason} for each in left_out],
    }
    blocks: list[Block] = [f"{target}: {number_of(len(shown), 'table')}"]
    if left_out:
        rows = [[f"{each.name.schema}.{each.name.identifier}", each.reason] for each in left_out]
        blocks.append(Rows(("relation", "reason"), rows, "left out"))
    return Answer(document, blocks)
