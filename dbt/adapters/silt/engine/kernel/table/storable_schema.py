"""Refuses schemas that no table can have: the check of every CREATE, ALTER and schema evolution."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, TypeMismatchError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.engine.kernel.printable import is_visible, line
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.features import PRIMITIVE_TYPES
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    primitive_types,
)

NO_COLUMNS: Final = StructType()

_VOID: Final = re.compile(r"(?<![^<,:])void(?![^>,])")
"""Matches the type `void` in the text of a type, but not a member named `void`."""

_RESERVED_PREFIX = "__silt_"
_SPARKS_POSITION: Final = "_tmp_metadata_row_index"
"""Spark's reader of Parquet files fills a column of this name with the positions of the rows."""


def check_storable(schema: StructType, table: str | None = None, old: StructType = NO_COLUMNS) -> None:
    """Raises an error unless a table can have this schema.

    Args:
        old: the table's present schema, whose columns may have types that only another writer allows.

    Raises:
        InvalidNameError: if two columns, or two members of a struct, have names that differ in case only; or a new name
            is empty, has an invisible character, or is the name by which Spark reads the positions of rows.
        TypeMismatchError: if a column has no type, or a type that the format does not hold.
    """
    known = {name for struct in _structs(old) for name in struct.names}
    repeated = repeated_names(schema)
    if repeated:
        _refuse_repeated(repeated, table)
    for name in schema.names:
        if name.lower() == _SPARKS_POSITION and name not in old.names:
            raise _reserved(name, table)
    for struct in _structs(schema):
        _check_new_names([name for name in struct.names if name not in known], table)
    for member in schema:
        before = old.field(member.name)
        if before is not None and before.type == member.type:
            continue
        for primitive in primitive_types(member.type):
            _check_primitive(member, primitive, table)


def _refuse_repeated(repeated: Sequence[str], table: str | None) -> NoReturn:
    same = [name for name, count in Counter(repeated).items() if count > 1]
    if same:
        raise InvalidNameError(
            f"the query has more than one column {listed(same)}",
            table=table,
            remedy="Name one of them otherwise (`b.id as other_id`), or leave it out (`b.* except (id)`)",
        )
    raise InvalidNameError(f"the columns {listed(repeated)} differ only in upper and lower case", table=table)


def repeated_names(schema: StructType) -> tuple[str, ...]:
    """Returns the columns, or the members of a struct, whose names differ in case only, or not at all."""
    for struct in _structs(schema):
        seen = Counter(name.lower() for name in struct.names)
        if len(seen) < len(struct.names):
            return tuple(name for name in struct.names if seen[name.lower()] > 1)
    return ()


def check_voids(schema: StructType, table: str) -> None:
    """Raises an error unless files can leave out all columns of type void, as the specification requires.

    Raises:
        UnsupportedStatementError: if such a column is inside another column, or every column is void.
    """
    for member in schema:
        if not is_void(member.type) and any(map(is_void, primitive_types(member.type))):
            raise UnsupportedStatementError(
                f"the column `{member.name}` of type {member.type.sql_name} contains a part without a type: no rows "
                "can be written",
                remedy="Give the part a type first, with alter table ... alter column ... type",
                table=table,
            )
    if all(is_void(member.type) for member in schema):
        raise UnsupportedStatementError(
            "no column of the table has a type: no rows can be written",
            remedy="Give a column a type first, with alter table ... alter column ... type",
            table=table,
        )


def is_void(data_type: DataType) -> bool:
    """Returns whether null is the type's only value; data files leave such columns out."""
    return data_type == PrimitiveType("void")


def _check_new_names(names: Iterable[str], table: str | None) -> None:
    for name in names:
        if not name:
            raise InvalidNameError("a column has an empty name", table=table, remedy="Give it a name, with `as`")
        if not is_visible(name):
            raise InvalidNameError(
                f"the column `{line(name)}` has an invisible character: its name looks like another name",
                table=table,
            )


def _structs(data_type: DataType) -> Iterator[StructType]:
    """Yields every struct in the type, including the type itself."""
    if isinstance(data_type, StructType):
        yield data_type
        for member in data_type:
            yield from _structs(member.type)
    elif isinstance(data_type, ArrayType):
        yield from _structs(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from _structs(data_type.key_type)
        yield from _structs(data_type.value_type)


def _check_primitive(member: StructField, primitive: PrimitiveType | DecimalType, table: str | None) -> None:
    if primitive.name == "void":
        raise _untyped(member, table)
    if isinstance(primitive, PrimitiveType) and collations.without(primitive.name) not in PRIMITIVE_TYPES:
        raise TypeMismatchError(
            f"the column `{member.name}` has the type {primitive.name}, which a table cannot store",
            remedy="Cast it in the query, or declare it, as a type that tables can store, such as `string`",
            table=table,
        )


def _untyped(member: StructField, table: str | None) -> TypeMismatchError:
    """Returns the error for a column that has the type void, or a part of that type."""
    if is_void(member.type):
        what, value = f"the column `{member.name}` has no type: it is a bare NULL", "null"
    else:
        empty = {ArrayType: "array()", MapType: "map()"}.get(type(member.type), "array() or map()")
        part = f"an empty {empty} or a bare NULL"
        what, value = f"the column `{member.name}` is {member.type.sql_name}: a part of it has no type, {part}", "..."
    typed = _VOID.sub("string", member.type.sql_name)
    return TypeMismatchError(
        f"{what} in the query", remedy=f"Give it a type in the query, such as cast({value} as {typed})", table=table
    )


def check_names(schema: StructType, table: str, what: str = "column") -> None:
    """Checks that no column has a name that the engine reserves.

    Raises:
        InvalidNameError: if a column has such a name.
    """
    for name in schema.names:
        if name.lower().startswith(_RESERVED_PREFIX):
            raise InvalidNameError(f"the {what} `{name}` has a name that begins with {_RESERVED_PREFIX}", table=table)


def check_readable(stored: StructType, table: str) -> None:
    """Checks that Spark reads the values of all columns of a table's data files.

    Args:
        stored: the columns by their names in the files.

    Raises:
        InvalidNameError: if a column has the name by which Spark reads the positions of rows instead of values.
    """
    for name in stored.names:
        if name.lower() == _SPARKS_POSITION:
            raise _reserved(name, table, "Read the table with `silt.read`, and write its rows under another name")


def _reserved(name: str, table: str | None, remedy: str = InvalidNameError.remedy) -> InvalidNameError:
    return InvalidNameError(
        f"the column `{name}` has a name that Spark reserves: it would read positions of rows instead of the values",
        table=table,
        remedy=remedy,
    )
