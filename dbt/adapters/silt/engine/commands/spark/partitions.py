"""Converts partition values: text in the log, columns in Spark, and the folders that Spark writes files into.

Our files hold the partition columns too. Spark's writer is given a copy of each as text, from which the log's value is
read back exactly: a timestamp as its microseconds, because the folder name that Spark would give it is in the session's
time zone and may stand for two moments; an empty string marked, because Spark would take it for null. The log has no
spelling for an empty string but that of null: other readers take it for null, this engine reads it from the file.
Source: the Delta specification, section "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Final
from urllib.parse import unquote

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.kernel.errors import DataRejectedError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

IN_FILE_TAG: Final = "SILT_PARTITION_COLUMNS_IN_FILE"
"""Tag of an `add` whose file holds the partition columns themselves."""

SPARK_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_MARK = "="
"""Put before a text that Spark, or this module, would take for something else."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WITH_ZONE = "(Z|:[0-9.]+[+-][0-9:]+)$"


def check_partitionable(schema: StructType, partition_columns: Sequence[str], table: str | None = None) -> None:
    """Passes where files can be divided by these columns.

    Raises:
        ColumnNotFoundError: there is no such column.
        UnsupportedStatementError: a column's values have no text form, or no other column would be left.
    """
    for name in partition_columns:
        member = schema.require(name, table)
        if isinstance(member.type, ArrayType | MapType | StructType) or member.type.name in ("binary", "variant"):
            raise UnsupportedStatementError(
                f"the column `{member.name}` of type {member.type.sql_name} cannot be a partition column",
                remedy="Choose a column of a simple type",
                table=table,
            )
    if partition_columns and len(schema.drop(*partition_columns)) == 0:
        raise UnsupportedStatementError(
            "all columns are partition columns", remedy="Leave at least one column out of them", table=table
        )


def copy_names(stored: StructType, partitioning: Sequence[StructField]) -> dict[str, str]:
    """Names for the copies, by partition column. None is hidden to VACUUM, as one with `_` in front would be.

    Args:
        stored: the columns of the data files.
    """
    taken = {name.lower() for name in stored.names}
    names: dict[str, str] = {}
    for member in partitioning:
        name = f"{member.physical_name}_"
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        names[member.name] = name
    return names


def copy(member: StructField) -> Column:
    """The column's copy, as text."""
    column = F.col(quote(member.name))
    name = getattr(member.type, "name", "")
    text = (F.unix_micros(column) if name == "timestamp" else column).cast("string")
    if name != "string":
        return text
    unclear = (text == "") | text.startswith(_MARK) | text.startswith(SPARK_NULL)
    return F.when(unclear, F.concat(F.lit(_MARK), text)).otherwise(text)


def values_of_folders(folders: Sequence[str], types: Mapping[str, DataType]) -> dict[str, str | None]:
    """The log's partition values of a file, from the folders that it is in.

    Args:
        folders: their names, `copy=text` as Spark writes them, in the order of `types`.
        types: the partition columns' types by name.
    """
    texts = (unquote(folder.partition("=")[2]) for folder in folders)
    return {name: log_value(text, types[name]) for name, text in zip(types, texts, strict=True)}


def typed(text: Column, data_type: DataType) -> Column:
    """Partition values of the log as a column of their type; a timestamp without zone is taken for UTC."""
    given = F.when(text != "", text)
    if getattr(data_type, "name", "") == "timestamp":
        given = F.when(given.rlike(_WITH_ZONE), given).otherwise(F.concat(given, F.lit("Z")))
    return given.cast(spark_type(data_type))


def log_value(text: str, data_type: DataType) -> str | None:
    """The log's spelling of a value in a folder's name: of a timestamp its microseconds, of others Spark's text."""
    if text == SPARK_NULL:
        return None
    if isinstance(data_type, DecimalType):
        return format(Decimal(text), "f")
    name = getattr(data_type, "name", "")
    if name == "timestamp":
        return _timestamp_text(int(text))
    if name == "string":
        return text.removeprefix(_MARK)
    return text


def _timestamp_text(microseconds: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise DataRejectedError("a timestamp outside the years 1 to 9999 cannot be a partition value") from error
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
