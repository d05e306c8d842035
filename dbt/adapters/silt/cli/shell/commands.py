r"""The commands of the shell that are not SQL statements: `\d`, `help`, `quit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.cli.shell.output import Explanation, RowsFound, drawn
from dbt.adapters.silt.engine.answers.sessions import Names
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.sql.tokens import identifiers, split_statements, tokenize

QUIT: Final = frozenset(("quit", "exit", "\\q"))
HELP: Final = (
    "A statement ends with a semicolon, and may have several lines. Tab completes names; the arrow keys recall",
    "earlier lines. Ctrl-C stops a statement, or discards the lines; Ctrl-D ends the shell.",
    "  \\d                  tables and views",
    "  \\d NAME             columns of a table",
    "  explain select ...  the files that are read, and why others are skipped",
    "  explain extended    Spark's plans",
    "  \\q                  ends the shell, as `quit` does",
)


def answer(text: str, names: Names) -> RowsFound | Explanation:
    """Returns the answer to a command.

    Args:
        text: any command except `quit` and its synonyms.

    Raises:
        SiltError: if the command or table does not exist.
    """
    word, _, rest = text.strip().rstrip("; ").partition(" ")
    if word.lower() in ("help", "\\?", "\\h"):
        return Explanation(HELP, {"help": list(HELP)})
    if word != "\\d":
        raise UnsupportedStatementError(f"unknown command {word}", remedy="Type `help`")
    return RowsFound(_columns(names, rest.strip()) if rest.strip() else _relations(names))


def command_lines(text: str, names: Names, columns: int | None) -> Iterator[str]:
    """Yields the lines of the answer to a command.

    Args:
        columns: the width of the terminal.

    Raises:
        SiltError: if the command or table does not exist.
    """
    found = answer(text, names)
    yield from found.lines if isinstance(found, Explanation) else drawn(found.rows, columns)


def pieces(text: str) -> list[str]:
    """Splits input into its statements and commands, up to a command that ends the shell.

    Raises:
        StatementSyntaxError: if a string, a quoted name or a comment is not closed.
    """
    found: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        if not (is_command(line) and _is_whole("\n".join(lines))):
            lines.append(line)
            continue
        found += split_statements("\n".join(lines))
        lines.clear()
        if line.strip().rstrip("; ").lower() in QUIT:
            return found
        found.append(line.strip())
    return [*found, *split_statements("\n".join(lines))]


def _is_whole(text: str) -> bool:
    """Returns whether no statement is open at the end of the input."""
    try:
        tokens = tokenize(text)
    except StatementSyntaxError:  # a string, a name or a comment is open
        return False
    return len(tokens) == 1 or tokens[-2].word == ";"


def is_command(text: str) -> bool:
    """Returns whether a line is a command, which needs no semicolon."""
    word = text.strip().rstrip(";").strip()
    return word.startswith("\\") or word.lower() in {"help", *QUIT}


def _relations(names: Names) -> pa.Table:
    found = list(names.catalog.all_relations(names.database))
    rows = {
        "schema": [each.name.schema for each in found],
        "name": [each.name.identifier for each in found],
        "kind": [each.kind.name.lower() for each in found],
    }
    return pa.table(rows, schema=pa.schema([(name, pa.string()) for name in rows]))


def _columns(names: Names, text: str) -> pa.Table:
    parts = tuple(identifiers(text.rstrip(";")))
    found = names.find(parts)
    if isinstance(found, View):
        raise UnsupportedStatementError(
            "it is a view, whose columns only Spark knows", remedy=f"Run `describe {text}`", table=str(found.name)
        )
    if not isinstance(found, DeltaLog):
        raise UnsupportedStatementError(f"`{text}` is not a table of the warehouse", remedy=f"Run `describe {text}`")
    fields = list(found.snapshot().schema)
    rows = {
        "column": [field.name for field in fields],
        "type": [field.sql_type for field in fields],
        "null": ["yes" if field.nullable else "no" for field in fields],
        "comment": [field.comment or "" for field in fields],
    }
    return pa.table(rows, schema=pa.schema([(name, pa.string()) for name in rows]))
