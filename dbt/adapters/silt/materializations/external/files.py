"""Writes a model's rows for the materialization `external`: a file or a folder of files outside of the warehouse.

All rows are written next to their location, under a hidden name, before they are moved into place: a failed or killed
run leaves the previous files as they were. Running the model again writes the same location again, so no unit of
work is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame, DataFrameWriter, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.column import SiltColumn
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.storage.store import PrefixStore, Store
from dbt.adapters.silt.engine.statements.resolve.stored_code import MARKER
from dbt.adapters.silt.materializations.external import local_files
from dbt.adapters.silt.materializations.external.object_files import ObjectFiles
from dbt.adapters.silt.materializations.external.sources import declared, read_files
from dbt.adapters.silt.materializations.external.target import SELF_DESCRIBING, ExternalTarget
from dbt.adapters.silt.runs.response import SiltResponse

# A rename in an object store copies the file: this algorithm renames once, not twice.
_OF_OBJECTS = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}


@dataclass(frozen=True)
class ExternalFiles:
    """The written files: the query that reads them, and the response for dbt."""

    query: str
    response: SiltResponse


def check_target(target: ExternalTarget, open_store: Callable[[str], Store]) -> None:
    """Checks that the target contains nothing but this model's files.

    Args:
        open_store: opens a location in an object store.

    Raises:
        DbtRuntimeError: if it contains files of another owner.
        SiltError: if its storage cannot be reached.
    """
    if target.is_object:
        _in_objects(target, open_store).check()
    else:
        local_files.check(target)


def write_external(rows: DataFrame, target: ExternalTarget, open_store: Callable[[str], Store]) -> ExternalFiles:
    """Writes the rows, and replaces the previous files.

    Args:
        open_store: opens a location in an object store.

    Raises:
        DbtRuntimeError: if another owner, or another run of the model, has written files there meanwhile.
        SiltError: if a storage operation fails.
    """
    count = Observation()
    observed = rows.observe(count, F.count(F.lit(1)).alias("rows"))
    if target.is_object:
        files = _in_objects(target, open_store)
        with files.staged() as url:
            _writer(observed, target).options(**_OF_OBJECTS).save(url)
            is_empty = not files.put_in_place()
            if target.partition_by:
                _delete_marks(rows.sparkSession, url)
    else:
        with local_files.staged(target) as hidden:
            _writer(observed, target).save(f"file://{hidden}")
            local_files.put_in_place(hidden, target)
            is_empty = False
    written = int(count.get["rows"])
    response = SiltResponse(f"{written} rows in {target.location}", code="OK", rows_affected=written)
    return ExternalFiles(_query(rows, target, is_empty), response)


def _in_objects(target: ExternalTarget, open_store: Callable[[str], Store]) -> ObjectFiles:
    return ObjectFiles.of_run(cast(PrefixStore, open_store(target.above)), target)


def _writer(rows: DataFrame, target: ExternalTarget) -> DataFrameWriter:
    one = rows.coalesce(1) if target.is_file else rows
    options = {name: str(value).lower() if isinstance(value, bool) else value for name, value in target.options.items()}
    writer = one.write.format(target.format).options(**options)
    return writer.partitionBy(*target.partition_by) if target.partition_by else writer


def _delete_marks(spark: SparkSession, url: str) -> None:
    """Has Spark delete a folder, which other clients cannot delete completely, and write an empty file.

    Hadoop has marked each folder in it with an empty object whose name ends with a slash.
    """
    spark.range(0).write.options(**_OF_OBJECTS).mode("overwrite").parquet(url)


def _query(rows: DataFrame, target: ExternalTarget, is_empty: bool) -> str:
    """Returns the query that reads the files with the columns of the model, in their order and types.

    Args:
        is_empty: whether no file exists that could define the columns.
    """
    columns = SiltColumn.of_schema(rows.schema)
    typed = [(column.name, column.data_type) for column in columns]
    in_folders = {name.lower() for name in target.partition_by}
    types: dict[str, Any] = {}
    if is_empty or target.format not in SELF_DESCRIBING:
        types = {"schema": declared(typed)}
    elif in_folders:
        types = {"schemaHints": declared(each for each in typed if each[0].lower() in in_folders)}
    manifest = {"manifest": MARKER} if target.is_object and not target.is_file else {}
    options: Mapping[str, Any] = {"format": target.format, **types, **target.options, **manifest}
    return f"select {', '.join(quote(name) for name, _ in typed)} from " + read_files(
        target.location, options, target.node
    )
