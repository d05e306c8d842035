"""Converts columns between a table and its data files, which know them by physical names under column mapping."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import StructField, all_fields, nullable


def to_table_column(member: StructField, stored: StructField) -> Column:
    """A file's column as the table's, under the table's name; one of another type, or name inside, is cast."""
    column = F.col(quote(stored.name))
    if stored.type.sql_name != member.type.sql_name:
        column = column.cast(spark_type(nullable(member.type)))
    return column.alias(member.name, metadata=dict(member.metadata))


def to_file_column(member: StructField, stored: StructField) -> Column:
    """A table's column as its files have it: names and Parquet field ids, those of members of structs too."""
    column = F.expr(quote(member.name))
    if stored == member:
        return column
    if any(True for _ in all_fields(stored.type)):
        column = column.cast(spark_type(nullable(stored.type)))
    return column.alias(stored.name, metadata=dict(stored.metadata))
