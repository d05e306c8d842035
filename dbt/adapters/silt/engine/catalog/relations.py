"""The names and kinds of relations, without their content."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from dbt.adapters.silt.engine.catalog.names import RelationName


class RelationKind(enum.Enum):
    """Whether a relation is a table or a view."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True)
class RelationEntry:
    """A table or view that exists."""

    name: RelationName
    kind: RelationKind
