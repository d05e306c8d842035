"""Runs OPTIMIZE: merges small files of a partition, drops rows deleted by deletion vectors, or orders or clusters rows.

It changes no row, and so runs under snapshot isolation, next to any reader and writer. Files that are merged into a
single file are a bin, and each bin is written by its own job. A Z-order covers all files of a partition, and is
computed again each time. `kernel.maintenance.clustering` plans the bins of a clustered table.

Source: delta-spark's OptimizeTableCommand; differences are in `bins`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from dbt.adapters.silt.engine.commands.commit import discarded_on_error
from dbt.adapters.silt.engine.commands.maintenance import bins, zorder
from dbt.adapters.silt.engine.commands.maintenance.rewritten_bins import (
    OPERATION,
    RewrittenBin,
    Sizes,
    commit_bins,
    files_of,
)
from dbt.adapters.silt.engine.commands.reading import partition_match, scan
from dbt.adapters.silt.engine.commands.rows import file_rows
from dbt.adapters.silt.engine.commands.spark import errors, frames
from dbt.adapters.silt.engine.commands.spark.partitions import typed
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.commands.writing.conversion import fitted
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance import clustering, file_states
from dbt.adapters.silt.engine.kernel.maintenance.bins import TARGET_FILE_SIZE, Bin
from dbt.adapters.silt.engine.kernel.progress import Progress
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.clustering import (
    PROVIDER,
    Path,
    clustered_by,
    clustering_columns,
    cube_tags,
    logical_paths,
)
from dbt.adapters.silt.engine.kernel.table.schema import StructField
from dbt.adapters.silt.engine.kernel.table.text_lengths import padded_type

_logger = logging.getLogger(__name__)

_JOBS = 8
"""The number of bins that are written at once; Spark decides the number of tasks."""
_BINS = "bins written"
_GROUP = "__silt_group"


@dataclass(frozen=True)
class Layout:
    """The new layout of the files.

    Args:
        alias: the qualifier of columns in `condition`.
        condition: the SQL of WHERE, over partition columns; by default all partitions.
        zorder_by: columns, or paths of names into structs; empty for bin-packing.
        is_full: whether the files of a clustered table are clustered although they are clustered already.
        is_upkeep: whether upkeep rewrites the files; the commit records it as delta-spark's automatic compaction does.
    """

    alias: str
    condition: str | None = None
    zorder_by: tuple[tuple[str, ...], ...] = ()
    is_full: bool = False
    is_upkeep: bool = False


@dataclass(frozen=True)
class Optimized:
    """The result of an OPTIMIZE.

    Args:
        outcome: the outcome of the commit, or of an OPTIMIZE without commit.
        added, removed: the sizes of the added and removed files.
        considered: the number of files in the selected partitions.
        partitions: the number of rewritten partitions.
        bins: the number of committed bins.
        vectors_removed, vector_rows_removed: the numbers of deletion vectors of the removed files, and of rows that
            they deleted.
        started_ms, ended_ms: milliseconds since 1970-01-01 UTC.
    """

    outcome: Outcome
    added: Sizes
    removed: Sizes
    considered: int
    partitions: int
    bins: int
    vectors_removed: int
    vector_rows_removed: int
    started_ms: int
    ended_ms: int


@dataclass(frozen=True)
class _Bin:
    """Files to rewrite together.

    Attributes:
        order: the columns that their rows are ordered by, if any.
        cube: the cube of the new files in a clustered table.
    """

    files: pa.Table
    order: Sequence[Path] = ()
    cube: str = ""


def optimize(spark: SparkSession, target: Target, layout: Layout, settings: WriteSettings) -> Optimized:
    """Rewrites files of the table, without changing a row.

    Raises:
        UnsupportedStatementError: if the condition uses more than partition columns, or a clustered table is to be in
            Z-order, or a table that is not clustered is to be clustered.
        ColumnNotFoundError: if a column of ZORDER BY does not exist.
        ConcurrentDeleteDeleteError: if other writers have removed files of every bin.
        Other errors of a commit: see `commands.commit.commit`.
    """
    snapshot = target.snapshot
    target.check_writable()
    zorder.check_columns(snapshot, layout.zorder_by)
    groups = _partitions(spark, snapshot, layout.alias, layout.condition)
    columns = _clustering(snapshot, layout)
    if columns:
        found = file_states.files_of(snapshot, of_others=True)
        chosen = (
            clustering.full(found) if layout.is_full else clustering.bins(found, _target_size(snapshot), eager=True)
        )
        planned = [_clustered(target, each, columns) for each in chosen]
        return _carried_out(spark, target, layout, planned, settings, considered=snapshot.num_files)
    planned = _planned(snapshot, groups, layout)
    return _carried_out(spark, target, layout, planned, settings, considered=sum(group.num_rows for group in groups))


def compact(spark: SparkSession, target: Target, bin_: Bin, settings: WriteSettings) -> Optimized:
    """Writes files again, for upkeep: of a partition as a single file, or of a clustered table as a cube.

    Raises:
        ConcurrentDeleteDeleteError: if another writer has removed some of the files.
        Other errors: as `optimize`.
    """
    target.check_writable()
    layout = Layout("", is_upkeep=True)
    columns = _clustering(target.snapshot, layout)
    chosen = _clustered(target, bin_, columns) if columns else _Bin(files_of(target, bin_))
    return _carried_out(spark, target, layout, [chosen], settings, considered=chosen.files.num_rows)


def _clustered(target: Target, bin_: Bin, columns: Sequence[Path]) -> _Bin:
    return _Bin(files_of(target, bin_), columns, bin_.cube or target.log.clock.new_id())


def _carried_out(
    spark: SparkSession,
    target: Target,
    layout: Layout,
    planned: Sequence[_Bin],
    settings: WriteSettings,
    *,
    considered: int,
) -> Optimized:
    snapshot = target.snapshot
    started = target.log.clock.now_ms()
    done = _rewritten(spark, target, planned, settings.progress)
    committed, kept = commit_bins(target, _parameters(snapshot, layout), done, settings)
    removed = [add for each in kept for add in snapshot.add_files(each.files)]
    vectors = [add.deletion_vector for add in removed if add.deletion_vector is not None]
    added = [add for each in kept for add in each.written.adds]
    outcome = Outcome(
        OPERATION,
        target.name,
        snapshot.version if committed is None else committed.version,
        files_added=len(added),
        files_removed=len(removed),
        files_skipped=snapshot.num_files - len(removed),
        attempts=0 if committed is None else committed.attempts,
    )
    return Optimized(
        outcome,
        added=Sizes(tuple(add.size for add in added)),
        removed=Sizes(tuple(add.size for add in removed)),
        considered=considered,
        partitions=len(bins.by_partition(snapshot, active_files.files_table(removed))) if removed else 0,
        bins=len(kept),
        vectors_removed=len(vectors),
        vector_rows_removed=sum(vector.cardinality for vector in vectors),
        started_ms=started,
        ended_ms=target.log.clock.now_ms(),
    )


def _clustering(snapshot: Snapshot, layout: Layout) -> list[Path]:
    """Returns the columns that the table is clustered by.

    Raises:
        UnsupportedStatementError: if the layout contradicts them, or no order of them helps queries.
    """
    columns = logical_paths(snapshot.schema, clustering_columns(snapshot.domains))
    if columns and layout.zorder_by:
        raise UnsupportedStatementError(
            "the table is clustered, so OPTIMIZE orders its rows by its clustering columns",
            remedy="Leave ZORDER BY out, or change the columns by `alter table ... cluster by`",
            table=snapshot.table,
        )
    if layout.is_full and not columns:
        raise UnsupportedStatementError(
            "OPTIMIZE FULL is for tables with clustering columns", table=snapshot.table, remedy="Leave FULL out"
        )
    zorder.check_columns(snapshot, columns)
    return columns


def _planned(snapshot: Snapshot, groups: Sequence[pa.Table], layout: Layout) -> list[_Bin]:
    if layout.zorder_by:
        return [_Bin(group, layout.zorder_by) for group in groups]
    target_size = _target_size(snapshot)
    groups = [group.filter(_is_own(group)) for group in groups]
    return [_Bin(packed) for group in groups for packed in bins.packed(group, target_size)]


def _is_own(files: pa.Table) -> pa.ChunkedArray:
    """Returns for each file whether its layout belongs to no other engine."""
    return pc.is_in(files["clustering_provider"], pa.array([None, PROVIDER], pa.string()))


def _target_size(snapshot: Snapshot) -> int:
    return snapshot.properties.target_file_size or TARGET_FILE_SIZE


def _rewritten(spark: SparkSession, target: Target, planned: Sequence[_Bin], progress: Progress) -> list[RewrittenBin]:
    """Writes the bins, and returns them with their new files; deletes all new files if a bin cannot be written."""
    done: list[RewrittenBin] = []

    def rewrite(each: _Bin) -> None:
        done.append(RewrittenBin(each.files, _rewrite(spark, target, each)))
        _logger.info("%s: %d of %d bins written", target.name, len(done), len(planned))
        progress(_BINS, len(done), len(planned))

    progress(_BINS, 0, len(planned))
    with discarded_on_error(target.log, (each.written for each in done)):
        _in_parallel(spark, rewrite, planned)
    return done


def _in_parallel(spark: SparkSession, run: Callable[[_Bin], None], planned: Sequence[_Bin]) -> None:
    """Runs the bins on threads that inherit the session's tags; starts no further bin after an error."""
    if len(planned) < 2:
        for each in planned:
            run(each)
        return
    inherit = inheritable_thread_target(spark)
    with ThreadPoolExecutor(min(_JOBS, len(planned))) as pool:
        futures = [pool.submit(inherit(run), each) for each in planned]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _rewrite(spark: SparkSession, target: Target, bin_: _Bin) -> Written:
    snapshot, chosen = target.snapshot, bin_.files
    rows = file_rows.row_count(target, chosen)
    df = scan.read_to_rewrite(spark, target.log, snapshot, chosen)
    count = max(1, round(active_files.size(chosen) / _target_size(snapshot)))
    if not bin_.order or (bin_.cube and count == 1):
        arranged = frames.in_order(df.coalesce(1), bin_.order)
    else:
        arranged = zorder.arranged(df, snapshot.schema, bin_.order, rows, count)
    written = files.write_as_arranged(arranged, target.log, snapshot.metadata)
    with discarded_on_error(target.log, (written,)):
        if written.rows != rows:
            raise file_rows.miscounted(target, chosen, f"{written.rows} rows were written of files that hold {rows}")
    return _tagged(written, snapshot, bin_.cube) if bin_.cube else written


def _tagged(written: Written, snapshot: Snapshot, cube: str) -> Written:
    """Returns the files as files of a cube."""
    tags = cube_tags(cube, clustered_by(snapshot.schema, snapshot.domains))
    adds = (replace(add, tags={**(add.tags or {}), **tags}, clustering_provider=PROVIDER) for add in written.adds)
    return replace(written, adds=tuple(adds))


def _parameters(snapshot: Snapshot, layout: Layout) -> dict[str, Json]:
    columns = clustered_by(snapshot.schema, snapshot.domains)
    return {
        "predicate": _json([] if layout.condition is None else [layout.condition]),
        "zOrderBy": _json([".".join(path) for path in layout.zorder_by]),
        "clusterBy": _json(columns),
        "auto": layout.is_upkeep,
        **({"isFull": layout.is_full} if columns else {}),
    }


def _json(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _partitions(spark: SparkSession, snapshot: Snapshot, alias: str, condition: str | None) -> list[pa.Table]:
    """Returns, for each partition that meets the condition, its files.

    Args:
        alias: the qualifier of columns in the condition.
        condition: SQL over partition columns; None for all partitions.

    Raises:
        UnsupportedStatementError: if the condition uses more than partition columns.
    """
    groups = bins.by_partition(snapshot, snapshot.files)
    if condition is None:
        return groups
    fields = [snapshot.schema.require(name, snapshot.table) for name in snapshot.partition_columns]
    if not fields:
        raise _not_about_partitions(snapshot, "the table has no partition columns")
    if not groups:
        return []
    try:
        with errors.mapped():
            # The line break ends a comment at the condition's end.
            chosen = _values(spark, groups, fields).alias(alias).filter(F.expr(f"({condition}\n)"))
            rows = chosen.select(_GROUP).collect()
    except ColumnNotFoundError as error:
        raise _not_about_partitions(snapshot, ", ".join(f"`{field.name}`" for field in fields)) from error
    return [groups[row[_GROUP]] for row in rows]


def _not_about_partitions(snapshot: Snapshot, these: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        f"the condition may only use partition columns: {these}",
        remedy="Name whole partitions, or leave WHERE out",
        table=snapshot.table,
    )


def _values(spark: SparkSession, groups: Sequence[pa.Table], fields: Sequence[StructField]) -> DataFrame:
    """Returns a row for each partition: its number, and its values as the table's columns."""
    firsts = pa.concat_tables([group.slice(0, 1) for group in groups])
    texts = [pa.array(partition_match.as_strings(firsts, field), pa.string()) for field in fields]
    names = [f"__silt_text_{position}" for position in range(len(fields))]
    known = spark.createDataFrame(pa.table([pa.array(range(len(groups)), pa.int64()), *texts], names=[_GROUP, *names]))
    return known.select(_GROUP, *(_value(name, field) for name, field in zip(names, fields, strict=True)))


def _value(text: str, field: StructField) -> Column:
    value = fitted(typed(F.col(text), field.type), padded_type(field))
    return value.alias(field.name, metadata=dict(field.metadata))
