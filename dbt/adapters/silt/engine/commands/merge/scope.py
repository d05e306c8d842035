"""Which table's columns a clause of MERGE may name.

In SQL an INSERT sees the source's columns alone, and a clause about NOT MATCHED BY SOURCE the target's alone, so a bare
name there is not ambiguous even where both have it. Spark evaluates all clauses over the joined rows: bare names are
given their qualifier first. Names inside a subquery belong to the subquery and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import sqlglot
from sqlglot import expressions as tree
from sqlglot.errors import SqlglotError

from dbt.adapters.silt.engine.commands.spark.partitions import quoted
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError

_QUALIFIED = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([A-Za-z_][A-Za-z0-9_]*))\s*\.\s*(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)\s*")


@dataclass(frozen=True)
class Scope:
    """The one side of a MERGE that an expression sees.

    Args:
        alias: what the side's columns are qualified by.
        columns: the side's columns.
        other: the alias of the side that is not seen.
        clause: the kind of clause, for messages.
    """

    alias: str
    columns: Collection[str]
    other: str
    clause: str

    def qualify(self, text: str) -> str:
        """The expression with the side's alias put before the bare names of its columns.

        Raises:
            ColumnNotFoundError: it names a column of the other side.
        """
        plain = _QUALIFIED.fullmatch(text)
        if plain is not None and _unquoted(plain).lower() == self.alias.lower():
            return text
        try:
            parsed = sqlglot.parse_one(text, dialect="databricks")
        except SqlglotError:
            # Spark may know what sqlglot does not: a bare name that is ambiguous is then Spark's error.
            return text
        places = (self._place(column) for column in parsed.find_all(tree.Column))
        for place in sorted((place for place in places if place is not None), reverse=True):
            text = f"{text[:place]}{quoted(self.alias)}.{text[place:]}"
        return text

    def _place(self, column: tree.Column) -> int | None:
        """Where in the text the qualifier is missing; None where nothing is missing."""
        first = column.parts[0]
        if column.find_ancestor(tree.Query) is not None or _is_parameter(column):
            return None
        if len(column.parts) > 1 and first.name.lower() in (self.alias.lower(), self.other.lower()):
            if first.name.lower() == self.other.lower():
                raise ColumnNotFoundError(f"{self.clause} cannot refer to {column.sql()}")
            return None
        is_column = first.name.lower() in {name.lower() for name in self.columns}
        return int(first.meta["start"]) if is_column else None


def _is_parameter(column: tree.Column) -> bool:
    """Whether the name is that of a parameter of a lambda around it."""
    around = column.find_ancestor(tree.Lambda)
    while around is not None:
        if column.parts[0].name.lower() in (parameter.name.lower() for parameter in around.expressions):
            return True
        around = around.find_ancestor(tree.Lambda)
    return False


def _unquoted(match: re.Match[str]) -> str:
    backquoted, plain = match.groups()
    return plain or backquoted.replace("``", "`")
