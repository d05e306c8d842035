"""The plan of a write, and the check that this data source can write the table's files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.silt.engine.arrow.types import arrow_schema
from dbt.adapters.silt.engine.datasource.table_location import TableLocation
from dbt.adapters.silt.engine.kernel.errors import (
    NotNullViolationError,
    TypeMismatchError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.identity import identities
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    DataType,
    StructField,
    StructType,
    all_fields,
    map_fields,
    nullable,
)
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_voids
from dbt.adapters.silt.engine.kernel.table.type_widening import is_widening

_REMEDY = "Write the rows with `Warehouse.write` or by SQL"
_OF_COLUMNS = {
    GENERATION_EXPRESSION: "generated columns",
    "delta.invariants": "invariants",
}


@dataclass(frozen=True)
class WritePlan:
    """The values that a task needs to write files of a table; they can be pickled.

    Attributes:
        table: name of the table, for messages.
        metadata: metadata of the version to which the files will belong.
        base_version: version on which the write is based; None if it creates the table.
        folder: sub-folder with only the files of this write.
        predicate: condition that every row must satisfy.
    """

    table: str
    location: TableLocation
    metadata: Metadata
    base_version: int | None
    folder: str
    predicate: Expression = TRUE


def check_supported(metadata: Metadata, table: str) -> None:
    """Raises an error unless files of the table can be written without Spark's expressions.

    Raises:
        UnsupportedFeatureError: if the table needs a feature that only the engine's own writer supports.
    """
    schema = StructType.from_json(metadata.schema_string)
    for feature in _beyond(schema, TableProperties(metadata.configuration)):
        raise UnsupportedFeatureError(
            f"the table has {feature}, which this data source does not write",
            remedy=_REMEDY,
            table=table,
            details={"features": (feature,)},
        )
    check_voids(schema, table)
    arrow_schema(schema, table)


def check_columns(schema: StructType, given: StructType, table: str) -> None:
    """Raises an error unless the columns of a DataFrame match a table's by name and no value can be lost.

    Raises:
        ColumnNotFoundError: if the table lacks a column.
        TypeMismatchError: if a column has another type that is not always widened.
        NotNullViolationError: if a NOT NULL column is missing.
        UnsupportedFeatureError: if a column with a default is missing.
    """
    names = [name.lower() for name in given.names]
    for column in given:
        if names.count(column.name.lower()) > 1:
            raise TypeMismatchError(f"there are two columns `{column.name}`", table=table, remedy="Rename one")
        _check_column(schema.require(column.name, table), column, table)
    for column in schema:
        if column.name.lower() not in names:
            _check_left_out(column, table)


def _beyond(schema: StructType, properties: TableProperties) -> Iterator[str]:
    if properties.constraints:
        yield "CHECK constraints"
    if identities(schema):
        yield "identity columns"
    for field in all_fields(schema):
        yield from (what for key, what in _OF_COLUMNS.items() if key in field.metadata)
    if any(nullable(column.type) != column.type for column in schema):
        yield "NOT NULL inside of a column"


def _check_column(column: StructField, given: StructField, table: str) -> None:
    wanted, found = _bare(column.type), _bare(given.type)
    if wanted != found and not is_widening(found, wanted):
        raise TypeMismatchError(
            f"the column `{column.name}` is {column.type.sql_name}, but the rows have {given.type.sql_name}",
            remedy="Cast the column of the DataFrame, or write it with `Warehouse.write`, which casts as SQL does",
            table=table,
        )


def _bare(data_type: DataType) -> DataType:
    """Returns the type with only names and types, for comparison."""
    return map_fields(nullable(data_type), lambda field: StructField(field.name, field.type))


def _check_left_out(column: StructField, table: str) -> None:
    if CURRENT_DEFAULT in column.metadata:
        raise UnsupportedFeatureError(
            f"the rows leave out the column `{column.name}`, whose default this data source does not compute",
            remedy="Give the column, or write the rows with `Warehouse.write`",
            table=table,
            details={"features": ("allowColumnDefaults",)},
        )
    if not column.nullable:
        raise NotNullViolationError(f"the rows leave out the NOT NULL column `{column.name}`", table=table)
