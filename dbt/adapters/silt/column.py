"""Columns of relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbt.adapters.spark.column import SparkColumn

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.base.column import Column
    from pyspark.sql import types

    from dbt.adapters.silt.engine.sql import portable_types
else:
    portable_types = lazy_module("dbt.adapters.silt.engine.sql.portable_types")
    types = lazy_module("pyspark.sql.types")

_LARGEST_BIGINT = 2**63 - 1


@dataclass
class SiltColumn(SparkColumn):
    """A column, with its type as Spark SQL writes it.

    Attributes:
        fields: the fields of the structs in the column, each with its dotted path as its name.
        path: the names by which ALTER TABLE finds a field, from the column inwards; empty for a column.
        declared_type: the type with the lengths of each `char` and `varchar` in it, which elsewhere are strings.
    """

    comment: str | None = None
    fields: tuple[SiltColumn, ...] = ()
    path: tuple[str, ...] = ()
    declared_type: str | None = None

    @classmethod
    def translate_type(cls, dtype: str) -> str:
        """Returns Spark's name of a type of another database, and any other type unchanged."""
        return portable_types.spark_type(dtype)

    @classmethod
    def of_schema(cls, schema: types.StructType) -> list[SiltColumn]:
        """Returns the columns of a Spark schema, in order."""
        return [
            cls(
                column=each.name,
                dtype=each.dataType.simpleString(),
                column_index=index,
                comment=each.metadata.get("comment"),
                fields=tuple(_fields(each.dataType, (each.name,))),
                declared_type=each.metadata.get(CHAR_VARCHAR_KEY, each.dataType.simpleString()),
            )
            for index, each in enumerate(schema.fields)
        ]

    @property
    def quoted(self) -> str:
        return ".".join(map(quote, self.path or (self.column,)))

    @property
    def top_level(self) -> str:
        """The name of the column, or of the column that a field is in."""
        return self.path[0] if self.path else self.name

    def commented(self, comments: Mapping[tuple[str, ...], str]) -> SiltColumn:
        """Returns the column with the comments of a view's columns and of the fields in them, by lower-case path."""
        own = comments.get(tuple(map(str.lower, self.path or (self.column,))), self.comment)
        return replace(self, comment=own, fields=tuple(each.commented(comments) for each in self.fields))

    @classmethod
    def string_type(cls, size: int) -> str:  # noqa: ARG003 - dbt's signature
        return "string"

    def string_size(self) -> int:
        return _LARGEST_BIGINT

    def is_string(self) -> bool:
        return self.dtype.lower().split("(")[0].split(" ")[0] in ("string", "varchar", "char", "text")

    def is_integer(self) -> bool:
        return self.dtype.lower() in ("tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long")

    def is_float(self) -> bool:
        return self.dtype.lower() in ("float", "double", "real")

    def is_numeric(self) -> bool:
        return self.dtype.lower().split("(")[0] in ("decimal", "numeric", "dec")

    def can_expand_to(self, other_column: Column) -> bool:  # noqa: ARG002 - dbt's signature
        """Never: a string has no size, so there is nothing to expand."""
        return False


def _fields(data_type: types.DataType, path: tuple[str, ...]) -> Iterator[SiltColumn]:
    """Yields each field of the structs in a type, outer fields first."""
    if isinstance(data_type, types.StructType):
        for each in data_type.fields:
            inner, comment = (*path, each.name), each.metadata.get("comment")
            yield SiltColumn(".".join(inner), each.dataType.simpleString(), comment=comment, path=inner)
            yield from _fields(each.dataType, inner)
    elif isinstance(data_type, types.ArrayType):
        yield from _fields(data_type.elementType, (*path, "element"))
    elif isinstance(data_type, types.MapType):
        yield from _fields(data_type.keyType, (*path, "key"))
        yield from _fields(data_type.valueType, (*path, "value"))
