"""Writes DataFrames and the batches of streams: tasks create files, and the driver commits them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.arrow.types import arrow_type
from dbt.adapters.silt.engine.catalog.locations import table_location
from dbt.adapters.silt.engine.catalog.open_databases import open_location
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.datasource.pyspark_classes import HAS_ARROW_STREAMS
from dbt.adapters.silt.engine.datasource.writing import committing, part_files
from dbt.adapters.silt.engine.datasource.writing.committing import Finished
from dbt.adapters.silt.engine.datasource.writing.part_files import Written
from dbt.adapters.silt.engine.datasource.writing.planning import Asked
from dbt.adapters.silt.engine.datasource.writing.write_plan import WritePlan
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, SiltError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table import schema as kernel

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    from dbt.adapters.silt.engine.datasource.pyspark_classes import DataSourceStreamArrowWriter

_ROWS: Final = 10_000


class TableWriter(api.DataSourceArrowWriter):
    """Writes the rows of a DataFrame in a single commit."""

    def __init__(self, asked: Asked, schema: StructType) -> None:
        self._asked, self._txn = asked, _batch_txn(asked)
        self._plan = asked.plan(schema)
        part_files.begin(self._plan)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return part_files.write(self._plan, iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        mode = "Overwrite" if self._asked.overwrite else "Append"
        operation = ("WRITE", {"mode": mode, "partitionBy": _partitioning(self._plan)})
        Finished(self._asked, self._plan, messages, operation, self._txn).commit()

    def abort(self, messages: Sequence[Any]) -> None:
        committing.abort(messages, self._plan)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a stream exactly once, however often the batch is run.

    Spark creates an object for each batch and another object to commit it, so the messages hold what both need.
    """

    def __init__(self, asked: Asked, schema: StructType) -> None:
        self._asked, self._schema = asked, schema
        self._app_id = _app_id(asked)
        self._plan = asked.plan(schema)
        part_files.begin(self._plan)

    def write(self, iterator: Iterator[Any]) -> Written:
        return part_files.write(self._plan, iterator if HAS_ARROW_STREAMS else batches_of(iterator, self._schema))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        mode = "Complete" if self._asked.overwrite else "Append"
        parameters = {"outputMode": mode, "queryId": self._app_id, "epochId": str(batchId)}
        plan: WritePlan = messages[0].plan if messages else self._plan
        operation = ("STREAMING UPDATE", parameters)
        if plan.folder != self._plan.folder and self._plan.location.open().has_folders:
            committing.discard(self._plan)
        Finished(self._asked, plan, messages, operation, (self._app_id, batchId)).commit()

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        committing.abort(messages, self._plan)


def _partitioning(plan: WritePlan) -> str:
    return json.dumps(list(plan.metadata.partition_columns), ensure_ascii=False)


def _batch_txn(asked: Asked) -> tuple[str, int] | None:
    app_id, version = asked.options.text("txnAppId"), asked.options.number("txnVersion")
    if app_id is not None and version is not None:
        return app_id, version
    if app_id is None and version is None:
        return None
    raise InvalidArgumentError(
        "only one of `txnAppId` and `txnVersion` is given", remedy="Give both: an application id and its version"
    )


def _app_id(asked: Asked) -> str:
    """Returns the application id of a stream: the option's value, or the id of the query in its checkpoint.

    Raises:
        InvalidArgumentError: if neither is known.
    """
    given, checkpoint = asked.options.text("txnAppId"), asked.options.text("checkpointLocation")
    if given is not None:
        return given
    if checkpoint is None:
        raise _unnamed("the stream has no option `checkpointLocation`")
    storages = Storages(asked.options.storage or StorageSettings())
    try:
        data = open_location(table_location(checkpoint), storages).read("metadata")
        return str(json.loads(data)["id"])
    except (ObjectMissing, SiltError, ValueError, KeyError) as error:
        raise _unnamed(f"the file `metadata` of the checkpoint {checkpoint} cannot be read here") from error


def _unnamed(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{problem}, so the query id, which ensures that each batch is written only once, is not known",
        remedy="Give the stream the option `checkpointLocation`, or `txnAppId`: a unique name of this stream",
    )


def batches_of(rows: Iterable[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a stream in batches of some thousand; PySpark 4.0 passes tuples instead of batches."""
    columns = kernel_schema(schema)
    waiting = iter(rows)
    while some := list(itertools.islice(waiting, _ROWS)):
        arrays = [
            pa.array([_plain(row[at], column.type) for row in some], arrow_type(column.type))
            for at, column in enumerate(columns)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=columns.names)


def _plain(value: Any, data_type: kernel.DataType) -> Any:
    """Returns a value in Arrow's input form: a time with its zone, a struct as a dictionary, a map as pairs."""
    if value is None:
        return None
    match data_type:
        case kernel.StructType():
            return {each.name: _plain(value[at], each.type) for at, each in enumerate(data_type)}
        case kernel.ArrayType():
            return [_plain(each, data_type.element_type) for each in value]
        case kernel.MapType():
            return [(_plain(k, data_type.key_type), _plain(v, data_type.value_type)) for k, v in value.items()]
    is_instant = isinstance(value, datetime) and data_type == kernel.PrimitiveType("timestamp")
    return value.astimezone(timezone.utc) if is_instant else value
