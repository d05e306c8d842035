"""Writes the data files of every command.

Spark writes them into a new sub-folder of the table's folder, then their footers are read.

Because each write has its own folder, files never move, two writers never share Spark's `_temporary`, and a failed
statement leaves a single folder behind. The files count as written only if they hold exactly as many rows as were
observed in the last stage of the job.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.audits.row_tests import RowTest
from dbt.adapters.silt.engine.commands.commit import discard_folder, discarded_on_error
from dbt.adapters.silt.engine.commands.spark import errors, frames, partitions, session_settings, stored_columns
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import row_ids
from dbt.adapters.silt.engine.commands.writing.checks import Check, partition_checks
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    DataRejectedError,
    InternalError,
    InvalidStatementError,
    NotNullViolationError,
    NotWrittenError,
    SparkFailedError,
)
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED, from_footers
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import FileStatus, Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.clustering import clustering_columns, logical_paths
from dbt.adapters.silt.engine.kernel.table.column_mapping import stored_schema
from dbt.adapters.silt.engine.kernel.table.paths import log_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_voids, is_void

CHANGE_DATA: Final = "_change_data"
"""The folder of the change files (specification: "Change Data Files")."""

_WRITER_OPTIONS: Final[Mapping[str, str]] = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_OF_FOLDERS: Final[Mapping[str, str]] = {
    # The local file system without `.crc` files: two files fewer per write, and no checksum file that can go stale.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
_OF_OBJECTS: Final[Mapping[str, str]] = {
    # A rename is a copy in an object store: the task that wrote a file moves it once, instead of twice. The folder is
    # new, so no reader sees the files that a failed job has moved.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}
_logger = logging.getLogger(__name__)

_UNFINISHED = "_temporary/"
_JOB_FOLDER: Final = "_temporary/0/_temporary"
"""The folder, below the folder of a write, in which Hadoop's committer keeps the files of unfinished tasks."""
_CODEC_PROPERTY = "delta.parquet.compression.codec"
_ROWS = "rows"
_ROUTABLE = "routable"
_LABEL: Final = "silt-failed"
"""The column, and so the folders below the folder of a write, that separate the rows that tests route."""
_PASSED: Final = "x"


@dataclass(frozen=True)
class Routed:
    """Rows that fail tests, in files that no version will contain.

    Args:
        folder: the folder that holds only these files.
        adds: the files.
        rows: the number of their rows.
        failed: the keys of the tests that each of the rows fails.
    """

    folder: str
    adds: tuple[AddFile, ...]
    rows: int
    failed: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """Data files that are in the table's folder, but not yet in a version of the table.

    Args:
        folder: the sub-folder that holds only these files.
        adds: the files.
        rows: the number of rows in all files.
        metrics: the requested aggregates, observed during the write, by name.
        tested: how many of the rows fail each row test that could be evaluated during the write, by its key.
        routed: the rows that fail tests that route them, which are not in `adds`.
        routable: the number of rows that such a test could route, in `adds` and in `routed`.
        is_new: whether no row is a kept row of a removed file.
    """

    folder: str
    adds: tuple[AddFile, ...]
    rows: int
    metrics: Mapping[str, Any] = field(default_factory=dict)
    tested: Mapping[str, int] = field(default_factory=dict)
    routed: tuple[Routed, ...] = ()
    routable: int = 0
    is_new: bool = False

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(add.size for add in self.adds)

    def operation_metrics(self) -> dict[str, int]:
        """Returns the metrics by delta-spark's names."""
        return {"numFiles": len(self.adds), "numOutputRows": self.rows, "numOutputBytes": self.size}

    def discard(self, log: DeltaLog) -> None:
        """Deletes files that are known to be in no version of the table; a failure leaves them for VACUUM."""
        discard_folder(log, self.folder)


@dataclass(frozen=True)
class _Watched:
    """The aggregates that are observed on the pass that writes the rows.

    Attributes:
        rules: the checks of written rows.
        metrics: SQL aggregates over all rows, by name.
        only: SQL condition for the rows to write; by default all rows.
        tests: row tests of the written rows.
        routable: SQL condition for the rows that tests may route; None routes no row.
    """

    rules: Sequence[Check] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    only: str | None = None
    tests: Sequence[RowTest] = ()
    routable: str | None = None

    @property
    def routing(self) -> list[RowTest]:
        """The tests whose failing rows are written to other files."""
        return [] if self.routable is None else [each for each in self.tests if each.routes]

    @property
    def label(self) -> str:
        """SQL of the tests that route a row: their positions, after an `x`."""
        failing = (f"if(({self.routable}\n) and {each.failing}, '{at}', null)" for at, each in enumerate(self.routing))
        return f"concat('x', concat_ws('-', {', '.join(failing)}))"

    def failed(self, label: str) -> tuple[str, ...]:
        """Returns the keys of the tests that route a row with this label."""
        return tuple(self.routing[int(at)].key for at in label[1:].split("-") if at)

    def aggregates(self) -> Iterator[Column]:
        # An SQL expression is one call to Spark; a column built by functions is at least one call per function.
        yield F.expr(f"{'count(1)' if self.only is None else f'count_if({self.only})'} as {_ROWS}")
        for position, rule in enumerate(self.rules):
            violation = rule.violation if self.only is None else F.expr(self.only) & rule.violation
            yield F.count_if(violation).alias(f"violations {position}")
            yield F.max(F.when(violation, rule.example)).alias(f"example {position}")
        for name, aggregate in self.metrics.items():
            yield F.expr(f"{aggregate} as {quote(name)}")
        if self.routing:
            yield F.expr(f"count_if({self.routable}\n) as {_ROUTABLE}")
        for test in self._counted:
            failing = test.failing if self.only is None else f"({self.only}) and {test.failing}"
            yield F.expr(f"count_if({failing}) as {quote(test.key)}")

    @property
    def _counted(self) -> list[RowTest]:
        """The tests that are evaluated for their counts; a test that routes rows is evaluated once, for the label."""
        return [each for each in self.tests if each not in self.routing]

    def counts(self, observed: Mapping[str, Any]) -> dict[str, int]:
        """Returns how many rows fail each test: no row that was not routed fails a test that routes."""
        return {each.key: 0 for each in self.tests} | {each.key: int(observed[each.key]) for each in self._counted}

    def raise_violation(self, observed: Mapping[str, Any]) -> None:
        for position, rule in enumerate(self.rules):
            count = observed[f"violations {position}"]
            if count:
                raise rule.error(count, observed[f"example {position}"])


def write_to(
    target: Target,
    df: DataFrame,
    metadata: Metadata,
    checks: Sequence[Check] = (),
    metrics: Mapping[str, str] | None = None,
    only: str | None = None,
    routable: str | None = None,
) -> Written:
    """Writes rows in the order of the table's clustering columns within each task, with the target's row tests;
    otherwise as `write`.
    """
    snapshot = target.snapshot
    ordered = frames.in_order(df, logical_paths(snapshot.schema, clustering_columns(snapshot.domains)))
    return write(ordered, target.log, metadata, checks, metrics, only, target.tests, routable)


def write(
    df: DataFrame,
    log: DeltaLog,
    metadata: Metadata,
    checks: Sequence[Check] = (),
    metrics: Mapping[str, str] | None = None,
    only: str | None = None,
    tests: Sequence[RowTest] = (),
    routable: str | None = None,
) -> Written:
    """Writes rows as data files of a table, clustered by the table's partitions.

    Args:
        df: rows with the table's columns and types, and the columns of `row_ids` if rows keep their ids; it may have
            further columns, for `checks`, `metrics` and `only`.
        log: the table, whose folder must exist.
        metadata: the metadata of the version to which the files will belong.
        checks: checks of every row that is written.
        metrics: SQL aggregates over all rows of `df`, by name.
        only: SQL condition for the rows of `df` to write; by default all rows.
        tests: row tests of the written rows; if a test cannot be evaluated, all are left out.
        routable: SQL condition for the rows that tests may route to other files; by default no row.

    Raises:
        DataRejectedError: if rows break a check or have values that no partition can have; the files are deleted again.
        DataFileMissingError, TableDamagedError: if a file that `df` reads cannot be read.
        InvalidSettingError: if a setting of the session would produce wrong files.
        UnsupportedStatementError: if columns have no type, and files cannot leave them out.
        InternalError: if the files do not hold the rows that were written.
    """
    schema = StructType.from_json(metadata.schema_string)
    fitting = [each for each in tests if each.fits(schema)]
    rules = (*checks, *partition_checks(metadata, log.name))
    left_out = {each.constraint for each in fitting if each.routes and routable is not None} - {None}
    kept = tuple(each for each in rules if each.constraint not in left_out)
    watched = _Watched(kept, metrics or {}, only, fitting, routable)
    arranged = _clustered_by_partition(df, metadata)
    try:
        return _write(arranged, log, log.clock.new_id(), metadata, watched)
    except (DataRejectedError, InvalidStatementError, SparkFailedError) as error:
        if not fitting or isinstance(error, (CheckViolationError, NotNullViolationError)):
            raise
        _logger.info("%s: the rows are written again without their tests: %s", log.name, error)
        return _write(arranged, log, log.clock.new_id(), metadata, replace(watched, rules=rules, tests=()))


def write_as_arranged(df: DataFrame, log: DeltaLog, metadata: Metadata) -> Written:
    """Writes each of Spark's partitions of `df` as a file of its own; otherwise as `write`."""
    watched = _Watched(tuple(partition_checks(metadata, log.name)))
    return _write(df, log, log.clock.new_id(), metadata, watched)


def write_change_data(df: DataFrame, log: DeltaLog, metadata: Metadata, metrics: Mapping[str, str]) -> Written:
    """Writes rows as change files, into the folder of change data; otherwise as `write`.

    Args:
        metadata: metadata with the feed's own column in its schema.
    """
    log.store.make_folder(CHANGE_DATA)  # raises if it is a symbolic link, which Spark would follow
    folder = f"{CHANGE_DATA}/{log.clock.new_id()}"
    arranged = _clustered_by_partition(row_ids.without(df), metadata)
    watched = _Watched(tuple(partition_checks(metadata, log.name)), metrics)
    return _write(arranged, log, folder, metadata, watched)


def _write(arranged: DataFrame, log: DeltaLog, folder: str, metadata: Metadata, watched: _Watched) -> Written:
    """Writes into a new folder, and deletes the folder if the write fails."""
    session_settings.check_session(arranged.sparkSession)
    check_voids(StructType.from_json(metadata.schema_string), log.name)
    with discarded_on_error(log, (Written(folder, (), 0),)):
        observed = _run(arranged, log.store, folder, metadata, watched)
        watched.raise_violation(observed)
        routed = tuple(_collect_routed(log, folder, metadata, watched))
        passed = f"{folder}/{_LABEL}={_PASSED}" if watched.routing else folder
        adds, rows = _collect(log, passed, metadata)
        held = rows + sum(each.rows for each in routed)
        if held != observed[_ROWS]:
            raise InternalError(
                f"{observed[_ROWS]} rows were written, but the files hold {held}; nothing was committed", table=log.name
            )
    metrics = {name: observed[name] for name in watched.metrics}
    routable = int(observed[_ROUTABLE]) if watched.routing else 0
    tested = watched.counts(observed)
    if routed:  # a test that routes no row has counted the routed rows too
        tested = {key: number for key, number in tested.items() if not number}
    return Written(folder, adds, rows, metrics, tested, routed, routable)


def _collect_routed(log: DeltaLog, folder: str, metadata: Metadata, watched: _Watched) -> Iterator[Routed]:
    """Yields the routed rows, by the tests that they fail."""
    if not watched.routing:
        return
    beginning = f"{folder}/{_LABEL}="
    found = [status.path.removeprefix(beginning).split("/")[0] for status in _data_files(log, folder)]
    for label in sorted({*found} - {_PASSED}):
        adds, rows = _collect(log, f"{beginning}{label}", metadata)
        yield Routed(f"{beginning}{label}", adds, rows, watched.failed(label))


def _clustered_by_partition(df: DataFrame, metadata: Metadata) -> DataFrame:
    """Distributes the rows so that few of Spark's partitions contain rows of the same table partition."""
    columns = metadata.partition_columns
    return df.hint("rebalance", *(F.col(quote(name)) for name in columns)) if columns else df


def _run(df: DataFrame, store: Store, folder: str, metadata: Metadata, watched: _Watched) -> Mapping[str, Any]:
    """Runs the job that writes the files, and returns the aggregates of its last stage, which counts each task once."""
    schema = StructType.from_json(metadata.schema_string)
    stored = stored_schema(metadata)
    copies = partitions.copy_names(metadata)
    observation = Observation()
    observed = df.observe(observation, *watched.aggregates())
    if watched.only is not None:
        observed = observed.filter(watched.only)
    label = {_LABEL: quote(_LABEL)} if watched.routing else {}
    if label:
        observed = observed.withColumn(_LABEL, F.expr(watched.label))
    pairs = [(member, kept) for member, kept in zip(schema, stored, strict=True) if not is_void(member.type)]
    ids = row_ids.stored(df, metadata)
    if ids or copies or df.columns != [member.name for member, _ in pairs] or stored != schema:
        columns = {kept.name: stored_columns.to_file_column(member, kept) for member, kept in pairs}
        copied = {copy: partitions.copy(schema.require(name), copy) for name, copy in copies.items()}
        observed = frames.select(observed, {**columns, **ids, **copied, **label})
    of_storage = _OF_OBJECTS if "://" in store.root else _OF_FOLDERS
    writer = observed.write.mode("append").options(**_WRITER_OPTIONS, **of_storage, compression=_codec(metadata))
    _make_job_folder(store, folder)
    with errors.mapped():
        writer.partitionBy(*label, *copies.values()).parquet(f"{store.root}/{folder}")
    return observation.get


def _make_job_folder(store: Store, folder: str) -> None:
    """Creates the folders of Spark's job in a file system, because Java starts a process, `chmod`, for each of them."""
    if "://" not in store.root:
        with contextlib.suppress(OSError):  # Spark fails for the same reason, and reports it
            os.makedirs(f"{store.local_path(folder)}/{_JOB_FOLDER}")


def _codec(metadata: Metadata) -> str:
    return metadata.configuration.get(_CODEC_PROPERTY, "snappy").lower()


def _collect(log: DeltaLog, folder: str, metadata: Metadata) -> tuple[tuple[AddFile, ...], int]:
    """Returns the files that the job has written, as actions, and their number of rows."""
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
    paths = renamed(log.store, folder, values)
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
    """Returns partition values by physical name, read from the folders that Spark wrote into, by the file's path."""
    schema = StructType.from_json(metadata.schema_string)
    partitioning = [schema.require(name) for name in metadata.partition_columns]
    types = {member.physical_name: member.type for member in partitioning}
    folders = {status.path: status.path.removeprefix(f"{folder}/").split("/")[:-1] for status in written}
    return {path: partitions.values_of_folders(names, types) for path, names in folders.items()}


def _data_files(log: DeltaLog, folder: str) -> Iterator[FileStatus]:
    """Yields the data files below the folder; a job without rows may have created no folder."""
    for status in log.store.files_below(folder):
        below = status.path.removeprefix(f"{folder}/")
        if status.name.startswith("part-") and not below.startswith(_UNFINISHED):
            yield status


Values = Mapping[str, str | None]


def renamed(store: Store, folder: str, files: Mapping[str, Values]) -> dict[str, str]:
    """Renames the folders, and returns the new path of each file, by its old path.

    Args:
        folder: the folder that Spark wrote into.
        files: partition values by the file's path, each by physical name in the order of the folders.

    Raises:
        NotWrittenError: if the file system refuses.
    """
    root = store.local_path(folder)
    if root is None or not os.path.isdir(root):
        return {path: path for path in files}
    moves: dict[str, str] = {}
    paths = {}
    for path, values in files.items():
        *before, name = path.removeprefix(f"{folder}/").split("/")
        after = [_name(column, text) for column, text in values.items()]
        for depth in range(len(before)):
            moves["/".join([*after[:depth], before[depth]])] = "/".join(after[: depth + 1])
        paths[path] = "/".join([folder, *after, name])
    for source, target in moves.items():
        _move(f"{root}/{source}", f"{root}/{target}")
    return paths


def _name(column: str, text: str | None) -> str:
    """Returns the name that Hive, Spark and delta-rs use; the first character of a literal null marker is escaped."""
    value = partitions.SPARK_NULL if text is None else partitions.escaped(text)
    if text == partitions.SPARK_NULL:
        value = f"%{ord(text[0]):02X}{text[1:]}"
    return f"{partitions.escaped(column)}={value}"


def _move(source: str, target: str) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        raise NotWrittenError(f"moving {source} to {target} failed: {error.strerror or error}") from error
