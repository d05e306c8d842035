"""Decides whether a session has changed the meaning of a statement, and resolves names to relations of a warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.name_errors import similar_relations
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName, completed
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, RelationNotFoundError, SiltError
from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name, Statement

_ZONE: Final = "spark.sql.session.timeZone"
UNKNOWN_ZONE: Final = "(not known)"
"""Not a zone: a literal that needs a zone is then left to Spark."""

_MAY_CHANGE: Final = ("spark.sql.", "silt.")
_CHANGE_NO_ANSWER: Final = (
    *(
        "spark.sql.codegen.",
        "spark.sql.shuffle.",
        "spark.sql.adaptive.",
        "spark.sql.files.",
        "spark.sql.execution.arrow.",
    ),
    *("spark.sql.sources.parallelPartitionDiscovery.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.ui."),
    *("spark.sql.parquet.compression.codec", "spark.sql.ansi.enabled", "spark.sql.warehouse.dir", _ZONE),
)
"""Settings of Spark's SQL, or their prefixes, that do not affect answers given without Spark."""

_CHANGE_SESSION: Final = (
    *(ast.SetSetting, ast.ResetSetting, ast.Use, ast.CreateViewUsing, ast.CreateFunction),
    *(ast.Unrecognised, ast.Call, ast.Begin),
)

_OF_THE_ENGINE = "information_schema"


def change_no_answer(spark_conf: Mapping[str, Any]) -> bool:
    """Returns whether a profile's settings of Spark certainly do not affect answers given without Spark."""
    return all(name.startswith(_CHANGE_NO_ANSWER) for name in spark_conf if name.startswith(_MAY_CHANGE))


def known_zone(spark_conf: Mapping[str, Any]) -> str:
    """Returns the session's time zone, or `UNKNOWN_ZONE` if the profile does not name it, or not literally."""
    zone = str(spark_conf.get(_ZONE, UNKNOWN_ZONE))
    return UNKNOWN_ZONE if "{" in zone else zone


def changes_session(statement: Statement | None) -> bool:
    """Returns whether later statements may have another meaning; true for an unrecognised statement."""
    if statement is None or isinstance(statement, _CHANGE_SESSION):
        return True
    return isinstance(statement, ast.CreateView) and statement.scope is not ast.ViewScope.PERSISTENT


@dataclass(frozen=True)
class Names:
    """The names of a statement.

    Attributes:
        catalog: the catalog at the beginning of the statement.
        database, schema: the defaults of a name without these parts.
        spark_has_none: whether Spark certainly has no tables of its own.
    """

    catalog: Catalog
    database: str
    schema: str
    spark_has_none: bool = True

    def find(self, name: Name) -> DeltaLog | View | None:
        """Returns the table or view, or None if only Spark's session can resolve the name.

        Raises:
            RelationNotFoundError: if the name belongs to the warehouse, and no such table or view exists.
        """
        full = self._full(name)
        if full is None:
            return None
        entry = self.catalog.find(full)
        if entry is None and len(name) == 1 and not self.spark_has_none:
            return None
        if entry is None:
            raise self.not_found(full)
        return self.catalog.view(full) if entry.kind is RelationKind.VIEW else self.catalog.table(full)

    def within(self, view: View) -> Names:
        """Returns the names in the query of a view."""
        database, schema = view.current_database or self.database, view.current_schema or self.schema
        return Names(self.catalog, database, schema, self.spark_has_none)

    def not_found(self, name: RelationName) -> RelationNotFoundError:
        """Returns the error for a missing relation, with similar names."""
        near = similar_relations(self._relations(name.database), name)
        own = f"{name.schema}."
        remedy = f"Did you mean {listed(near)}?" if near else None
        if near and near[0].startswith(own):
            remedy = f"Check the name; similar names are: {', '.join(each.removeprefix(own) for each in near)}"
        return RelationNotFoundError("the table or view does not exist", table=str(name), remedy=remedy)

    def _full(self, name: Name) -> RelationName | None:
        if len(name) > 3 or _OF_THE_ENGINE in (part.lower() for part in name[:-1]):
            return None
        try:
            full = completed(name, self.database, self.schema)
            is_ours = len(name) == 1 or self.catalog.has_schema(full.database, full.schema)
        except InvalidNameError:
            return None
        return full if is_ours else None

    def _relations(self, database: str) -> list[RelationName]:
        try:
            return [each.name for each in self.catalog.all_relations(database)]
        except SiltError:  # a missing database has no names
            return []
