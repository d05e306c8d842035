"""A table's schema as frozen values, read from and written as the Spark StructType JSON of `metaData.schemaString`.

Source: the Delta specification, section "Schema Serialization Format". Column names are compared without regard to
case, as Spark and the specification do.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.identifiers import quote_if_needed
from dbt.adapters.silt.engine.kernel.table import collations

PHYSICAL_NAME = "delta.columnMapping.physicalName"
CHAR_VARCHAR_KEY = "__CHAR_VARCHAR_TYPE_STRING"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
GENERATION_EXPRESSION = "delta.generationExpression"
_IDENTITY_STEP = "delta.identity.step"

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

_DECIMAL = re.compile(r"decimal(?:\(\s*([0-9]{1,2})\s*(?:,\s*(-?[0-9]{1,2})\s*)?\))?")
# Spark 2 wrote the type `void` this way.
_EARLIER_NAMES = {"null": "void"}
_SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


@dataclass(frozen=True)
class PrimitiveType:
    """A type without parameters, by the specification's name: `string`, `long`, `timestamp_ntz`, `void` ...

    A string with a collation has a name of its own: see `collations`.
    """

    name: str

    @property
    def sql_name(self) -> str:
        """The type in Spark SQL."""
        return _SQL_NAMES.get(self.name, self.name)


@dataclass(frozen=True)
class DecimalType:
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    @property
    def name(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    @property
    def sql_name(self) -> str:
        return self.name


@dataclass(frozen=True)
class ArrayType:
    """A list of elements of the same type."""

    element_type: DataType
    contains_null: bool = True

    @property
    def sql_name(self) -> str:
        return f"array<{self.element_type.sql_name}>"


@dataclass(frozen=True)
class MapType:
    """A mapping from keys of a type to values of a type."""

    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True

    @property
    def sql_name(self) -> str:
        return f"map<{self.key_type.sql_name},{self.value_type.sql_name}>"


@dataclass(frozen=True)
class StructField:
    """A column, or a member of a struct. `metadata` holds its comment, default and so on as raw JSON."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def comment(self) -> str | None:
        return self.metadata.get("comment")

    @property
    def sql_type(self) -> str:
        """The declared type in Spark SQL, which may be a `char` or a `varchar`."""
        return str(self.metadata.get(CHAR_VARCHAR_KEY, self.type.sql_name))

    @property
    def default(self) -> str:
        """The SQL of the column's default (specification: "Default Columns")."""
        return str(self.metadata.get(CURRENT_DEFAULT, "null"))

    @property
    def generation_expression(self) -> str | None:
        """The SQL of the generation expression (specification: "Generated Columns"), or None."""
        return self.metadata.get(GENERATION_EXPRESSION)

    @property
    def is_computed(self) -> bool:
        """Whether the table computes the column's values: a generated column or an identity column."""
        return GENERATION_EXPRESSION in self.metadata or _IDENTITY_STEP in self.metadata

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values."""
        return str(self.metadata.get(PHYSICAL_NAME, self.name))

    def with_metadata(self, **changes: Any) -> StructField:
        """Returns the field with these metadata entries set; None removes an entry."""
        merged = {**self.metadata, **changes}
        return replace(self, metadata={key: value for key, value in merged.items() if value is not None})


@dataclass(frozen=True)
class StructType:
    """Fields in order; also the schema of a table."""

    fields: tuple[StructField, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> StructType:
        """Reads a `schemaString`.

        Raises:
            CorruptLogError: if the text is not the JSON of a struct.
            UnsupportedFeatureError: if it names a user-defined type.
        """
        return _struct_from_text(text)

    def to_json(self) -> str:
        return json.dumps(_to_json(self), ensure_ascii=False, separators=(",", ":"))

    @property
    def sql_name(self) -> str:
        members = ",".join(f"{quote_if_needed(member.name)}:{member.type.sql_name}" for member in self.fields)
        return f"struct<{members}>"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.fields)

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.field(name) is not None

    def field(self, name: str) -> StructField | None:
        """Returns the field of that name, in any case, or None."""
        return self._by_name.get(name.lower())

    def require(self, name: str, table: str | None = None) -> StructField:
        """Returns the field of that name, in any case.

        Raises:
            ColumnNotFoundError: if the field does not exist.
        """
        found = self.field(name)
        if found is None:
            raise ColumnNotFoundError(
                f"the column `{name}` does not exist; columns: {', '.join(self.names)}", table=table
            )
        return found

    def add(self, *fields: StructField) -> StructType:
        """Returns the struct with these fields at its end."""
        return StructType((*self.fields, *fields))

    def replace(self, name: str, new: StructField) -> StructType:
        """Returns the struct with `new` instead of the field of that name."""
        old = self.require(name)
        return StructType(tuple(new if member is old else member for member in self.fields))

    def drop(self, *names: str) -> StructType:
        """Returns the struct without the fields of these names, in any case."""
        gone = {name.lower() for name in names}
        return StructType(tuple(member for member in self.fields if member.name.lower() not in gone))

    def select(self, *names: str) -> StructType:
        """Returns the fields of these names, in the given order."""
        return StructType(tuple(self.require(name) for name in names))

    @functools.cached_property
    def _by_name(self) -> Mapping[str, StructField]:
        return {member.name.lower(): member for member in reversed(self.fields)}


DataType: TypeAlias = PrimitiveType | DecimalType | ArrayType | MapType | StructType
T = TypeVar("T", bound=DataType)


def all_fields(data_type: DataType) -> Iterator[StructField]:
    """Yields every field inside the type, also within arrays and maps, outer fields first."""
    if isinstance(data_type, StructType):
        for member in data_type.fields:
            yield member
            yield from all_fields(member.type)
    elif isinstance(data_type, ArrayType):
        yield from all_fields(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from all_fields(data_type.key_type)
        yield from all_fields(data_type.value_type)


def map_fields(data_type: T, change: Callable[[StructField], StructField]) -> T:
    """Returns the type with every field in it changed, outer fields before the fields within them, in order."""
    return cast(T, _mapped(data_type, change))


def map_primitives(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """Returns the type with every primitive type in it changed."""
    match data_type:
        case StructType():
            return StructType(tuple(replace(each, type=map_primitives(each.type, change)) for each in data_type))
        case ArrayType():
            return replace(data_type, element_type=map_primitives(data_type.element_type, change))
        case MapType():
            key, value = (map_primitives(each, change) for each in (data_type.key_type, data_type.value_type))
            return replace(data_type, key_type=key, value_type=value)
    return change(data_type)


def without_collations(data_type: DataType) -> DataType:
    """Returns the type as the log and the data files hold its values, with `string` for each collated string."""

    def plain(each: DataType) -> DataType:
        return PrimitiveType(collations.without(each.name)) if isinstance(each, PrimitiveType) else each

    return map_primitives(data_type, plain)


def nullable(data_type: DataType) -> DataType:
    """Returns the type with null allowed at every level."""
    if isinstance(data_type, StructType):
        return nullable_schema(data_type)
    if isinstance(data_type, ArrayType):
        return ArrayType(nullable(data_type.element_type), True)
    if isinstance(data_type, MapType):
        return MapType(nullable(data_type.key_type), nullable(data_type.value_type), True)
    return data_type


def nullable_schema(schema: StructType) -> StructType:
    """Returns the schema with null allowed in every column, at every level."""
    return StructType(tuple(StructField(f.name, nullable(f.type), True, f.metadata) for f in schema))


def primitive_types(data_type: DataType) -> Iterator[PrimitiveType | DecimalType]:
    """Yields every primitive type that occurs in the type."""
    if isinstance(data_type, StructType):
        for member in data_type.fields:
            yield from primitive_types(member.type)
    elif isinstance(data_type, ArrayType):
        yield from primitive_types(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from primitive_types(data_type.key_type)
        yield from primitive_types(data_type.value_type)
    else:
        yield data_type


def data_type_from_json(body: Any) -> DataType:
    """Reads a type of a schema's JSON: a name, or the object of a nested type.

    Raises:
        CorruptLogError: if the JSON is not a type.
        UnsupportedFeatureError: if the type is user-defined.
    """
    try:
        return _from_json(body, "", {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(f"a type in the table's schema cannot be read ({error!r})") from error


def data_type_to_json(data_type: DataType) -> Any:
    """Returns the JSON of a type in a schema."""
    return _to_json(data_type)


@functools.lru_cache(maxsize=512)
def _struct_from_text(text: str) -> StructType:
    try:
        parsed = _from_json(foreign_json.loads(text), "", {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptLogError(f"the table's schema cannot be read ({error!r})") from error
    if not isinstance(parsed, StructType):
        raise CorruptLogError("the table's schema is not a struct")
    return parsed


def _mapped(data_type: DataType, change: Callable[[StructField], StructField]) -> DataType:
    if isinstance(data_type, StructType):
        members = []
        for member in data_type.fields:
            changed = change(member)
            members.append(replace(changed, type=_mapped(changed.type, change)))
        return StructType(tuple(members))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element_type=_mapped(data_type.element_type, change))
    if isinstance(data_type, MapType):
        key_type, value_type = _mapped(data_type.key_type, change), _mapped(data_type.value_type, change)
        return replace(data_type, key_type=key_type, value_type=value_type)
    return data_type


def _from_json(body: Any, path: str, collated: Mapping[str, str]) -> DataType:
    """Reads a type; `collated` has the types of strings by their paths in the field, `path` is this type's."""
    if isinstance(body, str):
        return _primitive(collated.get(path, body) if body == collations.STRING else body)
    kind = body["type"]
    if kind == "struct":
        return StructType(tuple(_field_from_json(member) for member in body["fields"]))
    if kind == "array":
        return ArrayType(_from_json(body["elementType"], f"{path}.element", collated), bool(body["containsNull"]))
    if kind == "map":
        key = _from_json(body["keyType"], f"{path}.key", collated)
        return MapType(key, _from_json(body["valueType"], f"{path}.value", collated), bool(body["valueContainsNull"]))
    if kind == "udt":
        raise UnsupportedFeatureError("the table has a column of a user-defined type")
    raise ValueError(f"unknown type {kind!r}")


def _field_from_json(body: Any) -> StructField:
    name, metadata = body["name"], body.get("metadata") or {}
    if not isinstance(name, str) or not isinstance(metadata, dict):
        raise TypeError(f"the column {str(name)[:80]} has no readable name or metadata")
    collated = collations.given(metadata)
    kept = {key: value for key, value in metadata.items() if key != collations.KEY}
    member = StructField(name, _from_json(body["type"], name, collated), bool(body["nullable"]), kept)
    if len(collated) > len(_field_to_json(member)["metadata"].get(collations.KEY, ())):
        raise ValueError(f"the column {name[:80]} has no strings at {', '.join(collated)}")
    return member


def _primitive(name: str) -> PrimitiveType | DecimalType:
    match = _DECIMAL.fullmatch(name)
    if match is None:
        return PrimitiveType(_EARLIER_NAMES.get(name, name))
    precision, scale = match.groups()
    return DecimalType(int(precision or 10), int(scale or 0))


def _to_json(data_type: DataType, path: str = "", collated: dict[str, str] | None = None) -> Any:
    """Returns the JSON of a type, and adds the collations of its strings to `collated`, by path."""
    if isinstance(data_type, StructType):
        return {"type": "struct", "fields": [_field_to_json(member) for member in data_type.fields]}
    if isinstance(data_type, ArrayType):
        return {
            "type": "array",
            "elementType": _to_json(data_type.element_type, f"{path}.element", collated),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, MapType):
        return {
            "type": "map",
            "keyType": _to_json(data_type.key_type, f"{path}.key", collated),
            "valueType": _to_json(data_type.value_type, f"{path}.value", collated),
            "valueContainsNull": data_type.value_contains_null,
        }
    collation = collations.collation(data_type.name)
    if collation is None or collated is None:
        return data_type.name
    collated[path] = collations.identifier(collation)
    return collations.STRING


def _field_to_json(member: StructField) -> dict[str, Any]:
    collated: dict[str, str] = {}
    body = _to_json(member.type, member.name, collated)
    metadata = {**member.metadata, collations.KEY: collated} if collated else dict(member.metadata)
    return {"name": member.name, "type": body, "nullable": member.nullable, "metadata": metadata}
