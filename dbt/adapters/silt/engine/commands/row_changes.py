"""What DELETE, UPDATE and MERGE share: which files they open, which of them hold rows to change, and how they end.

Each verb has the same three cases: the whole table; whole files, by partition values and statistics alone, without a
Spark job; the files that hold rows to change, which are written anew. Few bytes are written anew at once, because a job
that looks for the touched files first costs more than it saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands import commit, files, scan, spark_errors
from dbt.adapters.silt.engine.commands.files import Written
from dbt.adapters.silt.engine.commands.target import Target, WriteSettings
from dbt.adapters.silt.engine.kernel import stats_json
from dbt.adapters.silt.engine.kernel.actions import Metadata
from dbt.adapters.silt.engine.kernel.changes import Changes, Operation, is_needed
from dbt.adapters.silt.engine.kernel.errors import InternalError, InvalidNameError
from dbt.adapters.silt.engine.kernel.expressions import Expression
from dbt.adapters.silt.engine.kernel.paths import decode_path
from dbt.adapters.silt.engine.kernel.schema import StructType
from dbt.adapters.silt.engine.kernel.statistics import from_footers
from dbt.adapters.silt.engine.kernel.transaction import Committed, ReadSet

RESERVED_PREFIX = "__silt_"


@dataclass(frozen=True)
class Rows:
    """The rows that a DELETE or an UPDATE is about.

    Args:
        alias: what `condition` may qualify the table's columns by.
        condition: the text of WHERE, its tables pinned; None for all rows.
        predicate: what the condition says of the table's columns; UNKNOWN where it cannot be said.
    """

    alias: str
    condition: str | None
    predicate: Expression


@dataclass(frozen=True)
class Limits:
    """Bytes of candidate files up to which a step that would rule some out is left out.

    Args:
        direct: a MERGE joins its source as it is, without making it stable first to learn the range of its keys.
        at_once: all candidates are written anew, without a job before that finds those with rows to change.
        single_task: one task joins and writes them.
        single_task_rows: rows of a stable source up to which the same holds.
    """

    direct: int = 8 << 20
    at_once: int = 16 << 20
    single_task: int = 2 << 20
    single_task_rows: int = 20_000


@dataclass(frozen=True)
class FileChanges:
    """What becomes of the table's files.

    Args:
        opened: the files whose rows were looked at.
        removed: the files that leave the table.
        written: the files that come into it.
    """

    opened: pa.Table
    removed: pa.Table
    written: Written | None = None

    @property
    def added(self) -> int:
        return 0 if self.written is None else len(self.written.adds)


def check_names(schema: StructType, table: str, what: str = "column") -> None:
    """Passes where no column has a name that the engine uses for its own.

    Raises:
        InvalidNameError: one has.
    """
    for name in schema.names:
        if name.lower().startswith(RESERVED_PREFIX):
            raise InvalidNameError(f"the {what} `{name}` has a name that begins with {RESERVED_PREFIX}", table=table)


def size(chosen: pa.Table) -> int:
    """Bytes of the files."""
    return pc.sum(chosen["size"]).as_py() or 0


def known_rows(chosen: pa.Table) -> int | None:
    """How many rows the files hold by their statistics; None where some file has none."""
    counts = _recorded(chosen)
    return None if counts.null_count else pc.sum(counts).as_py() or 0


def row_count(target: Target, chosen: pa.Table) -> int:
    """How many rows the files hold; the footers of files without statistics are read."""
    counts = _recorded(chosen)
    missing = chosen.filter(pc.is_null(counts))
    recorded = pc.sum(counts).as_py() or 0
    if missing.num_rows == 0:
        return recorded
    names = [decode_path(path) for path in missing["path"].to_pylist()]
    found = from_footers(target.log.store, names, StructType(), target.snapshot.properties)
    return recorded + sum(found[name].num_records for name in names) - _deleted_by_vectors(missing)


def touched(positioned: DataFrame, chosen: pa.Table) -> pa.Table:
    """Those of the files that some row of `positioned` comes from, by `scan.FILE`; runs a job."""
    with spark_errors.mapped():
        found = positioned.select(F.col(scan.FILE)).distinct().collect()
    paths = pa.array([row[scan.FILE] for row in found], pa.string())
    return chosen.filter(pc.is_in(chosen["path"], value_set=paths))


def finish(
    target: Target,
    operation: Operation,
    changes: FileChanges,
    reads: ReadSet,
    settings: WriteSettings,
    metadata: Metadata | None = None,
) -> Committed | None:
    """Commits the changes; None where there are none, and neither the caller nor the isolation asks for a commit.

    Args:
        reads: the predicates that the verb has read by; the opened files are added.
        metadata: the table's new one, where it changes.
    """
    now = target.log.clock.now_ms()
    removed = target.snapshot.add_files(changes.removed)
    actions = Changes(
        operation,
        adds=() if changes.written is None else changes.written.adds,
        removes=tuple(add.remove(now) for add in removed),
        metadata=metadata,
    )
    isolation = settings.commit.isolation_level or target.snapshot.properties.isolation_level
    if settings.txn is None and not is_needed(actions, isolation):
        return None
    opened = frozenset(changes.opened["path"].to_pylist()) | {add.path for add in removed}
    written = () if changes.written is None else (changes.written,)
    with_paths = replace(reads, paths=reads.paths | opened)
    return commit.commit(target.log, target.snapshot, actions, with_paths, settings, written)


def check_kept(target: Target, changes: FileChanges, expected: int) -> None:
    """Passes where as many rows were written as there must be; otherwise the files are deleted.

    Raises:
        InternalError: rows were lost or doubled.
    """
    if changes.written is not None and changes.written.rows != expected:
        files.discard(target.log, changes.written)
        raise InternalError(
            f"{changes.written.rows} rows were written instead of {expected}; nothing was committed", table=target.name
        )


def drop_written(target: Target, changes: FileChanges) -> FileChanges:
    """The changes without any: what was written turned out to hold what was there before, and is deleted."""
    if changes.written is not None:
        files.discard(target.log, changes.written)
    return FileChanges(changes.opened, changes.removed.slice(0, 0))


def texts(metrics: Mapping[str, int | None]) -> dict[str, str]:
    """Metrics as `commitInfo.operationMetrics` spells them; those that are not known are left out."""
    return {name: str(value) for name, value in metrics.items() if value is not None}


def _recorded(chosen: pa.Table) -> pa.Array:
    """Rows of each file by its statistics, null where these do not say."""
    stats = chosen["stats"].combine_chunks() if chosen.num_rows else pa.array([], pa.string())
    records = stats_json.read(stats, {stats_json.NUM_RECORDS: None})[stats_json.NUM_RECORDS]
    vectors = chosen["deletion_vector"].combine_chunks()
    if len(vectors) == vectors.null_count:
        return records
    return pc.subtract(records, pc.fill_null(pc.struct_field(vectors, "cardinality"), 0))


def _deleted_by_vectors(chosen: pa.Table) -> int:
    cardinality = pc.struct_field(chosen["deletion_vector"].combine_chunks(), "cardinality")
    return pc.sum(cardinality).as_py() or 0
