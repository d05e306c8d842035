"""What a connection hands to its cursor."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.records.units import Unit


@dataclass(frozen=True)
class Submission:
    """A text as it is to be run: what dbt logs of it has the query comment, too.

    Attributes:
        text: its statements.
        unit: where the text is a node's own write, its unit of work.
        replace_tables: whether a view that is created may replace a table.
    """

    text: str
    unit: Unit | None = None
    replace_tables: bool = False
