"""Random values of a partition column, as the names of folders that Spark and Hive write."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.types as pt

from tests.unit.engine.foreign.kinds import DELTA_RS, SCALARS, Kind, Number, plain

NAME: Final = "p"
PARTITIONING: Final = {
    "int64": "bigint",
    "string": "string",
    "double": "double",
    "bool": "boolean",
    "decimal128(5,2)": "decimal(5,2)",
    "date of years 1 to 9999": "date",
    "timestamp[us, UTC]False": "timestamp",
}
"""The kinds of partition columns, with the names of their types in SQL."""
_LONGEST_NAME = 200
_BY_DELTA_RS = ("int64", "string", "bool")


def drawn_values(chance: random.Random, writer: str, count: int) -> tuple[Kind, list[Any]]:
    """Returns a kind and a value for each file."""
    known = [kind for kind in SCALARS if kind.name in (_BY_DELTA_RS if writer == DELTA_RS else PARTITIONING)]
    kind = chance.choice(known)
    values = [kind.draw(chance) for _ in range(50)]
    usable = [each for each in values if _is_usable(each) and len(folder_name(kind.array([each]))) < _LONGEST_NAME]
    return kind, [None if chance.random() < 0.2 else chance.choice(usable) for _ in range(count)]


def _is_usable(value: Any) -> bool:
    """Returns whether a table can have the value in a partition column: no empty string, no NUL."""
    return not isinstance(value, str) or (value != "" and "\0" not in value)


def folder_name(values: pa.Array | pa.ChunkedArray) -> str:
    """Returns the name of the folder for files with the first of these values in each row."""
    return f"{NAME}={quote(_text(plain(values)[0], values.type), safe='')}"


def _text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    if isinstance(value, Number):
        return "NaN" if value.is_nan else str(value.value).replace("inf", "Infinity")
    if isinstance(value, bool):
        return str(value).lower()
    if pt.is_date32(kind):
        return str(date(1970, 1, 1) + timedelta(days=value))
    if pt.is_timestamp(kind):
        return f"{datetime(1970, 1, 1) + timedelta(microseconds=value)}Z"
    return str(value)
