"""`silt drop-run ID`: drops the changes of a run that is not published."""

from __future__ import annotations

from argparse import Namespace

from dbt.adapters.silt.cli.output.answers import Answer
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, add_run_id, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.printable import number_of, short_id
from dbt.adapters.silt.records.run_registry import RunRegistry

_DESCRIPTION = """\
Drops the changes of a run that was held or killed before it was published, with the files that it has written. The
warehouse is as it was before the run. For a run that was published before all statements that it has left to the time
after its publication had run, it drops these statements. It refuses a run on which a command works."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "drop-run", "drop a run that is not published", _DESCRIPTION)
    add_run_id(parser)


def run(arguments: Namespace) -> int:
    """Drops the run."""
    warehouse = open_warehouse(arguments)
    branches = warehouse.catalog.run_branches(warehouse.database)
    found = branches.find(arguments.run)
    branches.check_idle(found)
    if branches.waiting(found):
        count = branches.drop_later(found)
        dropped = f"{number_of(count, 'statement')} after that dropped"
        text = f"run {short_id(found.run_id)}: published, and {dropped}"
        return show(Answer({"run_id": found.run_id}, [text]), arguments.json)
    branches.drop(found, branches.existing(found, to_drop=True))
    if warehouse.target_path is not None:
        RunRegistry(warehouse.target_path).mark_rolled_back(found.run_id)
    return show(Answer({"run_id": found.run_id}, [f"run {short_id(found.run_id)}: dropped"]), arguments.json)
