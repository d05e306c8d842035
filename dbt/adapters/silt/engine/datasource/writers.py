"""Writes DataFrames and the batches of streams: tasks create files, and the driver commits them."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

from dbt.adapters.silt.engine.catalog.names.locations import table_location
from dbt.adapters.silt.engine.catalog.open_databases import open_location
from dbt.adapters.silt.engine.commands.commit import commit, discard_folder
from dbt.adapters.silt.engine.commands.reading import partition_match
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.datasource import part_files
from dbt.adapters.silt.engine.datasource.part_files import Written
from dbt.adapters.silt.engine.datasource.pyspark_classes import HAS_ARROW_STREAMS
from dbt.adapters.silt.engine.datasource.write_plan import Asked, WritePlan
from dbt.adapters.silt.engine.datasource.write_target import TargetTable
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.types import arrow_type
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table import schema as kernel
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json, RemoveFile
from dbt.adapters.silt.engine.kernel.table.features import protocol_for
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, as_strings
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    from dbt.adapters.silt.engine.datasource.pyspark_classes import DataSourceStreamArrowWriter


_logger = logging.getLogger(__name__)

_ROWS: Final = 10_000


@dataclass(frozen=True)
class Finished:
    """A write whose tasks all succeeded.

    Attributes:
        operation: name and parameters, as in the history.
        txn: application id and version; a table with this or a later version of the id is not changed.
    """

    asked: Asked
    plan: WritePlan
    written: Sequence[Written]
    operation: tuple[str, dict[str, Json]]
    txn: tuple[str, int] | None = None

    def commit(self) -> None:
        """Commits the files; deletes them if the table already holds the `txn` or the commit certainly failed.

        Raises:
            ConcurrentModificationError: if another writer won, or the run of the option `branch` has ended; nothing is
                applied.
            CommitStateUnknownError: if the storage did not answer, or the run ended meanwhile; the files are kept.
            UnsupportedStatementError: if only some rows of a file would be replaced.
        """
        try:
            target = self.asked.target
            log = target.handle(self.plan.location.root) if self.plan.base_version is None else target.table()
        except errors.SiltError:
            _discard(self.plan)
            raise
        if self.plan.base_version is None:
            self._create(target, log)
        else:
            self._commit_once(log)
        target.check_open()

    def _commit_once(self, log: DeltaLog) -> None:
        try:
            self._commit_to(log)
        except errors.ConcurrentTransactionError:
            if self.txn is None or not log.snapshot().holds(self.txn):
                raise

    @property
    def _adds(self) -> tuple[AddFile, ...]:
        return tuple(add for each in self.written for add in each.adds)

    @property
    def _settings(self) -> WriteSettings:
        note = self.asked.options.text("userMetadata")
        return WriteSettings(txn=self.txn, commit=CommitSettings(user_metadata=note))

    def _create(self, target: TargetTable, log: DeltaLog) -> None:
        metadata = self.plan.metadata
        protocol = protocol_for(kernel.StructType.from_json(metadata.schema_string), metadata.configuration)
        parameters = {"partitionBy": json.dumps(list(metadata.partition_columns), ensure_ascii=False)}
        operation = Operation("CREATE TABLE AS SELECT", parameters, self._metrics(()))
        changes = Changes(operation, adds=self._adds, metadata=metadata, protocol=protocol)
        commit(log, None, changes, ReadSet(), self._settings, (_Folder(self.plan.folder),))
        target.publish(log)
        _Folder(self.plan.folder).tidy(log, self._adds)

    def _commit_to(self, log: DeltaLog) -> None:
        folder = _Folder(self.plan.folder)
        try:
            newest = log.snapshot()
            if self.txn is not None and newest.holds(self.txn):
                _logger.info("%s: %s is already committed", log.name, self.txn)
                folder.discard(log)
                return
            base = self._base(log, newest)
            removed, reads = self._replaced(base, log.clock.now_ms())
        except errors.SiltError:
            folder.discard(log)
            raise
        name, parameters = self.operation
        operation = Operation(name, parameters, self._metrics(removed))
        changes = Changes(operation, adds=self._adds, removes=removed)
        commit(log, base, changes, reads, self._settings, (folder,))
        folder.tidy(log, self._adds)

    def _base(self, log: DeltaLog, newest: Snapshot) -> Snapshot:
        """Returns the snapshot to change: for appends the newest, for overwrites the planned version.

        Raises:
            ConcurrentDropError, MetadataChangedError: if the files were written for other metadata.
        """
        planned = self.plan.metadata
        if newest.metadata.id != planned.id:
            raise errors.ConcurrentDropError("the table was dropped and re-created", table=log.name)
        if newest.metadata != planned:
            raise errors.MetadataChangedError(
                "another writer changed the table's columns or properties", table=log.name, version=newest.version
            )
        return log.snapshot_at(self.plan.base_version or 0) if self.asked.overwrite else newest

    def _replaced(self, base: Snapshot, now_ms: int) -> tuple[tuple[RemoveFile, ...], ReadSet]:
        """Returns the files to remove, and the read set of the write."""
        asked = self.asked
        if not asked.overwrite:
            return (), ReadSet()
        if asked.replace_where is not None:
            files = skipping.prune(base, self.plan.predicate)
            if not pc.all(skipping.fully_matched(base, self.plan.predicate, files), min_count=0).as_py():
                raise _in_part(base)
            reads = ReadSet(predicates=(self.plan.predicate,))
        elif asked.is_dynamic and base.partition_columns:
            matched = partition_match.match(base, self._adds, null_safe=True)
            files, reads = matched.files, ReadSet(predicates=(matched.predicate,))
        else:
            files, reads = base.files, ReadSet(whole_table=True, transactions=True)
        return tuple(add.remove(now_ms) for add in base.add_files(files)), reads

    def _metrics(self, removed: Sequence[RemoveFile]) -> dict[str, str]:
        adds = self._adds
        metrics: dict[str, int | None] = {
            "numFiles": len(adds),
            "numOutputRows": sum(each.rows for each in self.written),
            "numOutputBytes": sum(add.size for add in adds),
        }
        if removed:
            metrics["numRemovedFiles"] = len(removed)
            metrics["numRemovedBytes"] = sum(each.size or 0 for each in removed)
        return as_strings(metrics)


@dataclass(frozen=True)
class _Folder:
    """The folder with the files of a write."""

    name: str

    def discard(self, log: DeltaLog) -> None:
        """Deletes all files; a failure leaves them for VACUUM."""
        discard_folder(log, self.name)

    def tidy(self, log: DeltaLog, committed: Sequence[AddFile]) -> None:
        """Deletes the files of failed task attempts, and the folder if no files were committed."""
        if not committed:
            self.discard(log)
            return
        kept = {decode_path(add.path) for add in committed}
        try:
            for status in log.store.files_below(self.name):
                if status.path not in kept:
                    log.store.delete(status.path)
        except ObjectMissing:
            return
        except errors.SiltError as error:
            _logger.warning("%s: unused data files are left in %s: %s", log.name, self.name, error)


def _discard(plan: WritePlan) -> None:
    """Deletes the folder of a write with all its uncommitted files; a failure leaves them for VACUUM."""
    _Folder(plan.folder).discard(DeltaLog(plan.location.open(), plan.table))


def abort(messages: Sequence[Written | None], plan: WritePlan) -> None:
    """Deletes the files of a write of which a task failed.

    If each task has a message, a commit was tried, and it has deleted the files unless its outcome is unknown.

    Args:
        plan: plan of the calling writer; in streams it has no files, since the messages come from another object.
    """
    if all(message is not None for message in messages):
        return
    plans = {each.folder: each for each in (plan, *(message.plan for message in messages if message is not None))}
    for each in plans.values():
        _discard(each)


def _in_part(base: Snapshot) -> errors.UnsupportedStatementError:
    return errors.UnsupportedStatementError(
        "only some rows of a file would be replaced, but this data source replaces whole files",
        remedy="Give a condition on partition columns, or write with `Warehouse.write(..., replace_where=...)`",
        table=base.table,
        version=base.version,
    )


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
        abort(messages, self._plan)


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
            _discard(self._plan)
        Finished(self._asked, plan, messages, operation, (self._app_id, batchId)).commit()

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        abort(messages, self._plan)


def _partitioning(plan: WritePlan) -> str:
    return json.dumps(list(plan.metadata.partition_columns), ensure_ascii=False)


def _batch_txn(asked: Asked) -> tuple[str, int] | None:
    app_id, version = asked.options.text("txnAppId"), asked.options.number("txnVersion")
    if app_id is not None and version is not None:
        return app_id, version
    if app_id is None and version is None:
        return None
    raise errors.InvalidArgumentError(
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
    except (ObjectMissing, errors.SiltError, ValueError, KeyError) as error:
        raise _unnamed(f"the file `metadata` of the checkpoint {checkpoint} cannot be read here") from error


def _unnamed(problem: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
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
