"""Checks the data files of a snapshot against the log: that they exist, have that size, and match their statistics.

A wrong statistic loses rows from every query that trusts it, so all statistics are compared with the file's footer. A
footer may be less exact than the file (its minimum and maximum may be truncated, and ignore a deletion vector). If it
contradicts the log, the column itself is read and decides, so a correct file is never reported.
Source: the Delta specification, section "Per-file Statistics".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import ExternalPathError, StorageError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files import data_files, deletion_vectors, footers, stats_json
from dbt.adapters.silt.engine.kernel.files.bounds import Bounds, column_bounds
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, Expected, contradiction
from dbt.adapters.silt.engine.kernel.files.footers import ColumnChunks
from dbt.adapters.silt.engine.kernel.files.page_bounds import MOST_OF_A_FILE, DecodedTexts, PageBounds
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.problems import Problem, ProblemKind
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table import value_order
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType

Path = tuple[str, ...]
Tell = Callable[[int], None]

_READERS: Final = 8
_BATCH: Final = 1_000
_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}


def check_files(store: Store, snapshot: Snapshot, tell: Tell, data: bool = False) -> Iterator[Problem]:
    """Yields the problems of a snapshot's files.

    Args:
        data: whether to read every page of every file, verify its checksum, if any, and compare every statistic with
            the values; otherwise only columns whose footers contradict the log are read.
        tell: the callback for the number of files checked since its last call.

    Raises:
        StorageError: if the storage failed.
    """
    leaves = tuple(_leaves(snapshot.schema, snapshot.partition_columns))
    with ThreadPoolExecutor(_READERS) as pool:
        for start in range(0, snapshot.num_files, _BATCH):
            files = snapshot.files.slice(start, _BATCH).combine_chunks()
            claims = _claims(files, snapshot, leaves)
            look = functools.partial(_check_file, store, snapshot, leaves, data=data)
            for problems in pool.map(look, claims):
                yield from problems
                tell(1)


@dataclass(frozen=True)
class _Leaf:
    """A column that may have statistics: a primitive column of the table or within structs."""

    logical: Path
    physical: Path
    type: DataType

    @property
    def name(self) -> str:
        return ".".join(self.logical)


@dataclass(frozen=True)
class _Claim:
    """The statistics of a column of a file; missing statistics are None.

    Attributes:
        least, greatest: the lower and upper bounds of the values, in the form of `order`.
        nulls: the number of null rows.
    """

    order: value_order.ValueOrder | None
    least: Any
    greatest: Any
    nulls: int | None


@dataclass(frozen=True)
class _File:
    """A file in the log.

    Attributes:
        row: a table with the file's row of `Snapshot.files`.
        rows: the file's number of rows, if the log has it.
        columns: the claims, by the columns' physical paths.
        is_tight: whether counts are exact: the file has no deletion vector, and its bounds are not recorded as wide.
    """

    row: pa.Table
    path: str
    size: int
    rows: int | None
    columns: dict[Path, _Claim]
    is_tight: bool


@dataclass(frozen=True)
class _Parquet:
    """An open data file, whose rows are read in batches that take little memory."""

    file: pq.ParquetFile
    bounds: PageBounds

    @classmethod
    def of(cls, source: IO[bytes], verifies: bool) -> _Parquet:
        """Opens a file; `verifies` is whether the checksums of pages are verified."""
        bounds = PageBounds.of(source)
        file = pq.ParquetFile(
            source,
            metadata=bounds.metadata,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=verifies,
        )
        return cls(file, bounds)

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.bounds.metadata

    def batches(self, column: str | None = None) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a column, or of all columns.

        Raises:
            pa.ArrowException, OSError: if Arrow cannot read them, or a row may take far too much memory.
        """
        names = None if column is None else [column]
        texts = DecodedTexts(self.bounds.size, MOST_OF_A_FILE)
        for group in range(self.metadata.num_row_groups):
            rows = self.bounds.rows_at_once(group, None if names is None else frozenset(names))
            for batch in self.file.iter_batches(rows, row_groups=[group], columns=names):
                texts.add(batch)
                yield batch


def _leaves(
    schema: StructType, partition_columns: Sequence[str], above: tuple[Path, Path] = ((), ())
) -> Iterator[_Leaf]:
    partitioning = {name.lower() for name in partition_columns}
    for member in schema:
        logical, physical = (*above[0], member.name), (*above[1], member.physical_name)
        if isinstance(member.type, StructType):
            yield from _leaves(member.type, (), (logical, physical))
        elif not isinstance(member.type, ArrayType | MapType) and member.name.lower() not in partitioning:
            yield _Leaf(logical, physical, member.type)


def _claims(files: pa.Table, snapshot: Snapshot, leaves: Sequence[_Leaf]) -> list[_File]:
    columns = {leaf.physical: Column(leaf.logical) for leaf in leaves}
    bounds = column_bounds(files, snapshot.metadata, columns.values())
    stats = files["stats"].combine_chunks()
    nulls = stats_json.read(stats, {("nullCount", *leaf.physical): None for leaf in leaves}) if leaves else {}
    tight = stats_json.read(stats, {stats_json.TIGHT: value_order.Booleans()})[stats_json.TIGHT].to_pylist()
    of_columns = {
        leaf.physical: _of_column(bounds.get(columns[leaf.physical]), nulls[("nullCount", *leaf.physical)])
        for leaf in leaves
    }
    rows = stats_json.num_records(files).to_pylist()
    vectors = files["deletion_vector"].combine_chunks().is_valid().to_pylist()
    paths, sizes = files["path"].to_pylist(), files["size"].to_pylist()
    return [
        _File(
            files.slice(index, 1),
            paths[index],
            sizes[index],
            rows[index],
            {path: claims[index] for path, claims in of_columns.items()},
            not vectors[index] and tight[index] is not False,
        )
        for index in range(files.num_rows)
    ]


def _of_column(bounds: Bounds | None, nulls: pa.Array) -> list[_Claim]:
    counts = nulls.to_pylist()
    if bounds is None or bounds.order is None:
        return [_Claim(None, None, None, count) for count in counts]
    ends = zip(bounds.minimum.to_pylist(), bounds.maximum.to_pylist(), counts, strict=True)
    return [_Claim(bounds.order, least, greatest, count) for least, greatest, count in ends]


def _check_file(store: Store, snapshot: Snapshot, leaves: Sequence[_Leaf], file: _File, data: bool) -> list[Problem]:
    name = decode_path(file.path)
    try:
        where, own = data_files.located(store, name)
        status = where.status(own)
        if status is None:
            return [Problem(ProblemKind.FILE_MISSING, f"the data file {name} is missing", path=file.path)]
        if status.size != file.size:
            what = f"the data file {name} has {status.size} bytes, but the log says {file.size}"
            return [Problem(ProblemKind.FILE_SIZE_DIFFERS, what, path=file.path)]
        deleted, problems = _deleted_rows(store, snapshot.table, file)
        with where.open_input(own) as source:
            parquet = _Parquet.of(source, data)
            problems += _check_columns(parquet, name, file, snapshot)
            if data:
                _read_all(parquet)
            return [*problems, *_check_content(parquet, name, leaves, file, deleted, data)]
    except ExternalPathError as error:
        return [Problem(ProblemKind.FILE_OUTSIDE, error.problem, path=file.path)]
    except (ObjectMissing, FileNotFoundError):
        return [Problem(ProblemKind.FILE_MISSING, f"the data file {name} is missing", path=file.path)]
    except (pa.ArrowException, OSError, StorageError) as error:
        why = error.problem if isinstance(error, StorageError) else str(error).partition("\n")[0]
        return [Problem(ProblemKind.FILE_UNREADABLE, f"the data file {name} cannot be read: {why}", path=file.path)]


def _deleted_rows(store: Store, table: str, file: _File) -> tuple[BitMap64 | None, list[Problem]]:
    """Reads the rows deleted by the file's deletion vector, if it has a readable vector, and the vector's problems."""
    try:
        found = deletion_vectors.read_all(store, file.row, table)
    except (TableDamagedError, ExternalPathError) as error:
        return None, [Problem(ProblemKind.DELETION_VECTOR_UNREADABLE, error.problem, path=file.path)]
    return found.get(file.path), []


def _read_all(parquet: _Parquet) -> None:
    """Reads every page of every column, in batches of rows.

    Raises:
        pa.ArrowException, OSError: if Arrow cannot read a page.
    """
    try:
        for _ in parquet.batches():
            pass
    except (pa.ArrowException, OSError) as error:
        if not footers.may_be_wide_differences(error, parquet.metadata):
            raise
        said = str(error).partition("\n")[0]
        raise pa.ArrowInvalid(f"{said}. {footers.WIDE_DIFFERENCES}") from error


def _check_columns(parquet: _Parquet, name: str, file: _File, snapshot: Snapshot) -> Iterator[Problem]:
    """Yields a problem if the file lacks columns that the log states values for."""
    expected = Expected(name, file.size, 0, file.row["stats"][0].as_py())
    found = contradiction(parquet.metadata, expected, Content(snapshot.metadata))
    if found is not None and (file.rows is None or file.rows == parquet.metadata.num_rows):
        yield Problem(ProblemKind.STATISTICS_DIFFER, found.problem, path=file.path)


def _check_content(
    parquet: _Parquet, name: str, leaves: Sequence[_Leaf], file: _File, deleted: BitMap64 | None, data: bool
) -> Iterator[Problem]:
    held = parquet.metadata.num_rows
    if file.rows is not None and file.rows != held:
        what = f"the data file {name} has {held} rows, but its statistics say {file.rows}"
        yield Problem(ProblemKind.STATISTICS_DIFFER, what, path=file.path)
    if deleted and deleted.max() >= held:
        what = f"its deletion vector deletes row {deleted.max()} of {name}, which has {held} rows"
        yield Problem(ProblemKind.DELETION_VECTOR_UNREADABLE, what, path=file.path)
    chunks = footers.read(parquet.metadata, [leaf.physical for leaf in leaves])
    for leaf in leaves:
        claim = file.columns[leaf.physical]
        if leaf.physical in chunks and (data or _may_be_wrong(claim, chunks[leaf.physical])):
            for what in _contradictions(parquet, leaf, claim, file, deleted):
                text = f"the data file {name}: {what}"
                yield Problem(ProblemKind.STATISTICS_DIFFER, text, path=file.path)


def _may_be_wrong(claim: _Claim, chunks: ColumnChunks) -> bool:
    """Returns whether the footer contradicts the log."""
    if claim.nulls is not None and chunks.null_count is not None and claim.nulls != chunks.null_count:
        return True
    if claim.order is None:
        return False
    least, greatest = (_form(claim.order, chunks.arrow_type, raw) for raw in (chunks.minimum, chunks.maximum))
    return _is_below(least, claim.least) or _is_below(claim.greatest, greatest)


def _contradictions(
    parquet: _Parquet, leaf: _Leaf, claim: _Claim, file: _File, deleted: BitMap64 | None
) -> Iterator[str]:
    """Yields contradictions between the log and the column's values in rows that are not deleted."""
    seen = _Seen()
    for values, is_live in _values(parquet, leaf.physical, deleted):
        seen.add(values, values if is_live is None else values.filter(is_live), claim.order)
    # After rows of the file were deleted, a null count is only exact if it is 0.
    is_exact = file.is_tight or claim.nulls == 0
    if claim.nulls is not None and is_exact and claim.nulls not in (seen.live_nulls, seen.nulls):
        yield f"`{leaf.name}` is null in {seen.live_nulls} rows, but the statistics say {claim.nulls}"
    if _is_below(seen.least, claim.least):
        yield f"`{leaf.name}` has a value below the minimum of its statistics"
    if _is_below(claim.greatest, seen.greatest):
        yield f"`{leaf.name}` has a value above the maximum of its statistics"


@dataclass
class _Seen:
    """The nulls and the ends of the values that were read; the ends are those of rows that are not deleted."""

    nulls: int = 0
    live_nulls: int = 0
    least: Any = None
    greatest: Any = None

    def add(self, whole: pa.Array, live: pa.Array, order: value_order.ValueOrder | None) -> None:
        self.nulls += whole.null_count
        self.live_nulls += live.null_count
        ordered = None if order is None else _as_forms(order, live)
        if ordered is None:
            return
        least, greatest = (each.as_py() for each in pc.min_max(ordered).values())
        if self.least is None or _is_below(least, self.least):
            self.least = least
        if self.greatest is None or _is_below(self.greatest, greatest):
            self.greatest = greatest


def _values(
    parquet: _Parquet, path: Path, deleted: BitMap64 | None
) -> Iterator[tuple[pa.Array, pa.BooleanArray | None]]:
    """Yields the values of a column, null in rows with a null parent struct, and which of them are not deleted."""
    start = 0
    for batch in parquet.batches(".".join(path)):
        column = batch.column(path[0])
        for name in path[1:]:
            column = pc.struct_field(column, name)
        yield column, _is_live(start, len(column), deleted) if deleted else None
        start += len(column)


def _is_live(start: int, length: int, deleted: BitMap64) -> pa.Array:
    positions = pa.array(range(start, start + length), pa.int64())
    within = deleted & BitMap64(range(start, start + length))
    return pc.invert(pc.is_in(positions, value_set=pa.array(list(within), pa.int64())))


def _as_forms(order: value_order.ValueOrder, values: pa.Array) -> pa.Array | None:
    """Converts the values to their order's form, without NaN, or returns None if the file has another type."""
    kind = values.type
    if isinstance(order, value_order.Timestamps):
        return pc.cast(values, pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()) if _is_moment(kind) else None
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()).cast(pa.int64())
    if isinstance(order, value_order.Strings) or pa.types.is_string(kind) or pa.types.is_binary(kind):
        return values.cast(pa.string()) if isinstance(order, value_order.Strings) and pa.types.is_string(kind) else None
    if isinstance(order, value_order.Doubles):
        numbers = values.cast(pa.float64(), safe=False)
        return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    return values.cast(order.form)


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind))


def _form(order: value_order.ValueOrder, kind: pa.DataType, raw: Any) -> Any:
    """Converts a footer's raw value to its order's form, or returns None if that is impossible."""
    if raw is None or (isinstance(raw, float) and math.isnan(raw)):
        return None
    if isinstance(order, value_order.Timestamps):
        times, parts = _MICROSECONDS.get(getattr(kind, "unit", ""), (0, 1))
        return raw * times // parts if _is_moment(kind) else None
    if isinstance(order, value_order.Strings):
        return raw.decode(errors="replace") if isinstance(raw, bytes) else None
    if isinstance(order, value_order.Decimals):
        is_number = pa.types.is_decimal(kind) and isinstance(raw, int)
        return Decimal(stats_json.decimal_literal(raw, kind.scale)) if is_number else None
    if isinstance(order, value_order.Doubles):
        return float(raw) if isinstance(raw, int | float) else None
    return int(raw) if isinstance(raw, int) else None


def _is_below(value: Any, bound: Any) -> bool:
    return value is not None and bound is not None and value < bound
