"""Qualifies the bare column names of an expression that is evaluated over more tables than it may name.

In SQL, an INSERT of a MERGE sees only the source's columns, and a NOT MATCHED BY SOURCE clause only the target's, so a
bare name in them is not ambiguous even if both tables have it. Spark evaluates all clauses over the joined rows: bare
names are qualified first. Names inside a subquery belong to the subquery and are unchanged.
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
    """The only table whose columns an expression sees.

    Args:
        alias: qualifier of the table's columns.
        columns: the table's columns.
        other: alias of an invisible table.
        clause: the kind of clause, for messages.
    """

    alias: str
    columns: Collection[str]
    other: str
    clause: str

    def qualify(self, text: str) -> str:
        """Returns the expression with the alias before the bare names of the table's columns.

        A text that is not an expression is unchanged, and so is a word that may not be a column: Spark, which reads the
        result, then refuses the name if it is ambiguous.

        Raises:
            ColumnNotFoundError: if it names a column of the other table.
        """
        try:
            names = column_names(tokenize(text))
        except StatementSyntaxError:
            return text
        for name in reversed([name for name in names if self._is_bare(name, text)]):
            text = f"{text[: name.start]}{quote(self.alias)}.{text[name.start :]}"
        return text

    def _is_bare(self, name: ColumnName, text: str) -> bool:
        """Returns whether the name is a column of the table, without the qualifier."""
        first = name.parts[0].lower()
        if name.is_dotted and first == self.alias.lower():
            return False
        if name.is_dotted and first == self.other.lower():
            raise ColumnNotFoundError(f"{self.clause} cannot refer to {text[name.start : name.end]}")
        return first in self._folded_columns

    @cached_property
    def _folded_columns(self) -> frozenset[str]:
        return frozenset(column.lower() for column in self.columns)
