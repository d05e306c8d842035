"""Changes the types of columns, and decides whether this rewrites files.

The type of an element, a key or a value is a part of the type of its column, which is changed and recorded.
"""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.commands.tables import schema_edits
from dbt.adapters.silt.engine.commands.tables.schema_edits import spelled
from dbt.adapters.silt.engine.commands.target import Target
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table import type_widening
from dbt.adapters.silt.engine.kernel.table.identity import identity_of
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.storable_schema import is_void
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type, distributed, has_lengths, length_limit
from dbt.adapters.silt.engine.kernel.table.type_widening import TYPE_CHANGES
from dbt.adapters.silt.engine.sql.ast import ColumnChange, Name


def with_type(schema: StructType, path: Name, text: str, target: Target) -> StructType:
    """Returns the schema with another type for a column, or for an element, a key or a value.

    Raises:
        ColumnNotFoundError: if the column does not exist.
        StatementSyntaxError: if the text is not a type.
        InvalidStatementError: if it is an identity column, which must be a bigint.
    """
    path, typed = schema_edits.with_type(schema, path, column_type(text, target.name), target.name)
    field = schema_edits.require(distributed(schema), path, target.name)
    if schema_edits.is_same_type(field, typed):
        return schema
    if identity_of(field) is not None:
        raise InvalidStatementError(f"the identity column `{spelled(path)}` must remain a bigint", table=target.name)
    wider = _widened(path, field, typed, target)
    return schema_edits.changed(schema, path, lambda old: _retyped(old, typed) if wider is None else wider, target.name)


def needs_rewrite(change: ColumnChange, target: Target) -> bool:
    """Returns whether existing values may need a conversion to the column's new type."""
    if change.type is None:
        return False
    schema, typed = target.snapshot.schema, column_type(change.type, target.name)
    path, typed = schema_edits.with_type(schema, change.path, typed, target.name)
    field = schema_edits.require(distributed(schema), path, target.name)
    keeps_values = schema_edits.is_same_type(field, typed) or _has_room_for(field, typed)
    return not keeps_values and not is_void(field.type) and _widened(path, field, typed, target) is None


def _widened(path: Name, field: StructField, typed: StructField, target: Target) -> StructField | None:
    """Returns the column with its wider type, or None if type widening is disabled or requires a rewrite."""
    if not target.snapshot.properties.enable_type_widening or has_lengths(field) or has_lengths(typed):
        return None
    # The log contains the digits of the float, which denote another double.
    if field.type == PrimitiveType("float") and _is_partition_column(path, target):
        return None
    return type_widening.widened(field, typed.type)


def _is_partition_column(path: Name, target: Target) -> bool:
    return len(path) == 1 and path[0].lower() in {name.lower() for name in target.snapshot.partition_columns}


def _has_room_for(field: StructField, typed: StructField) -> bool:
    """Returns whether a column's new string type holds all old strings: `varchar(5)` to `varchar(9)` or `string`."""
    old, new = length_limit(declared_type(field)), length_limit(declared_type(typed))
    if field.type != typed.type or old is None:
        return False
    return new is None or (old[0] == new[0] == "varchar" and old[1] <= new[1])


def _retyped(field: StructField, typed: StructField) -> StructField:
    """Returns the column with another type and its length, without recorded type changes: all files use the type."""
    length = typed.metadata.get(CHAR_VARCHAR_KEY)
    return replace(field, type=typed.type).with_metadata(**{CHAR_VARCHAR_KEY: length, TYPE_CHANGES: None})
