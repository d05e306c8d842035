"""`silt publish ID`: publishes the changes of a run that is held."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from dbt.adapters.silt.cli.output.answers import Answer, Block, Rows
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.shell.output import CancelledError, StatementFailedError
from dbt.adapters.silt.cli.shell.spark_process import SparkProcess
from dbt.adapters.silt.cli.sql import shell_context
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, add_run_id, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement, advice_on_rest, statement_of_run
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.branches.run_commands import Standing
from dbt.adapters.silt.engine.kernel.errors import RunNotFoundError, SiltError
from dbt.adapters.silt.engine.kernel.printable import lines, short_id
from dbt.adapters.silt.records.run_registry import RunRegistry
from dbt.adapters.silt.records.units import FIRST

_FAILED = 2
_NOT_PASSED = 1
_DESCRIPTION = """\
Publishes the changes of a run that was held, for example because a test failed, or that was killed: all at one moment.
If another writer has changed the same rows since, nothing is published. Then it runs the statements that the run has
left to the time after its publication. For a run that was published before all of them had run, it runs the rest. If
one fails, the exit code is 2, and with --json, `failed` has the statement and the error. It refuses a run on which a
command works. With --if-passed it publishes the run only if no node and no test of its commands has failed, and all
have run: the exit code is 0 if the run is published, by this or an earlier command, and 1 if it is not, with the
reasons. That is the last task of a run for an orchestrator."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "publish", "publish a run that is held", _DESCRIPTION)
    add_run_id(parser)
    parser.add_argument("--if-passed", action="store_true", help="only if everything has run and nothing has failed")


def run(arguments: Namespace) -> int:
    """Publishes the run, and runs its later statements."""
    warehouse = open_warehouse(arguments)
    branches = warehouse.catalog.run_branches(warehouse.database)
    try:
        found = branches.find(arguments.run)
    except RunNotFoundError:
        published = branches.find_published(arguments.run) if arguments.if_passed else None
        if published is None:
            raise
        text = f"run {short_id(published.run_id)}: published before"
        return show(Answer({"run_id": published.run_id, "tables": {}, "failed": None}, [text]), arguments.json)
    standing = branches.commands(found).standing()
    if arguments.if_passed and standing and not branches.waiting(found):
        return _not_passed(found, standing, arguments.json)
    branches.check_idle(found)
    versions = {} if branches.waiting(found) else branches.publish(found, branches.existing(found))
    if warehouse.target_path is not None:
        RunRegistry(warehouse.target_path).mark_published(found.run_id)
    if not arguments.json:
        rows = [(table, str(version)) for table, version in sorted(versions.items())]
        blocks: list[Block] = [Rows(("table", "#version"), rows, f"run {short_id(found.run_id)}: published")]
        show(Answer(None, blocks), as_json=False)
    if versions and warehouse.target is not None and warehouse.target.has_metastore:
        print("To update the metastore, run `dbt run-operation silt_register`", file=sys.stderr)
    failed = _run_later(warehouse, branches, found)
    if arguments.json:
        show(Answer({"run_id": found.run_id, "tables": versions, "failed": failed}, []), as_json=True)
    return 0 if failed is None else _FAILED


def _not_passed(found: BranchedRun, standing: Standing, as_json: bool) -> int:
    reasons = standing.lines() + [f"{each} is at work" for each in standing.at_work]
    text = f"run {short_id(found.run_id)}: not published: {standing.reason}"
    show(Answer({"run_id": found.run_id, "reasons": reasons}, ["\n  ".join([text, *reasons])]), as_json)
    return _NOT_PASSED


def _run_later(warehouse: OpenWarehouse, branches: RunBranches, found: BranchedRun) -> Mapping[str, str] | None:
    """Runs the later statements; returns the statement that failed, and its error."""
    context = shell_context(warehouse)
    spark = SparkProcess(context.profile, context.notice, context.is_kept)
    begun: list[str] = []

    def carry_out(statement: LaterStatement) -> None:
        begun.append(statement.text)
        spark.run(statement.text, txn=(statement.app_id, FIRST), owner=statement_of_run(found.run_id))
        print(f"after the publication: {statement.text}", file=sys.stderr)

    try:
        branches.run_later(found, carry_out)
        return None
    except (SiltError, StatementFailedError, CancelledError) as error:
        statement = begun[-1] if begun else ""
        advice = advice_on_rest(found.run_id)
        failed = f"the run `{found.run_id}` is published, but a statement after the publication failed"
        print(f"{failed}: {lines(statement)}: {error}\n  {advice}", file=sys.stderr)
        return {"statement": statement, "error": str(error)}
    finally:
        spark.close()
