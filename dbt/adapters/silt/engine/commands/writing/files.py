"""Writes the data files of every command.

Spark writes them into a new sub-folder of the table's folder, then their footers are read.

A folder of its own means that nothing is ever moved, that two writers never share Spark's `_temporary`, and that what a
failed statement leaves behind is one folder. The files count as written only if they hold exactly as many rows as were
observed in the last stage of the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import discard_folder, discarded_on_error
from dbt.adapters.silt.engine.commands.spark import (
    errors,
    partitions,
    projection,
    required_settings,
    stored_columns,
)
from dbt.adapters.silt.engine.commands.writing import partition_folders, row_ids
from dbt.adapters.silt.engine.commands.writing.checks import Check
from dbt.adapters.silt.engine.commands.writing.partition_checks import partition_checks
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footers
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage import few_requests
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.column_mapping import stored_schema
from dbt.adapters.silt.engine.kernel.table.paths import log_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_voids, is_void

CHANGE_DATA: Final = "_change_data"
"""The folder that change files are in (specification: "Change Data Files")."""

_WRITER_OPTIONS: Final[Mapping[str, str]] = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_OF_FOLDERS: Final[Mapping[str, str]] = {
    # The local file system without the `.crc` twins: two files fewer to make, and none that could go stale.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
_OF_OBJECTS: Final[Mapping[str, str]] = {
    # A rename is a copy there: each file is moved once, by the task that wrote it, instead of twice. The folder is new,
    # so that nobody reads what a job that fails has moved.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
_UNFINISHED = "_temporary/"
_CODEC_PROPERTY = "delta.parquet.compression.codec"
_ROWS = "rows"


@dataclass(frozen=True)
class Written:
    """Data files that are in the table's folder, but in no version of it yet.

    Args:
        folder: the sub-folder that holds them, and nothing else.
        adds: the files.
        rows: in all of them.
        metrics: what was observed while they were written, by the names asked for.
    """

    folder: str
    adds: tuple[AddFile, ...]
    rows: int
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(add.size for add in self.adds)

    def operation_metrics(self) -> dict[str, int]:
        """By delta-spark's names."""
        return {"numFiles": len(self.adds), "numOutputRows": self.rows, "numOutputBytes": self.size}

    def discard(self, log: DeltaLog) -> None:
        """Deletes files that surely are in no version of the table; a failure leaves them for VACUUM."""
        discard_folder(log, self.folder)


@dataclass(frozen=True)
class _Watched:
    """What is observed of the rows on the pass that writes them.

    Attributes:
        rules: for the rows that are written.
        metrics: aggregates over all rows as SQL texts, by name.
        only: which rows are written, as an SQL text; None for all.
    """

    rules: Sequence[Check] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None

    def aggregates(self) -> Iterator[Column]:
        # A text is one call to Spark, where a column built by functions is one for each of them, and more.
        yield F.expr(f"{'count(1)' if self.only is None else f'count_if({self.only})'} as {_ROWS}")
        for position, rule in enumerate(self.rules):
            violation = rule.violation if self.only is None else F.expr(self.only) & rule.violation
            yield F.count_if(violation).alias(f"violations {position}")
            yield F.max(F.when(violation, rule.example)).alias(f"example {position}")
        for name, aggregate in self.metrics.items():
            yield F.expr(f"{aggregate} as {quote(name)}")

    def raise_violation(self, observed: Mapping[str, Any]) -> None:
        for position, rule in enumerate(self.rules):
            count = observed[f"violations {position}"]
            if count:
                raise rule.error(count, observed[f"example {position}"])


def write(
    df: DataFrame,
    log: DeltaLog,
    metadata: Metadata,
    checks: Sequence[Check] = (),
    metrics: Mapping[str, str] | None = None,
    only: str | None = None,
) -> Written:
    """Writes rows as data files of a table, those of one partition of the table together.

    Args:
        df: has the table's columns, of its types, and those of `row_ids` where rows keep their ids; more columns may be
            there for `checks`, `metrics` and `only` to use.
        log: the table, whose folder must be there.
        metadata: of the version that the files are meant for.
        checks: on every row that is written.
        metrics: aggregates over all rows of `df`, as SQL texts by name.
        only: which rows of `df` are written, as an SQL text; by default all.

    Raises:
        DataRejectedError: rows break a check, or no partition can have their values; the files are deleted again.
        DataFileMissingError, TableDamagedError: a file that `df` reads cannot be read.
        InvalidSettingError: a setting of the session would make wrong files.
        UnsupportedStatementError: columns have no type, in a way that files cannot leave out.
        InternalError: the files do not hold the rows that were written.
    """
    watched = _Watched((*checks, *partition_checks(metadata, log.name)), metrics or {}, only)
    return _write(_clustered_by_partition(df, metadata), log, log.clock.new_id(), metadata, watched)


def write_as_arranged(df: DataFrame, log: DeltaLog, metadata: Metadata) -> Written:
    """Writes each of Spark's partitions of `df` as one file; otherwise as `write`."""
    watched = _Watched(tuple(partition_checks(metadata, log.name)))
    return _write(df, log, log.clock.new_id(), metadata, watched)


def write_change_data(df: DataFrame, log: DeltaLog, metadata: Metadata, metrics: Mapping[str, str]) -> Written:
    """Writes rows as files of the folder of change data; as `write`, but for that.

    Args:
        metadata: with the feed's own column in its schema.
    """
    log.store.make_folder(CHANGE_DATA)  # refuses a link in its place, which Spark would follow
    folder = f"{CHANGE_DATA}/{log.clock.new_id()}"
    arranged = _clustered_by_partition(row_ids.without(df), metadata)
    watched = _Watched(tuple(partition_checks(metadata, log.name)), metrics)
    return _write(arranged, log, folder, metadata, watched)


def _write(arranged: DataFrame, log: DeltaLog, folder: str, metadata: Metadata, watched: _Watched) -> Written:
    """Writes into a new folder, which goes again where that fails."""
    required_settings.check_session(arranged.sparkSession)
    check_voids(StructType.from_json(metadata.schema_string), log.name)
    with discarded_on_error(log, (Written(folder, (), 0),)):
        observed = _run(arranged, log.store, folder, metadata, watched)
        watched.raise_violation(observed)
        adds, rows = _collect(log, folder, metadata)
        if rows != observed[_ROWS]:
            raise InternalError(
                f"{observed[_ROWS]} rows were written, but the files hold {rows}; nothing was committed", table=log.name
            )
    return Written(folder, adds, rows, {name: observed[name] for name in watched.metrics})


def _clustered_by_partition(df: DataFrame, metadata: Metadata) -> DataFrame:
    """The rows such that those of one partition of the table are in few of Spark's."""
    columns = metadata.partition_columns
    return df.hint("rebalance", *(F.col(quote(name)) for name in columns)) if columns else df


def _run(df: DataFrame, store: Store, folder: str, metadata: Metadata, watched: _Watched) -> Mapping[str, Any]:
    """Runs the one job that writes the files; what was observed in its last stage, in which each task counts once."""
    schema = StructType.from_json(metadata.schema_string)
    stored = stored_schema(metadata)
    copies = partitions.copy_names(metadata)
    observation = Observation()
    observed = df.observe(observation, *watched.aggregates())
    if watched.only is not None:
        observed = observed.filter(watched.only)
    pairs = [(member, kept) for member, kept in zip(schema, stored, strict=True) if not is_void(member.type)]
    ids = row_ids.stored(df, metadata)
    if ids or copies or df.columns != [member.name for member, _ in pairs] or stored != schema:
        columns = {kept.name: stored_columns.to_file_column(member, kept) for member, kept in pairs}
        copied = {copy: partitions.copy(schema.require(name), copy) for name, copy in copies.items()}
        observed = projection.select(observed, {**columns, **ids, **copied})
    of_storage = _OF_OBJECTS if "://" in store.root else _OF_FOLDERS
    writer = observed.write.options(**_WRITER_OPTIONS, **of_storage, compression=_codec(metadata))
    with errors.mapped():
        writer.partitionBy(*copies.values()).parquet(f"{store.root}/{folder}")
    return observation.get


def _codec(metadata: Metadata) -> str:
    return metadata.configuration.get(_CODEC_PROPERTY, "snappy").lower()


def _collect(log: DeltaLog, folder: str, metadata: Metadata) -> tuple[tuple[AddFile, ...], int]:
    """The files that the job left behind, as actions, and the rows in them."""
    schema = StructType.from_json(metadata.schema_string)
    found = list(_data_files(log, folder))
    properties = TableProperties(metadata.configuration)
    statistics = from_footers(
        log.store, [status.path for status in found], schema, properties, metadata.partition_columns
    )
    for status in found:
        if statistics[status.path].num_records == 0:
            log.store.delete(status.path)
    written = [status for status in found if statistics[status.path].num_records != 0]
    values = _partition_values(folder, written, metadata)
    paths = partition_folders.renamed(log.store, folder, values)
    adds = [
        AddFile(
            path=log_path(paths[status.path]),
            partition_values=values[status.path],
            size=status.size,
            modification_time=status.modified_ms,
            stats=statistics[status.path].json,
            tags={**TRUSTED} | ({partitions.IN_FILE_TAG: "true"} if metadata.partition_columns else {}),
        )
        for status in written
    ]
    if not adds:
        discard_folder(log, folder)
    return tuple(adds), sum(of_file.num_records for of_file in statistics.values())


def _partition_values(
    folder: str, written: Sequence[FileStatus], metadata: Metadata
) -> dict[str, dict[str, str | None]]:
    """Each file's partition values by physical name, from the folders that Spark put it into, by its path."""
    schema = StructType.from_json(metadata.schema_string)
    partitioning = [schema.require(name) for name in metadata.partition_columns]
    types = {member.physical_name: member.type for member in partitioning}
    folders = {status.path: status.path.removeprefix(f"{folder}/").split("/")[:-1] for status in written}
    return {path: partitions.values_of_folders(names, types) for path, names in folders.items()}


def _data_files(log: DeltaLog, folder: str) -> Iterator[FileStatus]:
    """The data files in the folder and those below it; none where a job without rows made no folder."""
    for status in few_requests.files_below(log.store, folder):
        below = status.path.removeprefix(f"{folder}/")
        if status.name.startswith("part-") and not below.startswith(_UNFINISHED):
            yield status
