"""Finds and keeps the declared lengths of strings.

The log has no types `char` and `varchar`. As in Spark, such a column is a `string`, and its metadata holds the declared
type under `CHAR_VARCHAR_KEY`: `char(5)`, `array<varchar(2)>`, `struct<a:char(3),b:int>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    map_fields,
    map_primitives,
    primitive_types,
)

_LENGTH: Final = re.compile(r"(char|varchar)\(\s*([0-9]+)\s*\)")
_TOKEN: Final = re.compile(r"`(?:[^`]|``)*`|[<>,:]|\([^)]*\)|[^<>,:(`]+")
_STRING: Final = PrimitiveType("string")


def length_limit(data_type: DataType) -> tuple[str, int] | None:
    """Returns `char` or `varchar` and the greatest number of characters, or None for any other type."""
    match = _LENGTH.fullmatch(getattr(data_type, "name", ""))
    return None if match is None else (match[1], int(match[2]))


def has_lengths(field: StructField) -> bool:
    """Returns whether the column, or a part of it, is declared as `char` or `varchar`."""
    return any(CHAR_VARCHAR_KEY in each.metadata for each in all_fields(StructType((field,))))


def has_char(field: StructField) -> bool:
    """Returns whether the column, or a part of it, is a `char`, whose values are padded with blanks."""
    return has_lengths(field) and any(_is_char(each) for each in primitive_types(declared_type(field)))


def blanks(field: StructField) -> int:
    """Returns the greatest number of blanks that pad a value of the column, per value of a list in it."""
    if not has_lengths(field):
        return 0
    limits = filter(None, map(length_limit, primitive_types(declared_type(field))))
    return sum(most for kind, most in limits if kind == "char")


def char_length(schema: StructType, path: Sequence[str]) -> int | None:
    """Returns the length of a `char` column, or `char` member of a struct, or None for any other type."""
    found: DataType = schema
    for name in path:
        member = found.field(name) if isinstance(found, StructType) else None
        if member is None:
            return None
        found = declared_type(member)
    kind, most = length_limit(found) or ("", 0)
    return most if kind == "char" else None


def declared_type(field: StructField) -> DataType:
    """Returns the column's type with primitive types such as `char(5)` and `varchar(5)` in place of `string`."""
    if not has_lengths(field):
        return field.type
    text = field.metadata.get(CHAR_VARCHAR_KEY)
    return _declared(field.type, None if text is None else _parsed(str(text)))


def padded_type(field: StructField) -> DataType:
    """Returns the column's type with its `char` types, which readers pad, but `string` for each `varchar`."""
    return _replaced(declared_type(field), lambda each: each if _is_char(each) else _STRING)


def plain_type(data_type: DataType) -> DataType:
    """Returns the type as the log stores it, with `string` for each `char` and `varchar`."""
    return _replaced(data_type, lambda _: _STRING)


def text_form(text: str, field: StructField) -> str:
    """Returns a string as the column stores it: a `char` is padded to its length and has no further trailing blanks."""
    kind, most = length_limit(declared_type(field)) or ("", 0)
    if kind != "char":
        return text
    return text.ljust(most) if len(text) <= most else text[:most] + text[most:].rstrip(" ")


def distributed(schema: StructType) -> StructType:
    """Returns the schema with each length at the innermost column, or member of a struct, that holds it.

    Columns of this form may be renamed, dropped, added and moved; `gathered` restores the form of the log.
    """
    if not any(map(has_lengths, schema)):
        return schema
    return StructType(tuple(_distributed(member, declared_type(member)) for member in schema))


def gathered(schema: StructType) -> StructType:
    """Returns the schema with all lengths in a column, at any depth, in the column's own metadata."""
    return StructType(tuple(as_stored(member) if has_lengths(member) else member for member in schema))


def as_stored(field: StructField) -> StructField:
    """Returns a field as the log stores it, whether its lengths are in its type or in metadata."""
    declared = declared_type(field)
    text = None if declared == (plain := plain_type(declared)) else _without_metadata(declared).sql_name
    bare = map_fields(plain, lambda member: member.with_metadata(**{CHAR_VARCHAR_KEY: None}))
    return replace(field, type=bare).with_metadata(**{CHAR_VARCHAR_KEY: text})


def _distributed(field: StructField, declared: DataType) -> StructField:
    own = _replaced_structs(declared)
    text = None if own == plain_type(own) else _without_metadata(own).sql_name
    return replace(field, type=_inside(declared)).with_metadata(**{CHAR_VARCHAR_KEY: text})


def _inside(declared: DataType) -> DataType:
    """Returns the type as the log stores it, with the lengths of each member of a struct in its own metadata."""
    match declared:
        case StructType():
            return StructType(tuple(_distributed(member, member.type) for member in declared))
        case ArrayType():
            return replace(declared, element_type=_inside(declared.element_type))
        case MapType():
            return replace(declared, key_type=_inside(declared.key_type), value_type=_inside(declared.value_type))
    return plain_type(declared)


def _replaced_structs(declared: DataType) -> DataType:
    """Returns the type without the lengths inside structs."""
    match declared:
        case StructType():
            return plain_type(declared)
        case ArrayType():
            return replace(declared, element_type=_replaced_structs(declared.element_type))
        case MapType():
            key, value = _replaced_structs(declared.key_type), _replaced_structs(declared.value_type)
            return replace(declared, key_type=key, value_type=value)
    return declared


def _without_metadata(data_type: DataType) -> DataType:
    return map_fields(data_type, lambda member: StructField(member.name, member.type))


def _is_char(data_type: DataType) -> bool:
    return (length_limit(data_type) or ("", 0))[0] == "char"


def _replaced(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """Returns the type with each `char` and `varchar` in it changed."""
    return map_primitives(data_type, lambda each: each if length_limit(each) is None else change(each))


def _declared(data_type: DataType, written: DataType | None) -> DataType:
    """Returns the type with the lengths of a declared type; parts that the two do not share get no length."""
    match data_type, written:
        case StructType(), _:
            members = written if isinstance(written, StructType) else StructType()
            return StructType(tuple(_declared_member(each, members.field(each.name)) for each in data_type))
        case ArrayType(), _:
            inner = written.element_type if isinstance(written, ArrayType) else None
            return replace(data_type, element_type=_declared(data_type.element_type, inner))
        case MapType(), _:
            key, value = (written.key_type, written.value_type) if isinstance(written, MapType) else (None, None)
            return replace(
                data_type,
                key_type=_declared(data_type.key_type, key),
                value_type=_declared(data_type.value_type, value),
            )
    if data_type != _STRING or written is None or length_limit(written) is None:
        return data_type
    return written


def _declared_member(member: StructField, written: StructField | None) -> StructField:
    if CHAR_VARCHAR_KEY in member.metadata or written is None:
        return replace(member, type=declared_type(member))
    return replace(member, type=_declared(member.type, written.type))


def _parsed(text: str) -> DataType | None:
    """Parses a type of Spark SQL, or returns None if it cannot.

    Only names and lengths matter: every other type becomes a primitive type of its name.
    """
    tokens = iter([*(token for each in _TOKEN.findall(text) if (token := each.strip())), ""])
    try:
        found, after = _type(tokens)
    except (StopIteration, ValueError):
        return None
    return found if after == "" else None


def _type(tokens: Iterator[str], first: str | None = None) -> tuple[DataType, str]:
    """Returns the type that begins with `first`, or with the next token, and the token after the type."""
    name = (next(tokens) if first is None else first).lower()
    after = next(tokens)
    if after == "<":
        return _nested(name, tokens), next(tokens)
    if after.startswith("("):
        return PrimitiveType(name + "".join(after.split())), next(tokens)
    return PrimitiveType(name), after


def _nested(name: str, tokens: Iterator[str]) -> DataType:
    if name == "struct":
        return _struct(tokens)
    inner, after = _type(tokens)
    if name == "array" and after == ">":
        return ArrayType(inner)
    if name == "map" and after == ",":
        value, after = _type(tokens)
        if after == ">":
            return MapType(inner, value)
    raise ValueError(name)


def _struct(tokens: Iterator[str]) -> StructType:
    members: list[StructField] = []
    name = next(tokens)
    while name != ">":
        if next(tokens) != ":":
            raise ValueError(name)
        inner, after = _type(tokens)
        plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
        members.append(StructField(plain, inner))
        name = next(tokens) if after == "," else after
    return StructType(tuple(members))
