"""`silt merge NAME`: makes the changes of a named branch visible to everyone at one moment."""

from __future__ import annotations

import sys
from argparse import Namespace

from dbt.adapters.silt.cli.output.answers import Answer, Rows
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.kernel.errors import MergeConflictError

_CONFLICT = 1
_DESCRIPTION = """\
Publishes the tables, views and functions that a branch has changed, all at one moment or none, and ends the branch.
Tables that only the branch has changed are merged, also if the base has moved. If other programs have changed the same
rows or names, nothing is merged: the exit code is 1, and each conflict is named with the commits that caused it. With
--if-hash, only the state with that hash is merged, which covers rows and code: a branch that was changed after its
review is refused. A branch is not merged while a dbt command works on it. An interrupted merge is
completed by repeating it."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "merge", "publish the changes of a branch", _DESCRIPTION)
    parser.add_argument("name", metavar="NAME", help="the name of the branch")
    parser.add_argument(
        "--if-hash", metavar="HASH", help="merge only this state, or at least 12 characters of its hash"
    )


def run(arguments: Namespace) -> int:
    """Merges the branch."""
    warehouse = open_warehouse(arguments, on_branch=False)
    branches = warehouse.catalog.named_branches(warehouse.database)
    try:
        versions = branches.merge(arguments.name, arguments.if_hash)
    except MergeConflictError:
        return _conflicts(branches, arguments)
    rows = [(table, str(version)) for table, version in sorted(versions.items())]
    blocks = [
        Rows(("table", "#version"), rows, f"branch {arguments.name}: merged at one moment", "no table has changed")
    ]
    if versions and warehouse.target is not None and warehouse.target.has_metastore:
        print("To update the metastore, run `dbt run-operation silt_register`", file=sys.stderr)
    document = {"branch": arguments.name, "tables": versions, "conflicts": []}
    return show(Answer(document, blocks), arguments.json)


def _conflicts(branches: NamedBranches, arguments: Namespace) -> int:
    found = branches.conflicts(branches.find(arguments.name))
    rows = [(each.reason, ", ".join(each.commits)) for each in found]
    title = f"branch {arguments.name}: not merged, since other programs have changed the same:"
    document = {
        "branch": arguments.name,
        "tables": {},
        "conflicts": [{"reason": each.reason, "commits": list(each.commits)} for each in found],
    }
    return show(Answer(document, [Rows(("conflict", "commits of the base"), rows, title)], _CONFLICT), arguments.json)
