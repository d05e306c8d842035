"""`silt branches`: lists the named branches of the warehouse."""

from __future__ import annotations

from argparse import Namespace

from dbt.adapters.silt.cli.output.answers import UTC, Answer, Block, Rows, count, iso, utc
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.catalog.branches.named_branches import BranchState, NamedBranches
from dbt.adapters.silt.engine.catalog.branches.named_documents import NamedBranch
from dbt.adapters.silt.engine.kernel.errors import SiltError

_COLUMNS = ("branch", "owner", f"begins {UTC}", f"expires {UTC}", "#changed", "#behind", "problem")
_DESCRIPTION = """\
Lists the named branches that have not been merged, deleted or expired: `changed` counts the tables, views and functions
that a branch has changed, and `behind` the commits since its beginning in the tables that it has used. A branch that
cannot be read has a problem: delete it with `silt branch --delete`."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    subcommand(subparsers, "branches", "list the named branches", _DESCRIPTION)


def run(arguments: Namespace) -> int:
    """Prints the branches."""
    warehouse = open_warehouse(arguments, on_branch=False)
    branches = warehouse.catalog.named_branches(warehouse.database)
    found = [(each, *_state(branches, each)) for each in branches.all()]
    document = {"branches": [_json(*each) for each in found]}
    blocks: list[Block] = [Rows(_COLUMNS, [_row(*each) for each in found])] if found else ["no branch exists"]
    return show(Answer(document, blocks), arguments.json)


def _state(branches: NamedBranches, branch: NamedBranch) -> tuple[BranchState | None, str]:
    try:
        return branches.state(branch), ""
    except SiltError as error:
        return None, error.problem


def _row(branch: NamedBranch, state: BranchState | None, problem: str) -> list[str]:
    changed = None if state is None else len(state.changed)
    behind = None if state is None else sum(state.behind.values())
    times = [utc(branch.cut_ms), utc(branch.expires_ms)]
    return [branch.name, branch.owner, *times, count(changed), count(behind), problem]


def _json(branch: NamedBranch, state: BranchState | None, problem: str) -> dict[str, object]:
    return {
        "branch": branch.name,
        "owner": branch.owner,
        "begins_at": iso(branch.cut_ms),
        "expires_at": iso(branch.expires_ms),
        "changed": None if state is None else list(state.changed),
        "behind": None if state is None else dict(state.behind),
        "problem": problem or None,
    }
