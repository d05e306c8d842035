"""`silt merge NAME`: makes the changes of a named branch visible to everyone at one moment."""

from __future__ import annotations

import sys
from argparse import Namespace

from dbt.adapters.silt.cli.branching import rebuilding
from dbt.adapters.silt.cli.output.answers import Answer, Rows
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.kernel.errors import MergeConflictError

_CONFLICT = 1
_TRIES = 3
_DESCRIPTION = """\
Publishes the tables, views and functions that a branch has changed, all at one moment or none, and ends the branch.
Tables that only the branch has changed are merged, even if the base has moved. If other programs have changed the same
rows or names, nothing is merged: the exit code is 1, and each conflict is named with the commits that caused it. With
--if-hash, only the state with that hash is merged, which covers rows and code: a branch that was changed after its
review is refused. With --run, after a conflict, the branch moves to the present tables, and the conflicting nodes and
those below run again on it (`silt branch --update`); then it is merged. A branch is not merged while a command of dbt
works on it. An interrupted merge is completed by repeating it."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "merge", "publish the changes of a branch", _DESCRIPTION)
    parser.add_argument("name", metavar="NAME", help="the name of the branch")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--if-hash", metavar="HASH", help="merge only this state, or at least 12 characters of its hash")
    how.add_argument("--run", action="store_true", help="after a conflict, run the affected nodes again, and merge")
    parser.add_argument("--vars", metavar="YAML", help="dbt's variables for --run")


def run(arguments: Namespace) -> int:
    """Merges the branch."""
    warehouse = open_warehouse(arguments, on_branch=False)
    branches = warehouse.catalog.named_branches(warehouse.database)
    for tries_left in reversed(range(_TRIES if arguments.run else 1)):
        try:
            versions = branches.merge(arguments.name, arguments.if_hash)
            break
        except MergeConflictError:
            if not tries_left:
                return _conflicts(branches, arguments)
            _run_again(branches, arguments)
    rows = [(table, str(version)) for table, version in sorted(versions.items())]
    blocks = [
        Rows(("table", "#version"), rows, f"branch {arguments.name}: merged at one moment", "no table has changed")
    ]
    if versions and warehouse.target is not None and warehouse.target.has_metastore:
        print("To update the metastore, run `dbt run-operation silt_register`", file=sys.stderr)
    document = {"branch": arguments.name, "tables": versions, "conflicts": []}
    return show(Answer(document, blocks), arguments.json)


def _run_again(branches: NamedBranches, arguments: Namespace) -> None:
    """Prints the conflicts, and runs the affected nodes again on the present tables."""
    for each in branches.conflicts(branches.find(arguments.name)):
        print(f"conflict: {each}", file=sys.stderr)
    rebuilding.update(arguments)


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
