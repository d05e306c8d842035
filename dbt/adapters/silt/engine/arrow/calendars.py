"""Recognises files with dates in the calendar of Spark before version 3.

The footer of such a file reveals it, by the version of Spark or by a key. Days before 1582-10-15, and times before
1900, have different numbers in that calendar. Spark converts them by the writer's time zone; this module refuses them.
Source: Spark's DataSourceUtils.datetimeRebaseSpec and int96RebaseSpec.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError

_VERSION: Final = b"org.apache.spark.version"
_OLD_DATES: Final = b"org.apache.spark.legacyDateTime"
_OLD_INT96: Final = b"org.apache.spark.legacyINT96"
_FIRST_DAY: Final = date(1582, 10, 15)
_FIRST_TIME: Final = datetime(1900, 1, 1)


def is_old(footer: pq.FileMetaData) -> bool:
    """Returns whether old dates and times in the file are in the old calendar."""
    noted = footer.metadata or {}
    if _VERSION not in noted:
        return False
    version = noted[_VERSION].decode(errors="replace")
    if version < "3.0.0" or _OLD_DATES in noted:
        return True
    return _has_int96(footer) and (version < "3.1.0" or _OLD_INT96 in noted)


def check_calendar(array: pa.Array) -> None:
    """Raises an error if a value has another meaning in the old calendar.

    Raises:
        UnsupportedFeatureError: if a value is a date or time of the old calendar.
    """
    if pa.types.is_date(array.type):
        least = pa.scalar(_FIRST_DAY, array.type)
    elif pa.types.is_timestamp(array.type):
        least = pa.scalar(_FIRST_TIME, pa.timestamp(array.type.unit)).cast(pa.int64())
        array = array.view(pa.int64())
    else:
        return
    if pc.any(pc.less(array, least)).as_py():
        raise UnsupportedFeatureError(
            "it has dates in the calendar that Spark used before version 3",
            remedy="Read the table with Spark: `Warehouse.sql`",
        )


def _has_int96(footer: pq.FileMetaData) -> bool:
    leaves = (footer.schema.column(at) for at in range(footer.num_columns))
    return any(leaf.physical_type == "INT96" for leaf in leaves)
