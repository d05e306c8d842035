"""The statements that a connection hands to its cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.units import Unit

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.sql import tokens
    from dbt.adapters.silt.runs import cut_relations
else:
    tokens = lazy_module("dbt.adapters.silt.engine.sql.tokens")
    cut_relations = lazy_module("dbt.adapters.silt.runs.cut_relations")


@dataclass(frozen=True)
class Submission:
    """SQL to run, without the query comment, which dbt adds to the logged SQL.

    Attributes:
        text: its statements.
        unit: the unit of work, if the text is a node's own write.
        replace_tables: whether CREATE OR REPLACE VIEW may replace a table.
    """

    text: str
    unit: Unit | None = None
    replace_tables: bool = False

    @property
    def statements(self) -> list[str]:
        """The statements of the text as they run, so that relations that dbt has cut have the form that they need."""
        return tokens.split_statements(cut_relations.current_text(self.text))

    @property
    def units(self) -> list[tuple[str, Unit | None]]:
        """The statements with their units of work: the last statement has the unit itself, the others its parts."""
        unit, statements = self.unit, self.statements
        parts = [unit and unit.part(number) for number in range(1, len(statements))]
        return list(zip(statements, [*parts, unit], strict=False))
