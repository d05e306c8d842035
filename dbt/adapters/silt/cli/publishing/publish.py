"""`silt publish ID`: publishes the changes of a run that is held."""

from __future__ import annotations

from argparse import Namespace

from dbt.adapters.silt.cli.answers import Answer, Block, Rows
from dbt.adapters.silt.cli.options import Subparsers, subcommand
from dbt.adapters.silt.cli.rendering import show
from dbt.adapters.silt.cli.warehouses import open_warehouse
from dbt.adapters.silt.records.run_registry import RunRegistry

_DESCRIPTION = """\
Publishes the changes of a run that was held, for example because a test failed, or that was killed: all at one moment.
If another writer has changed the same rows since, nothing is published."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "publish", "publish a run that is held", _DESCRIPTION)
    parser.add_argument("run", metavar="ID", help="the run's id, as `silt runs` shows it, or a prefix of it")


def run(arguments: Namespace) -> int:
    """Publishes the run."""
    warehouse = open_warehouse(arguments)
    branches = warehouse.catalog.run_branches(warehouse.database)
    found = branches.find(arguments.run)
    versions = branches.publish(found, branches.existing(found))
    if warehouse.target_path is not None:
        RunRegistry(warehouse.target_path).mark_published(found.run_id)
    rows = [(table, str(version)) for table, version in sorted(versions.items())]
    blocks: list[Block] = [Rows(("table", "#version"), rows, f"run {found.run_id}: published")]
    return show(Answer({"run_id": found.run_id, "tables": versions}, blocks), arguments.json)
