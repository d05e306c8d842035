"""The entry of the command `silt`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.cli import check, history, rollback, run, runs, show
from dbt.adapters.silt.cli.options import Subcommand
from dbt.adapters.silt.engine.kernel.errors import NotATableError, SiltError, TableDamagedError

SUBCOMMANDS: Mapping[str, Subcommand] = {
    "runs": runs,
    "run": run,
    "history": history,
    "show": show,
    "check": check,
    "rollback": rollback,
}
"""The module of each subcommand, in the order of the help."""

PROBLEMS_FOUND, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes beyond 0."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Args:
        argv: the arguments, without the program's name; by default the process's own.

    Returns:
        The exit code: 0; 1 where problems were found; 2 where what was asked for cannot be had; 130 after Ctrl-C.

    Raises:
        SystemExit: after `--help` and `--version`, and for arguments that are none.
    """
    arguments = _parser().parse_args(argv)
    try:
        return SUBCOMMANDS[arguments.subcommand].run(arguments)
    except SiltError as error:
        print(f"silt: {error}", file=sys.stderr)
        is_damage = isinstance(error, TableDamagedError) and not isinstance(error, NotATableError)
        return PROBLEMS_FOUND if is_damage else BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="silt",
        description="Shows what runs did to a warehouse of dbt-silt, and what its tables are; undoes a run.",
    )
    parser.add_argument("--version", action="version", version=f"silt {version}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", dest="subcommand", required=True)
    for module in SUBCOMMANDS.values():
        module.add(subparsers)
    return parser
