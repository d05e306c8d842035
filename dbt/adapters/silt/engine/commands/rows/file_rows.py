"""Counts the rows of files, and finds the files that hold given rows."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.kernel.files import row_counts
from dbt.adapters.silt.engine.kernel.files.statistics import from_footers
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType


def at(chosen: pa.Table, paths: Iterable[str]) -> pa.Table:
    """Those of the files that have one of the paths."""
    return chosen.filter(pc.is_in(chosen["path"], value_set=pa.array(paths, pa.string())))


def row_count(target: Target, chosen: pa.Table) -> int:
    """How many rows the files hold; the footers of files without statistics are read."""
    return sum(records(target, chosen)) - row_counts.deleted_rows(chosen)


def records(target: Target, chosen: pa.Table) -> list[int]:
    """How many rows each file holds, those that a deletion vector deletes counted too; reads footers as `row_count`."""
    recorded = row_counts.num_records(chosen).to_pylist()
    names = [decode_path(path) for path in chosen["path"].to_pylist()]
    unknown = [name for name, count in zip(names, recorded, strict=True) if count is None]
    found = from_footers(target.log.store, unknown, StructType(), target.snapshot.properties)
    return [found[name].num_records if count is None else count for name, count in zip(names, recorded, strict=True)]


def touched(positioned: DataFrame, chosen: pa.Table) -> pa.Table:
    """Those of the files that some row of `positioned` comes from, by `scan.FILE`; runs a job."""
    with errors.mapped():
        found = positioned.select(F.col(scan.FILE)).distinct().collect()
    return at(chosen, (row[scan.FILE] for row in found))
