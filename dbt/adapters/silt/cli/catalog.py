"""`silt catalog duckdb FILE`: writes a file of DuckDB with a view for each table, for BI tools."""

from __future__ import annotations

import importlib.util
from argparse import Namespace
from pathlib import Path

from dbt.adapters.silt.cli.duckdb_file import file
from dbt.adapters.silt.cli.duckdb_file.file import LeftOut, Shown
from dbt.adapters.silt.cli.duckdb_file.views import TableView
from dbt.adapters.silt.cli.output.answers import Answer, Block, Rows, number_of
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut

_DESCRIPTION = """\
Writes a file of DuckDB with a view for each table of the warehouse's database, all as of the same moment. Tools that
open DuckDB files read the tables with it: Superset, Metabase, Evidence, Hex, DBeaver. The views read the data files of
those versions, so write the file again after each run; it is replaced at one moment. VACUUM deletes files that an old
file still names. Views of the warehouse are left out, because their queries are written for Spark, and so are
tables that DuckDB cannot read."""


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
    if importlib.util.find_spec("duckdb") is None:
        raise InvalidSettingError("DuckDB is not installed", remedy="Run `pip install duckdb`")
    target = arguments.file.absolute()
    shown, left_out = written(open_warehouse(arguments), target)
    return show(answer(target, shown, left_out), arguments.json)


def written(warehouse: OpenWarehouse, target: Path) -> tuple[list[Shown], list[LeftOut]]:
    """Writes the file. Raises as `file.write`."""
    logs: dict[RelationName, DeltaLog] = {}
    left_out: list[LeftOut] = []
    for entry in warehouse.catalog.all_relations(warehouse.database):
        found = _log(warehouse, entry)
        if isinstance(found, str):
            left_out.append(LeftOut(entry.name, found))
        else:
            logs[entry.name] = found
    cut = consistent_cut(logs.values())
    shown, unreadable = file.write(target, [(name, TableView(log, cut[log])) for name, log in logs.items()])
    return shown, [*left_out, *unreadable]


def _log(warehouse: OpenWarehouse, entry: RelationEntry) -> DeltaLog | str:
    """Returns the log of a relation, or the reason why the relation has no readable log."""
    if entry.kind is not RelationKind.TABLE:
        return "it is a view"
    try:
        log = warehouse.catalog.table(entry.name)
        log.snapshot()
    except SiltError as error:
        return str(error)
    return log


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
