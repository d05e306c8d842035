"""Finds the table's column for each column of an inserted query, and evolves the table's schema where asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.target import Target, with_schema
from dbt.adapters.silt.engine.commands.writing import numbering, reserved_names, store_assignment
from dbt.adapters.silt.engine.commands.writing.checks import Check, table_checks
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable


@dataclass(frozen=True)
class Placement:
    """The columns that an INSERT names.

    Args:
        columns: the table's columns that the query's are for, in order; empty for all that `constants` leaves.
        by_name: whether the query's own names say it instead.
        constants: columns of a PARTITION clause with a value, and the value's SQL text.
        schema_evolution: whether columns that only the query has become the table's.
    """

    columns: tuple[str, ...] = ()
    by_name: bool = False
    constants: Mapping[str, str] = field(default_factory=dict)
    schema_evolution: bool = False


@dataclass(frozen=True)
class Placed:
    """A query's rows as a table's.

    Args:
        df: has the table's columns, and those that only `checks` use.
        metadata: of the table as it is to be.
        checks: of every row.
        evolved: whether the schema in `metadata` is not what the table has now.
        unnumbered: the identity columns in which the rows have no numbers yet.
        numbered: whether numbers were given, so that `metadata` has other marks.
    """

    df: DataFrame
    metadata: Metadata
    checks: tuple[Check, ...]
    evolved: bool
    unnumbered: Mapping[str, Column | None] = field(default_factory=dict)
    numbered: bool = False

    def new_metadata(self) -> Metadata | None:
        """The metadata to commit; None where nothing changes."""
        return self.metadata if self.evolved or self.numbered else None

    def with_numbers(self) -> Placed:
        """The rows with numbers in all identity columns; where any are missing, the query is run."""
        if not self.unnumbered:
            return self
        df, metadata = numbering.numbered(self.df, self.metadata, self.unnumbered)
        return replace(self, df=df, metadata=metadata, unnumbered={}, numbered=metadata != self.metadata)


def place(query: DataFrame, target: Target, placement: Placement) -> Placed:
    """The rows of a query as rows of the table.

    Raises:
        ColumnNotFoundError, TypeMismatchError: as `assign.assign`.
        InvalidStatementError: the query has values for an identity column that takes none.
    """
    snapshot = target.snapshot
    columns = _columns(snapshot.schema, placement)
    extended = query
    if placement.constants:
        extended = query.select("*", *(F.expr(text).alias(name) for name, text in placement.constants.items()))
    schema = (
        _evolved(extended, snapshot.schema, columns, target.name) if placement.schema_evolution else snapshot.schema
    )
    evolved = schema != snapshot.schema
    if evolved and columns is not None:
        columns = (*columns, *schema.names[len(snapshot.schema) :])
    given = extended.columns if columns is None else columns
    unnumbered = numbering.wanted(schema, given, target.name) if _has_computed(schema) else {}
    assigned = store_assignment.assign(extended, schema, target.name, placement.by_name, columns)
    metadata = with_schema(target, schema) if evolved else snapshot.metadata
    rules = table_checks(schema, snapshot.properties, target.name)
    return Placed(assigned.df, metadata, (*assigned.checks, *rules), evolved, unnumbered)


def _has_computed(schema: StructType) -> bool:
    return any(member.is_computed for member in schema)


def _columns(schema: StructType, placement: Placement) -> Sequence[str] | None:
    """The table's columns that the query's, with the constants after them, are for; None for matching by name."""
    if placement.by_name:
        return None
    constants = {name.lower() for name in placement.constants}
    named = placement.columns or tuple(name for name in schema.names if name.lower() not in constants)
    return (*named, *placement.constants)


def _evolved(df: DataFrame, schema: StructType, columns: Sequence[str] | None, table: str) -> StructType:
    """The table's schema with what only the query has: columns by name, or those beyond the table's by position."""
    source = query_schema(df)
    if columns is not None:
        own = tuple(
            StructField(schema.require(name, table).name, member.type)
            for name, member in zip(columns, source, strict=False)
        )
        source = StructType((*own, *source.fields[len(columns) :]))
    evolved = store_assignment.evolve(schema, source)
    if evolved != schema:
        check_storable(evolved, table, schema)
        reserved_names.check_names(evolved, table)
    return evolved
