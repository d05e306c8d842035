"""Selects the rows of a DELETE or UPDATE, finds the files that hold them, counts their rows, and detects lost rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import positions, scan
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.kernel.errors import InternalError, SiltError
from dbt.adapters.silt.engine.kernel.files import file_guard, stats_json
from dbt.adapters.silt.engine.kernel.files.statistics import from_footers
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.expressions import Expression
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.unrepeatable import Unrepeatable, unrepeatable

_COUNT = "rows"
_NAMED = 3


@dataclass(frozen=True, eq=False)
class CountedRows:
    """The rows of files to rewrite, counted while they are read, because it is unknown how many of them are kept.

    Args:
        frame: the rows.
        files: rows of the snapshot's files.
    """

    frame: DataFrame
    files: pa.Table
    _observation: Observation

    def check(self, target: Target, kept: int) -> None:
        """Checks that no row of the files was lost, and no more rows were kept than the files hold.

        A higher count than expected is not a loss: a task that ran twice has counted twice.

        Args:
            kept: the number of rows written. If it is 0, Spark may have dropped the part of the plan that counts, and
                the footers of the files are read instead.

        Raises:
            DataFileChangedError: if a data file no longer matches its entry in the log.
            InternalError: if rows were lost or duplicated for another reason.
        """
        expected = row_count(target, self.files)
        if kept == 0:
            error = _first_changed(target, self.files)
            if error is not None:
                raise error
            return
        if kept > expected:
            raise miscounted(target, self.files, f"{kept} rows were kept of files that hold {expected}")
        found = int(self._observation.get[_COUNT])
        if found < expected:
            raise miscounted(target, self.files, f"{found} rows were read of files that hold {expected}")


@dataclass(frozen=True, eq=False)
class ExpectedRows:
    """The rows of files to rewrite; a known number of them is kept.

    They are not counted while they are read, which would cost a tenth of the job's processor time.

    Args:
        frame: the rows.
        files: rows of the snapshot's files.
        expected: how many of the rows are kept.
    """

    frame: DataFrame
    files: pa.Table
    expected: int

    def check(self, target: Target, kept: int) -> None:
        """Checks that no row was lost or written twice; arguments and errors as those of `CountedRows.check`."""
        if kept != self.expected:
            raise miscounted(target, self.files, f"{kept} rows were kept instead of {self.expected}")


def counted(spark: SparkSession, target: Target, chosen: pa.Table) -> CountedRows:
    """Returns the rows of files, to be rewritten in a single job."""
    observation = Observation()
    frame = scan.read_to_rewrite(spark, target.log, target.snapshot, chosen)
    return CountedRows(frame.observe(observation, F.count(F.lit(1)).alias(_COUNT)), chosen, observation)


def miscounted(target: Target, chosen: pa.Table, what: str) -> SiltError:
    """Returns the error for lost or duplicated rows of files; it names the file at fault, if known.

    Args:
        what: the counts, as a clause.
    """
    error = _first_changed(target, chosen)
    if error is not None:
        return error
    names = [decode_path(path) for path in chosen["path"].to_pylist()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return InternalError(
        f"{what} ({', '.join(names[:_NAMED])}{more}); nothing was committed",
        remedy=f"Run `silt check --data {target.name}`, which reads the files; if it finds nothing, this is a bug of "
        "dbt-silt: please report it with this message",
        table=target.name,
        version=target.snapshot.version,
    )


def _first_changed(target: Target, chosen: pa.Table) -> SiltError | None:
    snapshot = target.snapshot
    return file_guard.first_changed(target.log.store, chosen, snapshot.metadata, target.name, snapshot.version)


def at(chosen: pa.Table, paths: Iterable[str]) -> pa.Table:
    """Returns the files that have any of the paths."""
    return chosen.filter(pc.is_in(chosen["path"], value_set=pa.array(paths, pa.string())))


def row_count(target: Target, chosen: pa.Table) -> int:
    """Returns the row count of the files; reads the footers of files without statistics."""
    return sum(records(target, chosen)) - stats_json.deleted_rows(chosen)


def records(target: Target, chosen: pa.Table) -> list[int]:
    """Returns the row count of each file, including rows deleted by a vector; reads footers as `row_count`."""
    recorded = stats_json.num_records(chosen).to_pylist()
    names = [decode_path(path) for path in chosen["path"].to_pylist()]
    unknown = [name for name, count in zip(names, recorded, strict=True) if count is None]
    found = from_footers(target.log.store, unknown, StructType(), target.snapshot.properties)
    return [found[name].num_records if count is None else count for name, count in zip(names, recorded, strict=True)]


@dataclass(frozen=True)
class Touched:
    """The files that a statement changes.

    Args:
        files: rows of the snapshot's files.
        rows: how many of their rows the statement changes; None if unknown.
    """

    files: pa.Table
    rows: int | None = None


def touched(positioned: DataFrame, log: DeltaLog, chosen: pa.Table) -> Touched:
    """Returns the files that contain the rows of `positioned`; runs a job."""
    found = positions.rows_by_path(positioned, log, chosen)
    return Touched(at(chosen, found), sum(found.values()))


@dataclass(frozen=True)
class Rows:
    """The rows that a DELETE or an UPDATE selects.

    Args:
        alias: the qualifier of the table's columns in `condition`.
        condition: the SQL of WHERE, its tables pinned; None for all rows.
        predicate: the predicate that the condition implies; UNKNOWN if it cannot be derived.
    """

    alias: str
    condition: str | None
    predicate: Expression

    @property
    def are_repeatable(self) -> bool:
        """Whether a second evaluation of the condition is known to select the same rows."""
        text = self.condition or ""
        return not table_references(text) and unrepeatable(text) == Unrepeatable()


def to_rewrite(
    target: Target,
    candidates: pa.Table,
    selected: Callable[[], DataFrame],
    limits: Limits,
    are_repeatable: bool = False,
) -> Touched:
    """Returns the files that contain selected rows; runs a job if the candidates are large, and otherwise returns all.

    Args:
        selected: returns the selected rows of the candidates, with their positions.
        are_repeatable: whether a second evaluation selects the same rows, so that their number is known.
    """
    if active_files.size(candidates) <= limits.at_once:
        return Touched(candidates)
    found = touched(selected(), target.log, candidates)
    return found if are_repeatable else Touched(found.files)


@dataclass(frozen=True)
class Limits:
    """The limits up to which a cheaper plan is used: sizes of the candidate files in bytes, unless stated otherwise.

    Args:
        direct: whether a MERGE joins its source directly; otherwise it first makes the source stable and finds the
            range of its keys.
        at_once: all candidates are rewritten, without a prior job that finds the files with rows to change.
        single_task: a single task joins and writes them.
        single_task_rows: rows of a stable source up to which the same holds.
        broadcast: the maximum size, in bytes, of a stable source that is broadcast.
    """

    direct: int = 8 << 20
    at_once: int = 16 << 20
    single_task: int = 2 << 20
    single_task_rows: int = 20_000
    broadcast: int = 64 << 20


def check_condition(spark: SparkSession, target: Target, rows: Rows) -> None:
    """Checks that the condition is boolean, or NULL and therefore never true.

    Raises:
        InvalidStatementError: if the condition has another type.
    """
    if rows.condition is not None:
        rules.checked(
            rows.condition, "the condition of WHERE", lambda: no_rows(spark, target).alias(rows.alias), target.name
        )


def no_rows(spark: SparkSession, target: Target) -> DataFrame:
    """Returns the rows of no file of the table: they have its columns, and need no job."""
    return scan.read(spark, target.log, target.snapshot, target.snapshot.files.slice(0, 0))
