"""`silt upkeep`: compacts tables and deletes old files within a budget; `--dry-run` and `silt why --upkeep` explain."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dbt.adapters.silt.cli.output.answers import UNKNOWN, Answer, Rows, count, size
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.shell.output import CancelledError, RowsFound, StatementFailedError
from dbt.adapters.silt.cli.shell.spark_process import SparkProcess
from dbt.adapters.silt.cli.sql import shell_context
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.upkeep import statement_for, survey
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import TableState, budget_seconds
from dbt.adapters.silt.engine.kernel.printable import number_of
from dbt.adapters.silt.records.project_records import ProjectRecords

IN_USE: Final = "a running command uses it"
_FAILED: Final = 2
_COLUMNS: Final = ("table", "#files", "#small", "size", "#deleted rows", "#bins", "#score", "rewritten", "waits")
_DESCRIPTION = """\
Writes the small files of tables again as large files, and files of whose rows a quarter is deleted without these rows;
the best first: the bytes that later reads save for each byte that is written again, and more for tables that are read
often. Then it deletes the files whose retention is over, as VACUUM does, and writes overdue checkpoints. It ends when
nothing is left to do, or before the work that would exceed the budget. Each step is a commit that changes no row. A
table waits if a running dbt command, a run or branch that is not published, or another writer uses it. A byte is
written again only a few times in its life, so upkeep can run after each run, or by cron."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "upkeep", "compact tables and delete old files within a budget", _DESCRIPTION)
    parser.add_argument("--budget", metavar="TIME", help="how long it may take, as in `5 minutes`")
    parser.add_argument("--select", nargs="+", metavar="TABLE", help="only these tables; by default all of them")
    parser.add_argument("--dry-run", action="store_true", help="only show the work that it would do")


def run(arguments: Namespace) -> int:
    """Keeps up the tables, or explains the work that it would do.

    Raises:
        InvalidArgumentError: if the budget is missing, or is not a length of time.
        RelationNotFoundError: if a table does not exist.
    """
    if arguments.budget is None and not arguments.dry_run:
        raise InvalidArgumentError("an upkeep needs a budget", remedy="Add `--budget '5 minutes'`, or `--dry-run`")
    if arguments.budget is not None:
        budget_seconds(arguments.budget)
    warehouse = open_warehouse(arguments, on_branch=False)
    if arguments.dry_run:
        return explain(warehouse, arguments.select, arguments.json)
    names = _names(warehouse, arguments.select)
    statement = statement_for(warehouse.catalog, names, arguments.budget, in_use(warehouse))
    if statement is None:
        return show(_answer([], "nothing to do"), arguments.json)
    return _kept_up(warehouse, statement, arguments.json)


def explain(warehouse: OpenWarehouse, selected: Sequence[str] | None, as_json: bool) -> int:
    """Prints the work of upkeep in each table, and why a table waits."""
    busy = in_use(warehouse)
    found = sorted(survey(warehouse.catalog, _names(warehouse, selected)), key=lambda each: each.state.table)
    rows = [_of_state(each.state, IN_USE if each.state.table in busy else each.state.waits) for each in found]
    to_do = [each for each in rows if each["bins"] and not each["waits"]]
    return show(_answer(rows, f"{number_of(len(to_do), 'table')} would be compacted"), as_json)


def in_use(warehouse: OpenWarehouse) -> frozenset[str]:
    """Returns the names of the tables that running commands of the project write."""
    return ProjectRecords.of(warehouse.target_path).tables_in_use()


def _names(warehouse: OpenWarehouse, selected: Sequence[str] | None) -> list[RelationName]:
    if selected is None:
        return list(warehouse.catalog.all_tables())
    names = [warehouse.existing(each) for each in selected]
    for name in names:
        warehouse.catalog.table(name)
    return names


def _kept_up(warehouse: OpenWarehouse, statement: str, as_json: bool) -> int:
    context = shell_context(warehouse)
    spark = SparkProcess({**context.profile, "named_branch": ""}, context.notice, context.is_kept)
    try:
        result = spark.run(statement)
    except (StatementFailedError, CancelledError) as error:
        raise InvalidArgumentError(f"the upkeep has ended early: {error}", remedy="Run it again") from error
    finally:
        spark.close()
    assert isinstance(result, RowsFound)
    return show(_answer(result.rows.to_pylist(), result.note), as_json)


def _of_state(state: TableState, waits: str) -> dict[str, Any]:
    bins = state.bins()
    counts = {"files": len(state.files), "small_files": state.small, "size": state.size, "marked": state.marked}
    of_bins = {"bins": len(bins), "score": bins[0].score(state.reads) if bins else None}
    return {"table": state.table, **counts, **of_bins, "deletable": state.deletable, "waits": waits or None}


def _answer(rows: Sequence[Mapping[str, Any]], note: str) -> Answer:
    shown = [
        (
            each["table"],
            count(each["files"]),
            count(each["small_files"]),
            size(each["size"]),
            f"{each['marked']:.0%}",
            count(each["bins"]),
            UNKNOWN if each["score"] is None else f"{each['score']:,.1f}",
            size(each.get("rewritten")),
            each["waits"] or UNKNOWN,
        )
        for each in rows
    ]
    return Answer({"tables": list(rows), "note": note}, [Rows(_COLUMNS, shown, empty="no tables"), note])
