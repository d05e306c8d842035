"""Recognises a table that a build replaces by the rows that it already has.

The log tells most rebuilds apart: another number of rows, or another minimum or maximum of a column. If it does not,
the rows of both are read and hashed, in any order. The hash is recorded in the commit, so that the next rebuild reads
its own rows only.

The hash adds up a 64-bit hash of each row, so it depends on how often a row occurs, and not on the order or the files
of the rows. Spark's hash leaves nulls out: each column is therefore hashed with a flag that marks nulls. The two zeros
of a float are equal to it: the sign of a zero is hashed too. The hash of a map does not depend on the order of its
entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.builds import CONTENT_INFO_KEY, content_schema
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import min_max
from dbt.adapters.silt.engine.kernel.table.actions import Json, Metadata
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.column_mapping import effective
from dbt.adapters.silt.engine.kernel.table.identity import identities
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

_FLOATS: Final = ("float", "double")
_HASHED: Final = frozenset(
    "boolean byte short integer long float double string binary date timestamp timestamp_ntz".split()
)


@dataclass(frozen=True)
class Compared:
    """The rows that a build has written, compared with the rows of the table that they would replace.

    Attributes:
        is_equal: whether the table already has these rows.
        content: the hash of the new rows, if they were read.
    """

    is_equal: bool
    content: str | None = None

    @property
    def commit_info(self) -> dict[str, Json]:
        """The fields of `commitInfo` that record the hash."""
        return {} if self.content is None else {CONTENT_INFO_KEY: self.content}


def compared(spark: SparkSession, log: DeltaLog, base: Snapshot, metadata: Metadata, written: Written) -> Compared:
    """Compares rows that were written, but not committed, with the rows of a version of the table.

    Tables with another definition, with numbered rows or with a column that has no exact hash are never equal.

    Args:
        base: the version.
        metadata: the definition of the new version.

    Raises:
        DataFileMissingError, ...: if the new files cannot be read. A version that cannot be read is not equal.
    """
    content = _content_of_new(spark, log, base, base.files, metadata, written)
    if content is None:
        return Compared(False)
    return Compared(content == _content_of_version(spark, log, base), content)


def is_replaced_by_same_rows(
    spark: SparkSession, log: DeltaLog, base: Snapshot, replaced: pa.Table, metadata: Metadata, written: Written
) -> bool:
    """Returns whether new files have the rows of the files that they would replace, compared as `compared` does.

    Args:
        replaced: rows of the version's files.

    Raises:
        As `compared`.
    """
    content = _content_of_new(spark, log, base, replaced, metadata, written)
    try:
        return content is not None and content == content_of(base.metadata, scan.read(spark, log, base, replaced))
    except SiltError:  # files that cannot be read are replaced
        return False


def _content_of_new(
    spark: SparkSession, log: DeltaLog, base: Snapshot, replaced: pa.Table, metadata: Metadata, written: Written
) -> str | None:
    """Returns the hash of the new rows, unless the log shows that they differ from the replaced rows."""
    if not _is_defined_alike(base.metadata, metadata) or identities(StructType.from_json(metadata.schema_string)):
        return None
    new = replace(base, metadata=effective(metadata))
    files = files_table(written.adds)
    if stats_json.row_count(replaced) not in (None, written.rows) or _has_other_bounds(base, replaced, new, files):
        return None
    return content_of(new.metadata, scan.read(spark, log, new, files))


def _is_defined_alike(before: Metadata, now: Metadata) -> bool:
    return (
        before.partition_columns == now.partition_columns
        and before.configuration == now.configuration
        and content_schema(before.schema_string) == content_schema(now.schema_string)
    )


def _has_other_bounds(base: Snapshot, replaced: pa.Table, new: Snapshot, files: pa.Table) -> bool:
    """Returns whether the exact minimum or maximum of a column differs; the log does not know it for every column."""
    before = min_max.extremes(base, replaced, base.schema.names)
    after = min_max.extremes(new, files, new.schema.names)
    return any(before[each] != after[each] for each in before.keys() & after.keys())


def _content_of_version(spark: SparkSession, log: DeltaLog, base: Snapshot) -> str | None:
    """Returns the hash of a version's rows, which its commits have recorded or which is computed now."""
    recorded = _recorded(log, base)
    if recorded is not None:
        return recorded
    try:
        return content_of(base.metadata, scan.read(spark, log, base))
    except SiltError:  # a damaged table can be replaced
        return None


def _recorded(log: DeltaLog, base: Snapshot) -> str | None:
    """Returns the recorded hash of a version's rows, if no later commit has changed rows or columns."""
    schema = content_schema(base.metadata.schema_string)
    for commit in log.newest_commits():
        if commit.version > base.version:
            continue
        changed = [each for each in commit.actions if isinstance(each, Metadata)]
        if any(content_schema(each.schema_string) != schema for each in changed):
            return None
        found = commit.info.extra.get(CONTENT_INFO_KEY)
        if found is not None or commit.changes_rows:
            return found if isinstance(found, str) else None
    return None


def content_of(metadata: Metadata, rows: DataFrame) -> str | None:
    """Reads rows, and returns their hash with the table's columns; None if a column's type has no exact hash."""
    schema = StructType.from_json(metadata.schema_string)
    values = _hashed(((quote(member.name), member.type) for member in schema), 0)
    if values is None:
        return None
    row = _hash(values)
    # Half of the hash is added up at a time: the sum of whole hashes would not fit in a bigint.
    sums = (f"try_sum({row} & 4294967295L)", f"try_sum(shiftrightunsigned({row}, 32))")
    with errors.mapped():
        (found,) = rows.agg(*map(F.expr, ("count(1)", *sums))).collect()
    return of_sums(metadata, *found)


def of_sums(metadata: Metadata, rows: int, low: int | None, high: int | None) -> str | None:
    """Returns the hash of rows, or None if a sum of their hashes' halves does not fit in a bigint.

    Args:
        rows: the number of rows.
    """
    if rows and (low is None or high is None):
        return None
    return f"{content_schema(metadata.schema_string)}:{rows}:{low or 0:x}:{high or 0:x}"


def _values(name: str, data_type: DataType, depth: int = 0) -> tuple[str, ...] | None:
    """Returns the SQL of the values that determine a column; None if its type has no exact hash.

    Args:
        name: The SQL of a column, or of a part of a column.
        depth: the number of arrays and maps around that part.
    """
    match data_type:
        case StructType():
            fields = tuple((f"{name}.{quote(member.name)}", member.type) for member in data_type)
            within = _hashed(fields, depth)
            return None if within is None else (f"isnull({name})", *within)
        case ArrayType():
            element = f"element{depth}"
            hashed = _hashed(((element, data_type.element_type),), depth + 1)
            return hashed and _list(name, f"transform({name}, {element} -> {_hash(hashed)})")
        case MapType():
            entry = f"entry{depth}"
            parts = ((f"{entry}.key", data_type.key_type), (f"{entry}.value", data_type.value_type))
            hashed = _hashed(parts, depth + 1)
            entries = f"transform(map_entries({name}), {entry} -> {_hash(hashed or ())})"
            return hashed and _list(name, f"sort_array({entries})")
        case DecimalType():
            return (name, f"isnull({name})")
    is_hashed = isinstance(data_type, PrimitiveType) and data_type.name in _HASHED
    return tuple(_of_primitive(name, data_type.name)) if is_hashed else None


def _hashed(parts: Iterable[tuple[str, DataType]], depth: int) -> tuple[str, ...] | None:
    """Returns the values of all parts, or None if the type of a part has no exact hash."""
    found = [_values(name, data_type, depth) for name, data_type in parts]
    if any(values is None for values in found):
        return None
    return tuple(value for values in found if values is not None for value in values)


def _hash(values: Iterable[str]) -> str:
    return f"xxhash64({', '.join(values)})"


def _list(name: str, hashes: str) -> tuple[str, ...]:
    """Returns the values of an array or map: Spark's hash of an array depends on neither its length nor on nulls."""
    return (hashes, f"size({name})", f"isnull({name})")


def _of_primitive(name: str, type_name: str) -> Iterator[str]:
    yield name
    yield f"isnull({name})"
    if type_name in _FLOATS:
        yield f"if({name} = 0, cast({name} as string), null)"
