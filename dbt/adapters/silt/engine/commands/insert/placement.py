"""Finds the table's column for each column of an inserted query, and evolves the table's schema if asked to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.target import Target, with_schema
from dbt.adapters.silt.engine.commands.writing import numbering, store_assignment
from dbt.adapters.silt.engine.commands.writing.checks import Check, table_checks
from dbt.adapters.silt.engine.kernel.table import storable_schema
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable


@dataclass(frozen=True)
class Placement:
    """The columns that an INSERT names.

    Args:
        columns: the table's columns that the query fills, in order; empty for all columns not in `constants`.
        by_name: whether the query's columns are matched by name instead.
        constants: the PARTITION clause's columns that have a value, with the SQL of the value.
        schema_evolution: whether columns that only the query has are added to the table.
    """

    columns: tuple[str, ...] = ()
    by_name: bool = False
    constants: Mapping[str, str] = field(default_factory=dict)
    schema_evolution: bool = False


@dataclass(frozen=True)
class Placed:
    """A query's rows, converted to rows of a table.

    Args:
        df: the table's columns, and columns that only `checks` use.
        metadata: the table's new metadata.
        checks: the checks of every row.
        evolved: whether the schema in `metadata` differs from the table's current schema.
        unnumbered: the identity columns that have no numbers yet.
        numbered: whether numbers were assigned, so that `metadata` has other high-water marks.
    """

    df: DataFrame
    metadata: Metadata
    checks: tuple[Check, ...]
    evolved: bool
    unnumbered: Mapping[str, Column | None] = field(default_factory=dict)
    numbered: bool = False

    def new_metadata(self) -> Metadata | None:
        """Returns the metadata to commit, if it changes."""
        return self.metadata if self.evolved or self.numbered else None

    def with_numbers(self) -> Placed:
        """Returns the rows with numbers in all identity columns; runs the query if any are missing."""
        if not self.unnumbered:
            return self
        df, metadata = numbering.numbered(self.df, self.metadata, self.unnumbered)
        return replace(self, df=df, metadata=metadata, unnumbered={}, numbered=metadata != self.metadata)


def place(query: DataFrame, target: Target, placement: Placement) -> Placed:
    """Converts the rows of a query to rows of the table.

    Raises:
        ColumnNotFoundError, TypeMismatchError: as `store_assignment.assign`.
        InvalidStatementError: if the query has values for an identity column that does not accept values.
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
    unnumbered = numbering.to_number(schema, given, target.name) if _has_computed(schema) else {}
    assigned = store_assignment.assign(extended, schema, target.name, placement.by_name, columns)
    metadata = with_schema(target, schema) if evolved else snapshot.metadata
    rules = table_checks(schema, snapshot.properties, target.name)
    return Placed(assigned.df, metadata, (*assigned.checks, *rules), evolved, unnumbered)


def _has_computed(schema: StructType) -> bool:
    return any(member.is_computed for member in schema)


def _columns(schema: StructType, placement: Placement) -> Sequence[str] | None:
    """Returns the columns that the query's columns, then the constants, fill by position; None if matched by name."""
    if placement.by_name:
        return None
    constants = {name.lower() for name in placement.constants}
    named = placement.columns or tuple(name for name in schema.names if name.lower() not in constants)
    return (*named, *placement.constants)


def _evolved(df: DataFrame, schema: StructType, columns: Sequence[str] | None, table: str) -> StructType:
    """Adds the columns that only the query has to the schema: new names, or by position the surplus columns."""
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
        storable_schema.check_names(evolved, table)
    return evolved
