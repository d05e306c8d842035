"""Carries the row ids of rows through a statement that rewrites them.

A row that is read to be rewritten has two more columns: its id, and the version of the commit that last changed it.
Files store them under names that the table's properties define. Null stands for the value that the commit of the file
assigns: a new row has null in both columns, a changed row in `ROW_VERSION`. Source: the Delta specification, section
"Row Tracking".
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import keeps_row_ids, materialized_columns

ROW_ID: Final = "__silt_row_id"
ROW_VERSION: Final = "__silt_row_version"


def carried(snapshot: Snapshot) -> tuple[StructField, ...]:
    """Returns the additional columns of the table's rows when they are read to be rewritten."""
    names = (ROW_ID, ROW_VERSION) if keeps_row_ids(snapshot) else ()
    return tuple(StructField(name, PrimitiveType("long")) for name in names)


def after(rows: DataFrame, properties: TableProperties, changed: Column) -> dict[str, str | Column]:
    """Returns the columns, by name, of rows some of which have changed; empty if the rows have no ids.

    Args:
        changed: whether a row has changed, never null.
    """
    if not properties.enable_row_tracking or ROW_ID not in rows.columns:
        return {}
    return {ROW_ID: ROW_ID, ROW_VERSION: F.when(~changed, F.col(ROW_VERSION))}


def stored(rows: DataFrame, metadata: Metadata) -> dict[str, str | Column]:
    """Returns the columns of the data files, by name; empty if the rows have no ids."""
    names = materialized_columns(metadata)
    if names is None or ROW_ID not in rows.columns:
        return {}
    return dict(zip(names, (ROW_ID, ROW_VERSION), strict=True))


def without(rows: DataFrame) -> DataFrame:
    """Returns the rows without their ids."""
    return rows.drop(ROW_ID, ROW_VERSION)
