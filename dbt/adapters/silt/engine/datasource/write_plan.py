"""Plans a write from its options and the columns of the rows: a WritePlan, which Spark sends to its tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import types as spark_types

from dbt.adapters.silt.engine.arrow.read import condition
from dbt.adapters.silt.engine.arrow.tables import TableLocation
from dbt.adapters.silt.engine.commands.spark.partitions import check_partitionable
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.datasource.options import Options, at_most_one
from dbt.adapters.silt.engine.datasource.write_target import TargetTable
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.types import arrow_schema
from dbt.adapters.silt.engine.kernel.table import storable_schema
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.clustering import clustering_columns
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.features import check_writable
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
    nullable_schema,
    without_collations,
)
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable, check_voids
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
        sorted_by: the columns, by the names in files, that the rows of each file are sorted by.
    """

    table: str
    location: TableLocation
    metadata: Metadata
    base_version: int | None
    folder: str
    predicate: Expression = TRUE
    sorted_by: tuple[str, ...] = ()


def _check_supported(metadata: Metadata, table: str) -> None:
    """Raises an error unless files of the table can be written without Spark's expressions.

    Raises:
        UnsupportedFeatureError: if the table needs a feature that only the engine's own writer supports.
    """
    schema = StructType.from_json(metadata.schema_string)
    for feature in _unsupported_rules(schema, TableProperties(metadata.configuration)):
        raise errors.UnsupportedFeatureError(
            f"the table has {feature}, which this data source does not write",
            remedy=_REMEDY,
            table=table,
            details={"features": (feature,)},
        )
    check_voids(schema, table)
    arrow_schema(schema, table)


def _check_columns(schema: StructType, given: StructType, table: str) -> None:
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
            raise errors.TypeMismatchError(f"there are two columns `{column.name}`", table=table, remedy="Rename one")
        _check_column(schema.require(column.name, table), column, table)
    for column in schema:
        if column.name.lower() not in names:
            _check_left_out(column, table)


def _unsupported_rules(schema: StructType, properties: TableProperties) -> Iterator[str]:
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
        raise errors.TypeMismatchError(
            f"the column `{column.name}` is {column.type.sql_name}, but the rows have {given.type.sql_name}",
            remedy="Cast the column of the DataFrame, or write it with `Warehouse.write`, which casts as SQL does",
            table=table,
        )


def _bare(data_type: DataType) -> DataType:
    """Returns the type with only the names and types in data files, for comparison."""
    return map_fields(without_collations(nullable(data_type)), lambda field: StructField(field.name, field.type))


def _check_left_out(column: StructField, table: str) -> None:
    if CURRENT_DEFAULT in column.metadata:
        raise errors.UnsupportedFeatureError(
            f"the rows leave out the column `{column.name}`, whose default this data source does not compute",
            remedy="Give the column, or write the rows with `Warehouse.write`",
            table=table,
            details={"features": ("allowColumnDefaults",)},
        )
    if not column.nullable:
        raise errors.NotNullViolationError(f"the rows leave out the NOT NULL column `{column.name}`", table=table)


@dataclass(frozen=True)
class Asked:
    """The request of a write.

    Attributes:
        overwrite: whether rows are replaced: all rows, unless options select some.
    """

    options: Options
    overwrite: bool

    @property
    def target(self) -> TargetTable:
        return TargetTable(self.options.table)

    @property
    def replace_where(self) -> str | None:
        """The condition of the rows to replace.

        Raises:
            InvalidArgumentError: if the mode does not replace rows.
        """
        return self._of_overwrite("replaceWhere")

    @property
    def is_dynamic(self) -> bool:
        """Whether only the partitions of the new rows are replaced.

        Raises:
            InvalidArgumentError: if the mode does not replace rows, or the option has another value.
        """
        mode = (self._of_overwrite("partitionOverwriteMode") or "static").lower()
        if mode not in ("static", "dynamic"):
            raise errors.InvalidArgumentError(
                f"the option `partitionOverwriteMode` cannot be `{mode}`", remedy="Give `dynamic` or `static`"
            )
        return mode == "dynamic"

    def plan(self, given: spark_types.StructType) -> WritePlan:
        """Returns the plan of a write of rows with these columns.

        Raises:
            InvalidArgumentError: if the options contradict each other or the table.
            RunNotFoundError, ConcurrentModificationError: if the run of the option `branch` has ended.
            UnsupportedStatementError: if the run cannot change the table (again).
            UnsupportedFeatureError: if the table needs a feature that this data source lacks.
            ColumnNotFoundError, TypeMismatchError, NotNullViolationError: if the columns do not match the table's.
        """
        at_most_one(self.options, ("replaceWhere", "partitionOverwriteMode"))
        columns = kernel_schema(given)
        target = self.target
        log = target.find()
        return self._of_new_table(target.new(), columns) if log is None else self._of_table(log, columns)

    def _of_overwrite(self, name: str) -> str | None:
        text = self.options.text(name)
        if text is not None and not self.overwrite:
            raise errors.InvalidArgumentError(
                f"the option `{name}` is only for the mode overwrite", remedy='Write with `mode("overwrite")`'
            )
        return text

    def _of_table(self, log: DeltaLog, columns: StructType) -> WritePlan:
        snapshot = log.snapshot()
        metadata = snapshot.metadata
        check_writable(snapshot.protocol, log.name, metadata)
        _check_supported(metadata, log.name)
        _check_columns(snapshot.schema, columns, log.name)
        self._check_partitioning(snapshot)
        predicate = condition(self.replace_where, snapshot, self.options.table.name, self.options.time_zone)
        location = TableLocation.of(self.options.table, log.store)
        # Arrow sorts by columns, and not by members of structs.
        simple = itertools.takewhile(lambda path: len(path) == 1, clustering_columns(snapshot.domains))
        sorted_by = tuple(path[0] for path in simple)
        return WritePlan(log.name, location, metadata, snapshot.version, log.clock.new_id(), predicate, sorted_by)

    def _of_new_table(self, log: DeltaLog, columns: StructType) -> WritePlan:
        schema = nullable_schema(columns)
        partitioning = tuple(schema.require(name).name for name in self.options.names("partitionBy") or ())
        check_storable(schema, log.name)
        storable_schema.check_names(schema, log.name)
        check_partitionable(schema, partitioning, log.name)
        clock = log.clock
        metadata = Metadata(clock.new_id(), schema.to_json(), partitioning, created_time=clock.now_ms())
        _check_supported(metadata, log.name)
        location = TableLocation.of(self.options.table, log.store)
        return WritePlan(log.name, location, metadata, None, clock.new_id(), TRUE)

    def _check_partitioning(self, snapshot: Snapshot) -> None:
        wanted = self.options.names("partitionBy")
        if wanted is None or [name.lower() for name in wanted] == [n.lower() for n in snapshot.partition_columns]:
            return
        raise errors.InvalidArgumentError(
            f"the table is partitioned by {', '.join(snapshot.partition_columns) or 'nothing'}",
            remedy="Remove `partitionBy`: a table keeps its partition columns",
            table=snapshot.table,
        )
