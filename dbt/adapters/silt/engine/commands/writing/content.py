"""Hashes the rows that a statement writes, in any order, so that a later write of the same rows is recognised.

The hash is observed on the pass that writes the rows. It adds up a 64-bit hash of each row, so it depends on how often
a row occurs, and not on the order or the files of the rows. Spark's hash leaves nulls out: each column is therefore
hashed with a flag that marks nulls. The two zeros of a float are equal to it: the sign of a zero is hashed too. The
hash of a map does not depend on the order of its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.builds import content_schema
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)

INFO_KEY: Final = "content"
"""The field of `commitInfo` for the hash of all rows that the table has after the commit."""

_LOW, _HIGH = "content low", "content high"
_FLOATS: Final = ("float", "double")
_HASHED: Final = frozenset(
    "boolean byte short integer long float double string binary date timestamp timestamp_ntz".split()
)


def aggregates(metadata: Metadata) -> Mapping[str, str]:
    """Returns SQL aggregates over the rows of a table for `of`, by name; empty if a column's type has no exact hash."""
    schema = StructType.from_json(metadata.schema_string)
    values = _hashed(((quote(member.name), member.type) for member in schema), 0)
    if values is None:
        return {}
    row = _hash(values)
    # Half of the hash is added up at a time: the sum of whole hashes would not fit in a bigint.
    return {_LOW: f"try_sum({row} & 4294967295L)", _HIGH: f"try_sum(shiftrightunsigned({row}, 32))"}


def of(metadata: Metadata, rows: int, observed: Mapping[str, Any]) -> str | None:
    """Returns the hash of a table's rows with their columns; empty if it is unknown.

    Args:
        rows: the number of rows.
        observed: the values of `aggregates`.
    """
    found = [observed.get(name) for name in (_LOW, _HIGH)]
    if None in found and (rows or not observed):
        return None  # a column has no exact hash, or a sum does not fit in a bigint
    sums = ":".join(f"{int(each or 0):x}" for each in found)
    return f"{content_schema(metadata.schema_string)}:{rows}:{sums}"


def is_held(log: DeltaLog, base: Snapshot, metadata: Metadata, content: str) -> bool:
    """Returns whether a version of a table holds rows of that hash, in the same partitions and properties.

    The newest commit that changed rows must have recorded the hash, and no later commit may have changed columns.
    """
    before = base.metadata
    if before.partition_columns != metadata.partition_columns or before.configuration != metadata.configuration:
        return False
    schema = content_schema(metadata.schema_string)
    for commit in log.newest_commits():
        if commit.version > base.version:
            continue
        if commit.changes_rows:
            return commit.info.extra.get(INFO_KEY) == content
        changed = [each for each in commit.actions if isinstance(each, Metadata)]
        if any(content_schema(each.schema_string) != schema for each in changed):
            return False
    return False


def _values(name: str, data_type: DataType, depth: int = 0) -> tuple[str, ...] | None:
    """Returns the SQL of the values that determine a column; empty if its type has no exact hash.

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
