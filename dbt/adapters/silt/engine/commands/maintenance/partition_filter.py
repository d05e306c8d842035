"""Finds the partitions that a condition selects: Spark evaluates it over a row for each partition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.maintenance import bins
from dbt.adapters.silt.engine.commands.reading import partition_match
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.partitions import typed
from dbt.adapters.silt.engine.commands.writing.conversion import fitted
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.schema import StructField
from dbt.adapters.silt.engine.kernel.table.text_lengths import padded_type

_GROUP = "__silt_group"


def partitions(spark: SparkSession, snapshot: Snapshot, alias: str, condition: str | None) -> list[pa.Table]:
    """Returns, for each partition that meets the condition, its files.

    Args:
        alias: the qualifier of columns in the condition.
        condition: SQL over partition columns; None for all partitions.

    Raises:
        UnsupportedStatementError: if the condition uses more than partition columns.
    """
    groups = bins.by_partition(snapshot, snapshot.files)
    if condition is None:
        return groups
    fields = [snapshot.schema.require(name, snapshot.table) for name in snapshot.partition_columns]
    if not fields:
        raise _not_about_partitions(snapshot, "the table has no partition columns")
    if not groups:
        return []
    try:
        with errors.mapped():
            # The line break ends a comment at the condition's end.
            chosen = _values(spark, groups, fields).alias(alias).filter(F.expr(f"({condition}\n)"))
            rows = chosen.select(_GROUP).collect()
    except ColumnNotFoundError as error:
        raise _not_about_partitions(snapshot, ", ".join(f"`{field.name}`" for field in fields)) from error
    return [groups[row[_GROUP]] for row in rows]


def _not_about_partitions(snapshot: Snapshot, these: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        f"the condition may only use partition columns: {these}",
        remedy="Name whole partitions, or leave WHERE out",
        table=snapshot.table,
    )


def _values(spark: SparkSession, groups: Sequence[pa.Table], fields: Sequence[StructField]) -> DataFrame:
    """Returns a row for each partition: its number, and its values as the table's columns."""
    firsts = pa.concat_tables([group.slice(0, 1) for group in groups])
    texts = [pa.array(partition_match.as_strings(firsts, field), pa.string()) for field in fields]
    names = [f"__silt_text_{position}" for position in range(len(fields))]
    known = spark.createDataFrame(pa.table([pa.array(range(len(groups)), pa.int64()), *texts], names=[_GROUP, *names]))
    return known.select(_GROUP, *(_value(name, field) for name, field in zip(names, fields, strict=True)))


def _value(text: str, field: StructField) -> Column:
    value = fitted(typed(F.col(text), field.type), padded_type(field))
    return value.alias(field.name, metadata=dict(field.metadata))
