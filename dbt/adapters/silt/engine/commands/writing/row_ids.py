"""The columns by which rows keep their ids in a statement that writes them again.

A row that is read to be rewritten has its id and the version of the commit that last changed it in columns besides the
table's. Files hold them under names that the table's properties give; null stands for what the file's commit gives: a
new row has null in both, a changed one in `ROW_VERSION`. Source: the Delta specification, section "Row Tracking".
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
    """The columns that rows of the table bring with them when they are read to be rewritten."""
    names = (ROW_ID, ROW_VERSION) if keeps_row_ids(snapshot) else ()
    return tuple(StructField(name, PrimitiveType("long")) for name in names)


def after(rows: DataFrame, properties: TableProperties, changed: Column) -> list[Column]:
    """The columns of rows some of which have changed; none where the rows bring none with them.

    Args:
        changed: whether a row has, never null.
    """
    if not properties.enable_row_tracking or ROW_ID not in rows.columns:
        return []
    return [F.col(ROW_ID), F.when(~changed, F.col(ROW_VERSION)).alias(ROW_VERSION)]


def stored(rows: DataFrame, metadata: Metadata) -> list[Column]:
    """The columns as data files have them; none where the rows bring none with them."""
    names = materialized_columns(metadata)
    if names is None or ROW_ID not in rows.columns:
        return []
    return [F.col(name).alias(of_file) for name, of_file in zip((ROW_ID, ROW_VERSION), names, strict=True)]


def without(rows: DataFrame) -> DataFrame:
    """The rows without their ids."""
    return rows.drop(ROW_ID, ROW_VERSION)
