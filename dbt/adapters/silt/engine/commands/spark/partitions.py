"""Converts partition values: strings in the log, columns in Spark, and the folders that Spark writes files into.

The engine's files contain the partition columns too. Spark's writer gets a copy of each column as a string, from which
the log's value is restored exactly: a timestamp as its microseconds, because Spark's own folder name would be in the
session's time zone, and so could mean two points in time; a string with a mark if Spark would read it as null. `unfit`
finds values that the log or a folder's name cannot hold (decision 0044), such as an empty string, which the log cannot
distinguish from null. Source: the Delta specification, section "Partition Value Serialization".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import spark_type
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, PartitionValueError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import listed, quote
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.column_mapping import stored_schema
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.value_order import value_order_of

IN_FILE_TAG: Final = "SILT_PARTITION_COLUMNS_IN_FILE"
"""The tag of an `add` whose file contains the partition columns."""

SPARK_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_MARK = "="
"""The prefix of a string that Spark, or this module, would otherwise misread."""

_AS_TEXT = ("string", "binary")
_LONGEST_NAME = 255
"""The most bytes of a folder's name, in the file systems of Linux and macOS."""

_ESCAPED = "[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]"
"""The characters that Spark writes as `%` and two digits in the names of folders."""

_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first and the last microsecond of the years 1 to 9999, in UTC."""

_WHOLE: Mapping[str, pa.DataType] = {"byte": pa.int8(), "short": pa.int16(), "integer": pa.int32()}

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_WITH_ZONE = "(Z|:[0-9.]+[+-][0-9:]+)$"


def check_partitionable(schema: StructType, partition_columns: Sequence[str], table: str | None = None) -> None:
    """Checks that a table can be partitioned by these columns.

    Raises:
        ColumnNotFoundError: if a column does not exist.
        InvalidStatementError: if a column is named twice.
        UnsupportedStatementError: if a column's values cannot be written as strings, or no other column remains.
    """
    members = [schema.require(name, table) for name in partition_columns]
    if len({member.name for member in members}) < len(members):
        raise InvalidStatementError(
            f"the partition columns {listed(member.name for member in members)} name a column twice",
            remedy="Name each column once",
            table=table,
        )
    for member in members:
        if isinstance(member.type, ArrayType | MapType | StructType) or not _is_partition_type(member.type.name):
            raise UnsupportedStatementError(
                f"the column `{member.name}` of type {member.type.sql_name} cannot be a partition column",
                remedy="Choose a column of a simple type",
                table=table,
            )
    if partition_columns and len(schema.drop(*partition_columns)) == 0:
        raise UnsupportedStatementError(
            "all columns are partition columns",
            remedy="Leave at least one column out of the partition columns",
            table=table,
        )


def _is_partition_type(name: str) -> bool:
    """Returns whether equal values of a simple type have the same string in the log."""
    return name not in ("binary", "variant") and collations.collation(name) is None


def copy_names(metadata: Metadata) -> dict[str, str]:
    """Returns names for the copies, by partition column; VACUUM would ignore folders of a name that begins with `_`."""
    schema = StructType.from_json(metadata.schema_string)
    taken = {name.lower() for name in stored_schema(metadata).names}
    names: dict[str, str] = {}
    for member in map(schema.require, metadata.partition_columns):
        name = f"{member.physical_name}_"
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        names[member.name] = name
    return names


def copy(member: StructField, name: str) -> Column:
    """Returns the copy of a column as a string, which is only the mark if the value is `unfit`.

    Args:
        name: the copy's name from `copy_names`.
    """
    column = F.col(quote(member.name))
    kind = getattr(member.type, "name", "")
    text = (F.unix_micros(column) if kind == "timestamp" else column).cast("string")
    if kind not in _AS_TEXT:
        return text
    unclear = text.startswith(_MARK) | text.startswith(SPARK_NULL)
    marked = F.when(unclear, F.concat(F.lit(_MARK), text)).otherwise(text)
    return F.when(reduce(or_, unfit(member, name).values()), F.lit(_MARK)).otherwise(marked)


def unfit(member: StructField, name: str) -> dict[str, Column]:
    """Maps the description of each kind of value that a partition column cannot hold to a condition for such values.

    Args:
        name: the name of the column's copy.
    """
    column = F.col(quote(member.name))
    kind = getattr(member.type, "name", "")
    if kind in ("date", "timestamp", "timestamp_ntz"):
        is_known = F.unix_micros(column).between(*_YEARS) if kind == "timestamp" else F.year(column).between(1, 9999)
        return {"a time outside the years 1 to 9999 in UTC": ~is_known}
    if kind not in _AS_TEXT:
        return {}
    text = column.cast("string")
    return {
        "an empty string, which the format cannot distinguish from null": text == "",
        "a string with the character NUL, which a folder's name cannot contain": F.contains(text, F.lit("\0")),
        "bytes that are not valid UTF-8": ~F.is_valid_utf8(text),
        f"a string that is too long for the name of a folder (at most {_LONGEST_NAME} bytes)": _is_long(text, name),
    }


def escaped(text: str) -> str:
    """Escapes a string for the name of a folder, as Spark and Hive do."""
    return re.sub(_ESCAPED, lambda found: f"%{ord(found[0]):02X}", text)


def _is_long(text: Column, name: str) -> Column:
    room = _LONGEST_NAME - len(f"{escaped(name)}={escaped(_MARK)}".encode())
    longest = F.lit(len("%00")) * F.octet_length(text) > room
    return longest & (F.octet_length(F.regexp_replace(text, _ESCAPED, "%00")) > room)


def values_of_folders(folders: Sequence[str], types: Mapping[str, DataType]) -> dict[str, str | None]:
    """Returns the log's partition values of a file, from the folders that contain it.

    Args:
        folders: the folders' names, `copy=text` as Spark writes them, in the order of `types`.
        types: the partition columns' types by name.
    """
    texts = (unquote(folder.partition("=")[2]) for folder in folders)
    return {name: log_value(text, types[name]) for name, text in zip(types, texts, strict=True)}


def unreadable(spark: SparkSession, texts: Iterable[str | None], data_type: DataType) -> str | None:
    """Finds a partition value of the log that is not a value of its column's type."""
    unclear = _unclear(pa.array(sorted({text for text in texts if text}), pa.string()), data_type)
    if not unclear:
        return None
    strings = spark.createDataFrame(pa.table({"text": unclear}))
    wrong = strings.filter(typed(F.col("text"), data_type).isNull()).first()
    return None if wrong is None else str(wrong.text)


def _unclear(texts: pa.Array, data_type: DataType) -> pa.Array:
    """Returns the strings that Spark may be unable to convert: it also accepts spellings that the kernel does not."""
    order = value_order_of(data_type)
    if order is None:
        return texts.slice(0, 0)
    forms = order.from_texts(texts)
    stored = _WHOLE.get(getattr(data_type, "name", ""), forms.type)
    if isinstance(data_type, DecimalType):
        stored = pa.decimal128(data_type.precision, data_type.scale)
    try:
        forms.cast(stored)
    except pa.ArrowInvalid:
        return texts
    return texts.filter(pc.is_null(forms))


def typed(text: Column, data_type: DataType) -> Column:
    """Converts partition values of the log to a column of their type; `unreadable` values become null.

    A timestamp without a zone is in UTC.
    """
    given = F.when(text != "", text)
    if getattr(data_type, "name", "") == "timestamp":
        given = F.when(given.rlike(_WITH_ZONE), given).otherwise(F.concat(given, F.lit("Z")))
    return given.try_cast(spark_type(data_type))


def log_value(text: str, data_type: DataType) -> str | None:
    """Returns the log's form of a value in a folder's name: microseconds for a timestamp, else Spark's string."""
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
        problem = "a timestamp outside the years 1 to 9999 in UTC cannot be a partition value"
        raise PartitionValueError(problem) from error
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
