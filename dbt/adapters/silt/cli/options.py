"""Declares a subcommand, with the options that all subcommands have."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dbt.adapters.silt.cli.warehouses import add_warehouse_options

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers: TypeAlias = _SubParsersAction[ArgumentParser]
else:
    Subparsers: TypeAlias = object


class Subcommand(Protocol):
    """The module of a subcommand."""

    def add(self, subparsers: Subparsers) -> None:
        """Declares the subcommand."""
        ...

    def run(self, arguments: Namespace) -> int:
        """Runs the subcommand and returns its exit code."""
        ...


def subcommand(subparsers: Subparsers, name: str, summary: str, description: str) -> ArgumentParser:
    """Declares a subcommand with the options that all subcommands have.

    Args:
        summary: the line about it in the list of subcommands.
        description: the text of its help, as sentences.
    """
    parser = subparsers.add_parser(
        name, help=summary, description=description, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")
    add_warehouse_options(parser)
    return parser
