"""Parses the command line of `silt` and runs the subcommand."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Final, cast

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.cli.output.rendering import complain
from dbt.adapters.silt.command_server import client
from dbt.adapters.silt.engine.kernel.errors import NotATableError, SiltError, TableDamagedError

if TYPE_CHECKING:
    from types import ModuleType

    from dbt.adapters.silt.cli.warehouses import Subcommand

SUBCOMMANDS: Final = (
    "sql",
    "runs",
    "run",
    "history",
    "show",
    "check",
    "report",
    "serve",
    "catalog",
    "endpoint",
    "why",
    "quarantine",
    "upkeep",
    "rollback",
    "publish",
    "drop-run",
    "branch",
    "branches",
    "diff",
    "merge",
    "session",
)
"""The subcommands in the order of the help, each a module of this package; only the chosen module is loaded."""

BRANCHING: Final = ("drop-run", "branch", "branches", "diff", "merge")
"""The subcommands in the folder for named branches."""

DBT: Final = "dbt"
"""The subcommand whose arguments are dbt's own."""

PROBLEMS_FOUND, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes beyond 0."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a subcommand.

    Args:
        argv: the arguments, without the program's name; by default the process's own.

    Returns:
        The exit code: 0; 1 if problems were found; 2 if the request cannot be answered, or the subcommand is missing
            (then the help lists the subcommands); 130 after Ctrl-C.

    Raises:
        SystemExit: after `--help` and `--version`, and for invalid arguments.
    """
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == [DBT]:
        try:
            return client.main(given[1:])
        except KeyboardInterrupt:
            # No dbt has begun: the command server was about to take the command.
            return INTERRUPTED
    if given == [client.STATEMENTS]:
        return client.run_statements()
    if argv is None:
        sys.meta_path.insert(0, _LeftOut(("numpy", "pandas")))
    try:
        return _run(given)
    except SiltError as error:
        complain(error)
        is_damage = isinstance(error, TableDamagedError) and not isinstance(error, NotATableError)
        return PROBLEMS_FOUND if is_damage else BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python would report the broken pipe again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(given: Sequence[str]) -> int:
    if not given:
        parser_of(SUBCOMMANDS).print_help()
        return BAD_INPUT
    arguments = parser_of(given[:1] if given[0] in SUBCOMMANDS else SUBCOMMANDS).parse_args(given)
    return _subcommand(arguments.subcommand).run(arguments)


@dataclass(frozen=True)
class _LeftOut(MetaPathFinder):
    """Hides packages from imports in this process.

    PyArrow loads them if they are installed, which takes longer than the rest of the command; `silt` does not need
    them. PyArrow takes a None in `sys.modules`, which also hides a package, for the package.
    """

    names: tuple[str, ...]

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname in self.names:
            raise ModuleNotFoundError(f"{fullname} is not loaded by `silt`", name=fullname)


def _subcommand(name: str) -> Subcommand:
    folder = "branching." if name in BRANCHING else ""
    return cast("Subcommand", importlib.import_module(f"dbt.adapters.silt.cli.{folder}{name.replace('-', '_')}"))


def parser_of(names: Iterable[str]) -> ArgumentParser:
    """Returns the parser of a command line with these subcommands."""
    parser = ArgumentParser(
        prog="silt",
        description="Queries a warehouse of dbt-silt; shows its runs and tables; undoes, publishes or drops a run.",
        epilog="silt dbt ... is dbt itself, run by a process that keeps running.",
    )
    parser.add_argument("--version", action="version", version=f"silt {version}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", dest="subcommand", required=True)
    for name in names:
        _subcommand(name).add(subparsers)
    return parser
