"""Edits schemas for ALTER TABLE: each function takes a schema and returns the changed schema.

A column is named by its path: the members of structs by their names, the elements of an array by `element`, the keys
and values of a map by `key` and `value`. Elements, keys and values are not columns: they have only a type and a
nullability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import (
    as_stored,
    declared_type,
    distributed,
    gathered,
)
from dbt.adapters.silt.engine.sql.ast import ColumnChange, Name, NewColumn, Position


def find(schema: StructType, path: Name, table: str) -> StructField | None:
    """Returns the column, element, key or value at a path, or None if its level has no such name.

    Raises:
        ColumnNotFoundError: if the level does not exist.
    """
    level, step = _type_at(schema, path[:-1], table), path[-1].lower()
    if isinstance(level, StructType):
        return level.field(path[-1])
    if isinstance(level, ArrayType):
        return StructField("element", level.element_type, level.contains_null) if step == "element" else None
    if isinstance(level, MapType):
        parts = {"key": (level.key_type, False), "value": (level.value_type, level.value_contains_null)}
        return StructField(step, *parts[step]) if step in parts else None
    raise _no_struct(path[:-1], table)


def is_column(schema: StructType, path: Name, table: str) -> bool:
    """Returns whether the path is of a column or a struct's member, rather than of an element, a key or a value.

    Raises:
        ColumnNotFoundError: if its level does not exist.
    """
    return isinstance(_type_at(schema, path[:-1], table), StructType)


def require(schema: StructType, path: Name, table: str) -> StructField:
    """Returns the column at a path.

    Raises:
        ColumnNotFoundError: if the column does not exist.
    """
    found = find(schema, path, table)
    if found is None:
        raise _no_column(path, table)
    return found


def check_part(change: ColumnChange, table: str) -> None:
    """Checks that a change is possible for an element, a key or a value.

    Raises:
        InvalidStatementError: if it is not.
    """
    what = {
        "a comment": change.comment is not None,
        "another name": change.new_name is not None,
        "a position": change.position is not None,
        "a default": change.default is not None,
        "nulls": change.path[-1].lower() == "key" and change.nullable is True,
    }
    for refused in (name for name, is_asked in what.items() if is_asked):
        raise InvalidStatementError(
            f"`{spelled(change.path)}` is a part of a column, not a column: it cannot have {refused}",
            remedy=f"Change the column `{spelled(change.path[:-1])}` itself, or only the part's type",
            table=table,
        )


def added(schema: StructType, column: NewColumn, table: str) -> StructType:
    """Returns the schema with an additional column.

    Raises:
        InvalidStatementError: if a column of that name exists.
        ColumnNotFoundError: if the struct, or the column of AFTER, does not exist.
        StatementSyntaxError: if its type is not a type.
    """
    if find(schema, column.path, table) is not None:
        raise InvalidStatementError(
            f"the column `{spelled(column.path)}` already exists",
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
    """Returns the schema without a column.

    Raises:
        ColumnNotFoundError: if the column does not exist.
        InvalidStatementError: if no other column would remain at its level.
    """
    require(schema, path, table)

    def drop(struct: StructType) -> StructType:
        if len(struct) == 1:
            raise InvalidStatementError(
                f"`{spelled(path)}` is the only column of its level",
                remedy="Keep at least one column, or drop the column that contains it",
                table=table,
            )
        return struct.drop(path[-1])

    return _within(schema, path[:-1], drop, table)


def renamed(schema: StructType, path: Name, new_name: str, table: str) -> StructType:
    """Returns the schema with a column renamed, at the same position.

    Raises:
        ColumnNotFoundError: if the column does not exist.
        InvalidStatementError: if another column has the new name.
    """
    field = require(schema, path, table)
    other = find(schema, (*path[:-1], new_name), table)
    if other is not None and other is not field:
        raise InvalidStatementError(
            f"`{spelled(path)}` cannot be renamed: the column `{new_name}` already exists",
            remedy="Choose another name",
            table=table,
        )
    return changed(schema, path, lambda old: replace(old, name=new_name), table)


def changed(schema: StructType, path: Name, change: Callable[[StructField], StructField], table: str) -> StructType:
    """Returns the schema with a single column changed.

    Raises:
        ColumnNotFoundError: if the column does not exist.
    """
    field = require(distributed(schema), path, table)

    def edit(level: DataType) -> DataType:
        return _with_part(level, field.name, change(field))

    return gathered(_as_struct(_edited(distributed(schema), path[:-1], path, edit, table)))


def with_type(schema: StructType, path: Name, typed: StructField, table: str) -> tuple[Name, StructField]:
    """Returns the path of the column whose type changes, and its whole new type as an unnamed field.

    This is the column at `path` or, for an element, a key or a value, the column that contains it.

    Args:
        typed: the type for the path, as `column_type` returns it.

    Raises:
        ColumnNotFoundError: if the column does not exist.
    """
    require(schema, path, table)
    length = len(path)
    while not is_column(schema, path[:length], table):
        length -= 1
    if length == len(path):
        return path, typed
    holder, inside = require(distributed(schema), path[:length], table), path[length:]
    declared = _edited(declared_type(holder), inside, path, lambda _: declared_type(typed), table)
    return path[:length], as_stored(StructField("", declared))


def moved(schema: StructType, path: Name, position: Position, table: str) -> StructType:
    """Returns the schema with a column at another position of its level.

    Raises:
        ColumnNotFoundError: if the column, or the column of AFTER, does not exist.
    """
    require(schema, path, table)
    return _within(schema, path[:-1], lambda struct: _placed(struct, path[-1], position, table), table)


def is_same_type(field: StructField, typed: StructField) -> bool:
    """Returns whether the new type of a column is its current type."""
    return _without_inner_details(declared_type(field)) == _without_inner_details(declared_type(typed))


def spelled(path: Name) -> str:
    """Formats a path for messages."""
    return ".".join(path)


def _type_at(schema: StructType, path: Name, table: str) -> DataType:
    found: list[DataType] = []

    def note(data_type: DataType) -> DataType:
        found.append(data_type)
        return data_type

    _edited(schema, path, path, note, table)
    return found[0]


def _within(schema: StructType, path: Name, edit: Callable[[StructType], StructType], table: str) -> StructType:
    """Returns the schema with the struct at a path edited; columns keep the lengths of their strings."""

    def edit_struct(data_type: DataType) -> DataType:
        if not isinstance(data_type, StructType):
            raise _no_struct(path, table)
        return edit(data_type)

    return gathered(_as_struct(_edited(distributed(schema), path, path, edit_struct, table)))


def _as_struct(data_type: DataType) -> StructType:
    assert isinstance(data_type, StructType)
    return data_type


def _edited(data_type: DataType, path: Name, whole: Name, edit: Callable[[DataType], DataType], table: str) -> DataType:
    """Returns the type with the inner type at a path edited."""
    if not path:
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


def _with_part(level: DataType, name: str, part: StructField) -> DataType:
    """Returns a struct, an array or a map with another member, element, key or value."""
    if isinstance(level, StructType):
        return level.replace(name, part)
    if isinstance(level, ArrayType):
        return ArrayType(part.type, part.nullable)
    assert isinstance(level, MapType)
    if name == "key":
        return replace(level, key_type=part.type)
    return replace(level, value_type=part.type, value_contains_null=part.nullable)


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
    """Returns the type without inner comments and nullability, which a new type in a statement does not repeat."""
    if isinstance(data_type, StructType):
        return StructType(tuple(StructField(m.name.lower(), _without_inner_details(m.type)) for m in data_type))
    if isinstance(data_type, ArrayType):
        return ArrayType(_without_inner_details(data_type.element_type))
    if isinstance(data_type, MapType):
        return MapType(_without_inner_details(data_type.key_type), _without_inner_details(data_type.value_type))
    return data_type


def _no_struct(path: Name, table: str) -> ColumnNotFoundError:
    return ColumnNotFoundError(f"`{spelled(path)}` is not a struct: it has no fields", table=table)


def _no_column(path: Name, table: str) -> ColumnNotFoundError:
    return ColumnNotFoundError(f"the column `{spelled(path)}` does not exist", table=table)
