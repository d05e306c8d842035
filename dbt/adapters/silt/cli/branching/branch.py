"""`silt branch NAME`: creates a named branch of the warehouse, updates it, or deletes it."""

from __future__ import annotations

import getpass
from argparse import Namespace

from dbt.adapters.silt.cli.branching import rebuilding
from dbt.adapters.silt.cli.output.answers import Answer, iso, utc
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.branches.named_branches import DAYS

_DESCRIPTION = f"""\
Creates a branch of the warehouse: it begins with the tables as they are now, without a copy, and what is changed on
it is visible on it only. `branch: NAME` in the profile, `silt sql --branch NAME` and `set silt.branch = NAME` read
and write there. A branch that nothing has used for {DAYS} days expires. With --delete, it is deleted with its
changes. With --update, it moves to the present tables: changes of tables that only the branch has changed stay, and
nodes whose tables or inputs others have changed since are built again on the branch, by `dbt build`."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "branch", "create or delete a named branch", _DESCRIPTION)
    parser.add_argument("name", metavar="NAME", help="the name of the branch")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--delete", action="store_true", help="delete the branch, with its changes")
    either.add_argument("--update", action="store_true", help="move the branch to the present tables")
    parser.add_argument(
        "--expires", type=int, metavar="DAYS", default=DAYS, help=f"the days without use until it expires; {DAYS}"
    )
    parser.add_argument("--vars", metavar="YAML", help="dbt's variables for --update")


def run(arguments: Namespace) -> int:
    """Creates, updates or deletes the branch."""
    if arguments.update:
        return show(rebuilding.update(arguments), arguments.json)
    warehouse = open_warehouse(arguments, on_branch=False)
    branches = warehouse.catalog.named_branches(warehouse.database)
    if arguments.delete:
        found = branches.find(arguments.name)
        branches.delete(found)
        return show(Answer({"branch": found.name}, [f"branch {found.name}: deleted"]), arguments.json)
    created = branches.create(arguments.name, getpass.getuser(), arguments.expires)
    document = {"branch": created.name, "owner": created.owner, "begins_at": iso(created.cut_ms), "days": created.days}
    lines = [
        f"branch {created.name}: created, with the tables as of {utc(created.cut_ms)} UTC",
        f"  query and change it: silt sql --branch {created.name}",
        f"  dbt: set `branch: \"{{{{ env_var('SILT_BRANCH', '') }}}}\"` in the profile, and SILT_BRANCH={created.name}",
    ]
    return show(Answer(document, ["\n".join(lines)]), arguments.json)
