"""`silt why NODE`: explains whether a run would reuse, clone or build a node, without building it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dbt.adapters.silt.cli import upkeep
from dbt.adapters.silt.cli.output.answers import UNKNOWN, Answer, Rows
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.project import profile
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError

MODULE: Final = "dbt.adapters.silt.runs.explained_reuse"
"""The program of a separate process that compiles the nodes with dbt, so that this process need not load dbt."""

_OPTIONS: Final = ("project_dir", "profiles_dir", "profile", "target", "vars")
_PARSED: Final = "partial_parse.msgpack"
_PARSED_VARIABLES: Final = ("DBT_PARTIAL_PARSE_FILE_PATH", "DBT_ENGINE_PARTIAL_PARSE_FILE_PATH")
_ALL: Final = "*"
_COLUMNS: Final = ("node", "would be", "because")
_DESCRIPTION = """\
Compiles the nodes with dbt, compares their code and their inputs with the last build in the log of their tables, and
shows what a run would do with each node that has `reuse`. Nothing is built, no hook runs, and target/ stays as it is,
so that `dbt retry` and `silt report` still see the last run. Queries that the SQL runs
while it is compiled are run. The inputs are taken as they are now: if a run would build an input first, the node is
shown as built after it, or as cloned or built if it has `reuse: {from: prod}`. Only chosen nodes are inputs in this
sense: `silt why +orders` chooses them too. With --changed, it prints only the names of the nodes that a run would not
reuse, of all nodes by default: `dbt build --select $(silt why --changed)` needs no state of an earlier run. A node
without `reuse` counts as changed, and views are left out. With --upkeep, the arguments are tables, and the answer is
that of `silt upkeep --dry-run`."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "why", "explain whether a run would reuse, clone or build a node", _DESCRIPTION)
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="a name, or what `dbt build --select` accepts")
    parser.add_argument("--changed", action="store_true", help="print only the names of the nodes that are not reused")
    parser.add_argument("--upkeep", action="store_true", help="explain the upkeep of tables instead")
    parser.add_argument("--vars", metavar="YAML", help="dbt's variables")


def run(arguments: Namespace) -> int:
    """Prints the decisions.

    Raises:
        InvalidSettingError: if the arguments name a warehouse without a project, or dbt cannot compile the nodes.
    """
    if arguments.upkeep:
        return upkeep.explain(open_warehouse(arguments, on_branch=False), arguments.nodes or None, arguments.json)
    if not (arguments.nodes or arguments.changed):
        raise InvalidSettingError("no node is named", remedy="Name a node, or add `--changed` or `--upkeep`")
    if arguments.warehouse is not None:
        raise InvalidSettingError("only a dbt project has nodes", remedy="Leave `--warehouse` out")
    found = compiled(MODULE, arguments.nodes or [_ALL], arguments)
    if found is None:
        raise InvalidSettingError("dbt cannot compile the nodes", remedy="Correct the errors that dbt reports above")
    return show(_changed(found) if arguments.changed else answer(found), arguments.json)


def _changed(explained: Sequence[dict[str, Any]]) -> Answer:
    """Renders the names of the nodes that are not reused, for `dbt build --select`."""
    found = [each for each in explained if not each["reused"]]
    return Answer({"nodes": found}, [" ".join(each["node"].split(".", 2)[2] for each in found)])


def compiled(module: str, nodes: Sequence[str], arguments: Namespace, given: Sequence[str] = ()) -> Any:
    """Returns the JSON value that a program prints about nodes that it compiles with dbt; None if it fails.

    Args:
        module: the program, for a separate process.
        nodes: the nodes that it selects, as dbt's `--select`.
        given: further arguments, before dbt's own.
    """
    with tempfile.TemporaryDirectory(prefix="silt-") as folder:
        ours = [sys.executable, "-m", module, *given, "--select", *nodes]
        program = [*ours, *_for_dbt(arguments), *_written_to(folder, arguments)]
        done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False)
    return None if done.returncode else json.loads(done.stdout)


def answer(explained: Sequence[dict[str, Any]]) -> Answer:
    """Renders the decisions, in the order given."""
    rows = [(each["node"], each["result"], "; ".join(each["reasons"]) or UNKNOWN) for each in explained]
    return Answer({"nodes": list(explained)}, [Rows(_COLUMNS, rows, empty="no node that has a table was chosen")])


def _for_dbt(arguments: Namespace) -> Iterator[str]:
    for name in _OPTIONS:
        value = getattr(arguments, name)
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", value)


def _written_to(folder: str, arguments: Namespace) -> Iterator[str]:
    """Yields the options with which dbt writes artifacts and logs to a folder, and reads its last parse from target/.

    `dbt retry` and the report read the last command's artifacts, so a compilation must not replace them.
    """
    yield from ("--target-path", folder, "--log-path", folder)
    project = profile.find_project(arguments)
    if project is None or any(os.environ.get(name) for name in _PARSED_VARIABLES):
        return
    parsed = project.target_path / _PARSED
    if parsed.is_file():
        yield from ("--partial-parse-file-path", str(parsed))
