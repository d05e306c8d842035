"""The statements that a connection hands to its cursor."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.records.units import Unit


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
