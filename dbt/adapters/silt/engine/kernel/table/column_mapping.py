"""Column mapping: data files identify columns by physical names and ids, which a rename does not change.

Physical names also key partition values, statistics and clustering columns. In mode `name` the columns of a file are
found by these names, in mode `id` by the ids in its footer. Source: the Delta specification, section "Column Mapping".
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, InternalError, SiltError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHANGE_TYPE,
    PHYSICAL_NAME,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    all_fields,
    map_fields,
)

MODE: Final = "delta.columnMapping.mode"
MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
COLUMN_ID: Final = "delta.columnMapping.id"

PARQUET_FIELD_ID: Final = "parquet.field.id"
"""The metadata key of a Spark column that Spark writes and looks up as `field_id` in a Parquet schema."""

_NONE = "none"
_NESTED_IDS = "delta.columnMapping.nested.ids"
_KEYS = (COLUMN_ID, PHYSICAL_NAME, _NESTED_IDS, PARQUET_FIELD_ID)


def is_mapped(configuration: Mapping[str, str]) -> bool:
    """Returns whether a table with these properties maps its columns."""
    return TableProperties(configuration).column_mapping_mode != _NONE


def stored_schema(metadata: Metadata, with_ids: bool = True) -> StructType:
    """Returns the schema of a table's data files: physical names, and each column's id as its Parquet field id.

    The column `_change_type` of change data files keeps its name.

    Args:
        with_ids: whether to set the ids; without them Spark finds the columns of a file by their names.

    Raises:
        CorruptLogError: if a column of a table that maps its columns has no physical name or id.
    """
    schema = StructType.from_json(metadata.schema_string)
    if not is_mapped(metadata.configuration):
        return schema
    return map_fields(schema, lambda field: _stored(field, with_ids))


def effective(metadata: Metadata) -> Metadata:
    """Returns the metadata without ids and physical names of an earlier mapping if the mode is now `none`."""
    if PHYSICAL_NAME not in metadata.schema_string or is_mapped(metadata.configuration):
        return metadata
    schema = without_mapping(StructType.from_json(metadata.schema_string))
    return replace(metadata, schema_string=schema.to_json())


def mapped(metadata: Metadata, before: Metadata | None, new_id: Callable[[], str], table: str) -> Metadata:
    """Returns a table's next metadata, with an id and a physical name for every column that lacks them.

    If the mapping is enabled for an existing table, its columns keep the names that they have in files.

    Args:
        before: metadata of the previous version; None for a table that is new or replaces another table.
        new_id: returns a universally unique id.

    Raises:
        UnsupportedStatementError: if the mode would change in any way except from `none` to `name`.
    """
    mode = TableProperties(metadata.configuration).column_mapping_mode
    old_mode = mode if before is None else TableProperties(before.configuration).column_mapping_mode
    if (old_mode, mode) not in {(mode, mode), (_NONE, "name")}:
        raise UnsupportedStatementError(
            f"`{MODE}` cannot be changed from {old_mode} to {mode}",
            remedy="Only a change from none to name is possible; a new table can have any mode",
            table=table,
        )
    if mode == _NONE:
        return metadata
    schema = StructType.from_json(metadata.schema_string)
    is_upgrade = old_mode == _NONE
    if is_upgrade:
        schema = map_fields(schema, _unmapped)
    ids = itertools.count(max_column_id(metadata) + 1)

    def with_mapping(field: StructField) -> StructField:
        physical_name = field.metadata.get(PHYSICAL_NAME) or (field.name if is_upgrade else f"col-{new_id()}")
        column_id = field.metadata.get(COLUMN_ID)
        return field.with_metadata(
            **{COLUMN_ID: next(ids) if column_id is None else column_id, PHYSICAL_NAME: physical_name}
        )

    schema = map_fields(schema, with_mapping)
    configuration = {**metadata.configuration, MODE: mode, MAX_COLUMN_ID: str(next(ids) - 1)}
    return replace(metadata, schema_string=schema.to_json(), configuration=configuration)


def succeeding(metadata: Metadata, replaced: Metadata) -> Metadata:
    """Returns the metadata of a table that replaces another table, continues its column ids, and keeps its mapping.

    A column, or a field within it, keeps its id and physical name if its name and its type stay the same, as in
    delta-spark: the files of both tables then have it under one name, so that a change feed shows its deleted values.
    """
    if MAX_COLUMN_ID not in replaced.configuration:
        return metadata
    configuration = {**metadata.configuration, MAX_COLUMN_ID: str(max_column_id(replaced))}
    schema = StructType.from_json(metadata.schema_string)
    if is_mapped(metadata.configuration) and is_mapped(replaced.configuration):
        schema = _continued_struct(StructType.from_json(replaced.schema_string), schema)
    return replace(metadata, schema_string=schema.to_json(), configuration=configuration)


def _continued_struct(old: StructType, new: StructType) -> StructType:
    return StructType(tuple(_continued_field(old, field) for field in new))


def _continued(old: DataType, new: DataType) -> DataType:
    match old, new:
        case StructType(), StructType():
            return _continued_struct(old, new)
        case ArrayType(), ArrayType():
            return replace(new, element_type=_continued(old.element_type, new.element_type))
        case MapType(), MapType():
            key, value = _continued(old.key_type, new.key_type), _continued(old.value_type, new.value_type)
            return replace(new, key_type=key, value_type=value)
    return new


def _continued_field(old: StructType, field: StructField) -> StructField:
    before = old.field(field.name)
    if before is None or not _has_same_values(before.type, field.type):
        return field
    kept = {key: before.metadata.get(key) for key in (COLUMN_ID, PHYSICAL_NAME)}
    return replace(field, type=_continued(before.type, field.type)).with_metadata(**kept)


def _has_same_values(old: DataType, new: DataType) -> bool:
    """Returns whether the types are equal; the fields of structs, which have names of their own, are not compared."""
    match old, new:
        case StructType(), StructType():
            return True
        case ArrayType(), ArrayType():
            return _has_same_values(old.element_type, new.element_type)
        case MapType(), MapType():
            return _has_same_values(old.key_type, new.key_type) and _has_same_values(old.value_type, new.value_type)
    return old == new


def max_column_id(metadata: Metadata) -> int:
    """Returns the greatest id that a column of the table has or had, or 0 if no column has an id."""
    recorded = metadata.configuration.get(MAX_COLUMN_ID, "0")
    if not recorded.isdecimal():
        raise CorruptLogError(f"the table property `{MAX_COLUMN_ID}` is not a number: `{recorded}`")
    fields = all_fields(StructType.from_json(metadata.schema_string))
    return max(int(recorded), *(_column_id(field) or 0 for field in fields), 0)


def without_mapping(schema: StructType) -> StructType:
    """Returns the schema without ids and physical names, as queries see it."""
    return map_fields(schema, _unmapped)


def check_mapping(metadata: Metadata, table: str, kind: type[SiltError] = InternalError) -> None:
    """Checks that every column of a table with column mapping has its own id and physical name.

    Args:
        kind: the error to raise if a column lacks its id or physical name, or two columns share them.
    """
    if not is_mapped(metadata.configuration):
        return
    schema = StructType.from_json(metadata.schema_string)
    ids = list(map(_column_id, all_fields(schema)))
    paths = list(_physical_paths(schema, ()))
    for what, values in (("id", ids), ("physical name", paths)):
        twice = [value for value, times in Counter(values).items() if times > 1]
        if twice or None in values:
            raise kind(f"a column of the table has no {what}, or shares it with another column", table=table)


def _stored(field: StructField, with_ids: bool) -> StructField:
    if field.name == CHANGE_TYPE and PHYSICAL_NAME not in field.metadata:
        return field
    column_id = _column_id(field)
    if PHYSICAL_NAME not in field.metadata or column_id is None:
        raise CorruptLogError(f"the column `{field.name}` of a table with column mapping lacks its physical name or id")
    ids = {PARQUET_FIELD_ID: column_id} if with_ids else {}
    return StructField(field.physical_name, field.type, field.nullable, ids)


def _column_id(field: StructField) -> int | None:
    """Returns the id of a column, or None if it has no id, which the specification requires to be an integer."""
    found = field.metadata.get(COLUMN_ID)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _unmapped(field: StructField) -> StructField:
    if not any(key in field.metadata for key in _KEYS):
        return field
    return field.with_metadata(**dict.fromkeys(_KEYS))


def _physical_paths(data_type: DataType, above: tuple[str, ...]) -> Iterator[tuple[str, ...] | None]:
    match data_type:
        case StructType():
            for field in data_type:
                name = field.metadata.get(PHYSICAL_NAME)
                yield (*above, name) if isinstance(name, str) else None
                yield from _physical_paths(field.type, (*above, str(name)))
        case ArrayType():
            yield from _physical_paths(data_type.element_type, (*above, "element"))
        case MapType():
            yield from _physical_paths(data_type.key_type, (*above, "key"))
            yield from _physical_paths(data_type.value_type, (*above, "value"))
