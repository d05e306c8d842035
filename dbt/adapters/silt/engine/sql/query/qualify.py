"""Qualifies the bare column names of an expression that is evaluated over more tables than it may name.

In SQL an INSERT of a MERGE sees the source's columns alone, and a clause about NOT MATCHED BY SOURCE the target's
alone, so a bare name there is not ambiguous even where both have it. Spark evaluates all clauses over the joined rows:
bare names are given their qualifier first. Names inside a subquery belong to the subquery and stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, StatementSyntaxError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.query.column_names import ColumnName, column_names
from dbt.adapters.silt.engine.sql.tokens import tokenize


@dataclass(frozen=True)
class Scope:
    """The one table whose columns an expression sees.

    Args:
        alias: what the table's columns are qualified by.
        columns: the table's columns.
        other: the alias of a table that is not seen.
        clause: the kind of clause, for messages.
    """

    alias: str
    columns: Collection[str]
    other: str
    clause: str

    def qualify(self, text: str) -> str:
        """The expression with the alias put before the bare names of the table's columns.

        A text that is no expression stays as it is, and so does a word of which it is not sure that it is a column:
        Spark, which reads the result, then refuses the name if it is ambiguous.

        Raises:
            ColumnNotFoundError: it names a column of the other table.
        """
        try:
            names = column_names(tokenize(text))
        except StatementSyntaxError:
            return text
        for name in reversed([name for name in names if self._is_bare(name, text)]):
            text = f"{text[: name.start]}{quote(self.alias)}.{text[name.start :]}"
        return text

    def _is_bare(self, name: ColumnName, text: str) -> bool:
        """Whether the name is that of a column of the table, without the qualifier."""
        first = name.parts[0].lower()
        if name.is_dotted and first == self.alias.lower():
            return False
        if name.is_dotted and first == self.other.lower():
            raise ColumnNotFoundError(f"{self.clause} cannot refer to {text[name.start : name.end]}")
        return first in self._folded_columns

    @cached_property
    def _folded_columns(self) -> frozenset[str]:
        return frozenset(column.lower() for column in self.columns)
