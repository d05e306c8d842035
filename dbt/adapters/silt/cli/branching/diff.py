"""`silt diff A [B]`: compares a branch with its base, two branches, two targets, or two versions of tables."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from dbt.adapters.silt.cli.branching import differences
from dbt.adapters.silt.cli.branching.nodes import LastWork, unique_keys
from dbt.adapters.silt.cli.branching.targets import diff_targets, target_names
from dbt.adapters.silt.cli.output.answers import Answer
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, snapshot_of, subcommand
from dbt.adapters.silt.engine.arrow.branch_diff import CHANGED, EQUAL, RelationDiff, diff_branch, diff_branches
from dbt.adapters.silt.engine.arrow.table_diff import Version, diff_tables
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, full_name
from dbt.adapters.silt.engine.kernel.errors import BranchNotFoundError, InvalidArgumentError, RunNotFoundError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.keys import KeyKind, table_keys

_DIFFERENT = 1
_FORMATS = ("text", "markdown", "json", "html")
_DESCRIPTION = """\
Compares a branch, or a run that is not published, with the tables at its beginning: `silt diff NAME`; or two
branches: `silt diff NAME OTHER`. Or compares two versions: `silt diff orders@v3` with the newest version, `silt
diff orders@v3 orders@v5`, also of two tables and with times as in `orders@2026-01-31 12:00`. Or compares the models
of two targets of the profile: `silt diff dev prod`. It shows which tables,
views and functions are new, dropped or replaced, which columns differ, and how many rows were added, removed and
changed, with the share of changed rows for each column. Rows are compared by --key, else by the table's unique or
primary key, else by `unique_key` or a `unique` test of the model in dbt's manifest, else by the row ids of a table
with row tracking; without any, a changed row counts as removed and added. Only files that differ are read. The hash
of a branch is for `silt merge --if-hash`. With --exit-code, the exit code is 1 if anything differs."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "diff", "compare a branch with its base, or two versions", _DESCRIPTION)
    parser.add_argument(
        "first", metavar="A", help="a branch, a run, a target of the profile, or a table, also at a version or a time"
    )
    parser.add_argument(
        "second", metavar="B", nargs="?", help="another branch or target, or a table, also at a version"
    )
    parser.add_argument("--table", metavar="TABLE", help="only this table of the branches or targets")
    parser.add_argument("--key", metavar="COLUMNS", help="columns that identify a row, as in id,day")
    parser.add_argument("--rows", type=int, metavar="N", default=3, help="show up to N rows of each kind; 3 by default")
    parser.add_argument("--format", choices=_FORMATS, default="text", help="text by default")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs")


def run(arguments: Namespace) -> int:
    """Prints the differences."""
    if arguments.rows < 0:
        raise InvalidArgumentError("the number of rows is negative", remedy="Give 0 or more")
    title, state, found = _compared(arguments)
    if arguments.format in ("markdown", "html") and not arguments.json:
        work = last_work(arguments)
        is_page = arguments.format == "html"
        print("\n".join((differences.page if is_page else differences.markdown)(title, state, found, work)))
        code = 0
    else:
        answer = Answer(differences.document(title, state, found), differences.blocks(title, state, found))
        code = show(answer, arguments.json or arguments.format == "json")
    sys.stdout.flush()
    is_different = any(each.change != EQUAL for each in found)
    return _DIFFERENT if arguments.exit_code and is_different else code


def last_work(arguments: Namespace) -> LastWork | None:
    """Returns the work of the project's last dbt command, if there is a project."""
    return LastWork.of(open_warehouse(arguments, on_branch=False).target_path)


def _compared(arguments: Namespace) -> tuple[str, str | None, list[RelationDiff]]:
    """Returns a title, the hash of the branch, and the differences."""
    key = [] if arguments.key is None else [each.strip() for each in arguments.key.split(",")]
    if arguments.second is not None and not (_is_table(arguments.first) or _is_table(arguments.second)):
        warehouse = open_warehouse(arguments, on_branch=False)
        branches = [_branch(warehouse, each) for each in (arguments.first, arguments.second)]
        if branches[0] is not None and branches[1] is not None:
            return _of_branches(warehouse, (branches[0], branches[1]), arguments, key)
        targets = target_names(arguments)
        if {arguments.first, arguments.second} & {*targets}:
            key_of = partial(_key_on_both, key, unique_keys(warehouse.target_path))
            title = f"targets {arguments.first} and {arguments.second}"
            return title, None, diff_targets(arguments, targets, key_of)
    if arguments.second is None and not _is_table(arguments.first):
        return _of_branch(open_warehouse(arguments, on_branch=False), arguments, key)
    if arguments.table is not None:
        raise InvalidArgumentError("`--table` is for a branch", remedy="Leave it out, or give the name of a branch")
    first = Version(*snapshot_of(arguments.first, arguments))
    newest = arguments.first.rpartition("@")[0] or arguments.first
    second = Version(*snapshot_of(arguments.second or newest, arguments))
    keys = key or declared_key(second.snapshot.metadata.configuration)
    found = diff_tables(first, second, keys, arguments.rows)
    title = f"{_shown(first)} and {_shown(second)}"
    return title, None, [RelationDiff(second.log.name, "table", EQUAL if found.is_equal else CHANGED, found)]


def _is_table(text: str) -> bool:
    return "@" in text or "/" in text


def _shown(version: Version) -> str:
    return f"{version.log.name}@v{version.snapshot.version}"


def _of_branch(
    warehouse: OpenWarehouse, arguments: Namespace, key: Sequence[str]
) -> tuple[str, str, list[RelationDiff]]:
    database = warehouse.database
    try:
        branch = warehouse.catalog.named_branches(database).branch(arguments.first)
    except (BranchNotFoundError, RunNotFoundError) as error:
        if warehouse.catalog.find(warehouse.name(arguments.first)) is None:
            raise
        raise InvalidArgumentError(
            f"`{arguments.first}` is a table, and only one version is given",
            remedy=f"Give an earlier version, as in `silt diff {arguments.first}@v0`",
        ) from error
    only = None if arguments.table is None else str(warehouse.name(arguments.table))
    key_of = _keys(warehouse, key)
    return f"branch {arguments.first}", branch.state_hash(), diff_branch(branch, database, key_of, arguments.rows, only)


def _branch(warehouse: OpenWarehouse, text: str) -> Branch | None:
    """Returns the named branch or the branch of a run, if it exists."""
    try:
        return warehouse.catalog.named_branches(warehouse.database).branch(text)
    except (BranchNotFoundError, RunNotFoundError):
        return None


def _of_branches(
    warehouse: OpenWarehouse, branches: tuple[Branch, Branch], arguments: Namespace, key: Sequence[str]
) -> tuple[str, None, list[RelationDiff]]:
    """Compares the relations that either branch has changed, and all of them if they begin at different moments."""
    database = warehouse.database
    before, after = (warehouse.catalog.on_branch(database, each) for each in branches)
    names = {full_name(name) for each in branches for name in each.changed(database)}
    cuts = {None if each.named is None else each.named.cut_ms for each in branches}
    if len(cuts) > 1 or cuts == {None}:
        names |= {each.name for side in (before, after) for each in side.all_relations(database)}
    if arguments.table is not None:
        names &= {warehouse.name(arguments.table)}
    found = diff_branches(before, after, names, _keys(warehouse, key), arguments.rows)
    return f"branches {arguments.first} and {arguments.second}", None, found


def _keys(warehouse: OpenWarehouse, given: Sequence[str]) -> Callable[[str, Snapshot], Sequence[str]]:
    """Returns the function that finds the key of a table, by its full name and a version of it."""
    known = unique_keys(warehouse.target_path)
    return lambda name, table: given or declared_key(table.metadata.configuration) or known.get(name, ())


def _key_on_both(
    given: Sequence[str], known: Mapping[str, Sequence[str]], names: Sequence[RelationName], table: Snapshot
) -> Sequence[str]:
    """Returns the key of a relation, whose names on both sides dbt's manifest may have."""
    found = (known[str(each)] for each in reversed(names) if str(each) in known)
    return given or declared_key(table.metadata.configuration) or next(found, ())


def declared_key(configuration: Mapping[str, str]) -> Sequence[str]:
    """Returns the columns of a table's primary key, or else of a unique key; empty if it has neither."""
    keys = table_keys(configuration).values()
    by_kind = {each.kind: each.columns for each in reversed(list(keys))}
    return by_kind.get(KeyKind.PRIMARY_KEY) or by_kind.get(KeyKind.UNIQUE) or ()
