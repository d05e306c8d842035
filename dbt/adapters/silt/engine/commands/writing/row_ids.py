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


def after(rows: DataFrame, properties: TableProperties, changed: Column) -> dict[str, str | Column]:
    """The columns, by name, of rows some of which have changed; empty if the rows bring no ids with them.

    Args:
        changed: whether a row has, never null.
    """
    if not properties.enable_row_tracking or ROW_ID not in rows.columns:
        return {}
    return {ROW_ID: ROW_ID, ROW_VERSION: F.when(~changed, F.col(ROW_VERSION))}


def stored(rows: DataFrame, metadata: Metadata) -> dict[str, str | Column]:
    """The columns as data files have them, by name; empty if the rows bring no ids with them."""
    names = materialized_columns(metadata)
    if names is None or ROW_ID not in rows.columns:
        return {}
    return dict(zip(names, (ROW_ID, ROW_VERSION), strict=True))


def without(rows: DataFrame) -> DataFrame:
    """The rows without their ids."""
    return rows.drop(ROW_ID, ROW_VERSION)
