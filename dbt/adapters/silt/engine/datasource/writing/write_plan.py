"""Plans a write: the table as the files are made for it, and whether they can be made here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt.adapters.silt.engine.arrow.types import arrow_schema
from dbt.adapters.silt.engine.datasource.place import TablePlace
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
    """What a task has to know to make files of a table; it can be pickled.

    Attributes:
        table: its name, for messages.
        metadata: that the files are made for.
        base_version: the version that the write is based on; None where it makes the table.
        folder: the sub-folder that holds the files of this write, and nothing else.
        predicate: what every row must fulfil.
    """

    table: str
    place: TablePlace
    metadata: Metadata
    base_version: int | None
    folder: str
    predicate: Expression = TRUE


def check_supported(metadata: Metadata, table: str) -> None:
    """Passes where files of the table can be made without Spark's own expressions.

    Raises:
        UnsupportedFeatureError: the table asks for what only the engine's own writer does.
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
    """Passes where the columns of a DataFrame, by their names, are a table's, and no value can be lost.

    Raises:
        ColumnNotFoundError: the table lacks one.
        TypeMismatchError: one is of another type, and none that is always widened.
        NotNullViolationError: a column that is NOT NULL is not given.
        UnsupportedFeatureError: a column with a default is not given.
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
            f"the column `{column.name}` is {column.type.sql_name}, and the rows have {given.type.sql_name}",
            remedy="Cast the column of the DataFrame, or write it with `Warehouse.write`, which casts as SQL does",
            table=table,
        )


def _bare(data_type: DataType) -> DataType:
    """The type with names and types alone, by which values are the same."""
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
