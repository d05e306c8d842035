"""Edits schemas for ALTER TABLE, as functions from one schema to the next.

A column is named by its path: the members of structs by their names, the elements of an array by `element`, the keys
and values of a map by `key` and `value`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt.adapters.silt.engine.commands.spark.types import column_type, text_length
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.type_widening import TYPE_CHANGES
from dbt.adapters.silt.engine.sql.ast import Name, NewColumn, Position


def find(schema: StructType, path: Name, table: str) -> StructField | None:
    """The column of that path; None if its level has none of that name.

    Raises:
        ColumnNotFoundError: there is no such level.
    """
    return _struct_at(schema, path[:-1], table).field(path[-1])


def require(schema: StructType, path: Name, table: str) -> StructField:
    """The column of that path.

    Raises:
        ColumnNotFoundError: there is none.
    """
    found = find(schema, path, table)
    if found is None:
        raise _no_column(path, table)
    return found


def added(schema: StructType, column: NewColumn, table: str) -> StructType:
    """The schema with one more column.

    Raises:
        InvalidStatementError: there is one of that name.
        ColumnNotFoundError: there is no such struct, or no column to put it after.
        StatementSyntaxError: its type is no type.
    """
    if find(schema, column.path, table) is not None:
        raise InvalidStatementError(
            f"there is a column `{spelled(column.path)}` already",
            remedy="Choose another name, or use `if not exists`",
            table=table,
        )
    typed = column_type(column.type, table)
    field = replace(typed, name=column.path[-1], nullable=column.nullable)
    field = field.with_metadata(
        comment=column.comment or None, **{CURRENT_DEFAULT: column.default, GENERATION_EXPRESSION: column.generated}
    )
    within = column.path[:-1]
    return _within(schema, within, lambda struct: _placed(struct.add(field), field.name, column.position, table), table)


def dropped(schema: StructType, path: Name, table: str) -> StructType:
    """The schema without a column.

    Raises:
        ColumnNotFoundError: there is no such column.
        InvalidStatementError: no other column would be left at its level.
    """
    require(schema, path, table)

    def drop(struct: StructType) -> StructType:
        if len(struct) == 1:
            raise InvalidStatementError(
                f"`{spelled(path)}` is the only column of its level",
                remedy="Leave at least one column, or drop what holds it",
                table=table,
            )
        return struct.drop(path[-1])

    return _within(schema, path[:-1], drop, table)


def renamed(schema: StructType, path: Name, new_name: str, table: str) -> StructType:
    """The schema with a column under another name, in its place.

    Raises:
        ColumnNotFoundError: there is no such column.
        InvalidStatementError: another column has that name.
    """
    field = require(schema, path, table)
    other = find(schema, (*path[:-1], new_name), table)
    if other is not None and other is not field:
        raise InvalidStatementError(
            f"`{spelled(path)}` cannot be renamed: there is a column `{new_name}` already",
            remedy="Choose another name",
            table=table,
        )
    return changed(schema, path, lambda old: replace(old, name=new_name), table)


def changed(schema: StructType, path: Name, change: Callable[[StructField], StructField], table: str) -> StructType:
    """The schema with one column changed.

    Raises:
        ColumnNotFoundError: there is no such column.
    """
    field = require(schema, path, table)
    return _within(schema, path[:-1], lambda struct: struct.replace(field.name, change(field)), table)


def moved(schema: StructType, path: Name, position: Position, table: str) -> StructType:
    """The schema with a column at another position of its level.

    Raises:
        ColumnNotFoundError: there is no such column, or none to put it after.
    """
    require(schema, path, table)
    return _within(schema, path[:-1], lambda struct: _placed(struct, path[-1], position, table), table)


def is_same_type(field: StructField, typed: StructField) -> bool:
    """Whether a column of a newly given type is what the column is already."""
    return _without_inner_details(field.type) == _without_inner_details(typed.type) and (
        field.metadata.get(CHAR_VARCHAR_KEY) == typed.metadata.get(CHAR_VARCHAR_KEY)
    )


def has_room_for(field: StructField, typed: StructField) -> bool:
    """Whether a text column's new type has room for every text of the old: `varchar(5)` to `varchar(9)` or `string`."""
    old, new = text_length(field), text_length(typed)
    if field.type != typed.type or old is None:
        return False
    return new is None or (old[0] == new[0] == "varchar" and old[1] <= new[1])


def retyped(field: StructField, typed: StructField) -> StructField:
    """The column with another type, and the length that belongs to it; all files are written by that type."""
    length = typed.metadata.get(CHAR_VARCHAR_KEY)
    return replace(field, type=typed.type).with_metadata(**{CHAR_VARCHAR_KEY: length, TYPE_CHANGES: None})


def spelled(path: Name) -> str:
    """A path as messages show it."""
    return ".".join(path)


def _struct_at(schema: StructType, path: Name, table: str) -> StructType:
    found: list[StructType] = []

    def note(struct: StructType) -> StructType:
        found.append(struct)
        return struct

    _within(schema, path, note, table)
    return found[0]


def _within(schema: StructType, path: Name, edit: Callable[[StructType], StructType], table: str) -> StructType:
    """The schema with the struct at a path edited."""
    edited = _edited(schema, path, path, edit, table)
    assert isinstance(edited, StructType)
    return edited


def _edited(
    data_type: DataType, path: Name, whole: Name, edit: Callable[[StructType], StructType], table: str
) -> DataType:
    if not path:
        if not isinstance(data_type, StructType):
            raise ColumnNotFoundError(f"`{spelled(whole)}` is no struct: it has no columns of its own", table=table)
        return edit(data_type)
    head, rest = path[0], path[1:]
    if isinstance(data_type, StructType):
        member = data_type.field(head)
        if member is None:
            raise _no_column(whole, table)
        return data_type.replace(head, replace(member, type=_edited(member.type, rest, whole, edit, table)))
    step = head.lower()
    if isinstance(data_type, ArrayType) and step == "element":
        return replace(data_type, element_type=_edited(data_type.element_type, rest, whole, edit, table))
    if isinstance(data_type, MapType) and step == "key":
        return replace(data_type, key_type=_edited(data_type.key_type, rest, whole, edit, table))
    if isinstance(data_type, MapType) and step == "value":
        return replace(data_type, value_type=_edited(data_type.value_type, rest, whole, edit, table))
    raise _no_column(whole, table)


def _placed(struct: StructType, name: str, position: Position | None, table: str) -> StructType:
    if position is None:
        return struct
    field = struct.require(name, table)
    others = [member for member in struct if member is not field]
    at = 0
    if position.after is not None:
        before = struct.require(position.after, table)
        if before is field:
            raise InvalidStatementError(f"the column `{name}` cannot be put after itself", table=table)
        at = others.index(before) + 1
    return StructType((*others[:at], field, *others[at:]))


def _without_inner_details(data_type: DataType) -> DataType:
    """The type without comments and nullability inside, which a newly given type does not repeat."""
    if isinstance(data_type, StructType):
        return StructType(tuple(StructField(m.name.lower(), _without_inner_details(m.type)) for m in data_type))
    if isinstance(data_type, ArrayType):
        return ArrayType(_without_inner_details(data_type.element_type))
    if isinstance(data_type, MapType):
        return MapType(_without_inner_details(data_type.key_type), _without_inner_details(data_type.value_type))
    return data_type


def _no_column(path: Name, table: str) -> ColumnNotFoundError:
    return ColumnNotFoundError(f"there is no column `{spelled(path)}`", table=table)
