"""Columns of relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dbt.adapters.spark.column import SparkColumn

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.base.column import Column
    from pyspark.sql import types
else:
    types = lazy_module("pyspark.sql.types")

_LARGEST_BIGINT = 2**63 - 1
_PRECISION = re.compile(r"\s*(?P<name>timestamp\w*|datetime)\s*\(\s*\d\s*\)(?P<zone>[\w\s]*)", re.IGNORECASE)
"""A time with a number of digits of its seconds, of which Spark always keeps six."""


@dataclass
class SiltColumn(SparkColumn):
    """A column, with its type as Spark SQL writes it.

    Attributes:
        fields: the fields of the structs in the column, each with its dotted path as its name.
        path: the names by which ALTER TABLE finds a field, from the column inwards; empty for a column.
        declared_type: the type with the lengths of each `char` and `varchar` in it, which elsewhere are strings.
    """

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("TEXT", "VARCHAR", "CHARACTER VARYING", "NVARCHAR", "CHAR", "CHARACTER", "NCHAR"), "string"),
        **dict.fromkeys(("BPCHAR", "CLOB", "UUID", "JSON"), "string"),
        **dict.fromkeys(("BYTES", "BYTEA", "BLOB", "VARBINARY"), "binary"),
        "BOOL": "boolean",
        **dict.fromkeys(("INT2", "INT16"), "smallint"),
        **dict.fromkeys(("INT4", "INT32"), "int"),
        **dict.fromkeys(("INT8", "INT64"), "bigint"),
        **dict.fromkeys(("UINTEGER", "UINT32"), "bigint"),
        **dict.fromkeys(("UBIGINT", "UINT64"), "decimal(20,0)"),
        "HUGEINT": "decimal(38,0)",
        "FLOAT4": "float",
        **dict.fromkeys(("FLOAT8", "FLOAT64", "DOUBLE PRECISION"), "double"),
        "NUMBER": "decimal(38,0)",
        **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP_TZ", "TIMESTAMP WITH TIME ZONE"), "timestamp"),
        **dict.fromkeys(("DATETIME", "TIMESTAMP WITHOUT TIME ZONE"), "timestamp_ntz"),
    }
    """Types of other databases that Spark has not: for seeds, sources, and contracts with dbt's `alias_types`."""

    SIZED_LABELS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("CHARACTER VARYING", "NVARCHAR"), "varchar"),
        **dict.fromkeys(("NCHAR", "BPCHAR"), "char"),
        **dict.fromkeys(("VARCHAR", "CHAR", "CHARACTER"), ""),
        "NUMBER": "decimal",
    }
    """The same for types with a size in parentheses; an empty string if Spark requires the size."""

    comment: str | None = None
    fields: tuple[SiltColumn, ...] = ()
    path: tuple[str, ...] = ()
    declared_type: str | None = None

    @classmethod
    def translate_type(cls, dtype: str) -> str:
        """Returns Spark's name of the type, with the size if Spark's type has a size."""
        name, parenthesis, size = dtype.partition("(")
        label = " ".join(name.upper().split())
        zone = _PRECISION.fullmatch(dtype)
        if not parenthesis or zone is not None:
            label = label if zone is None else " ".join(f"{zone['name']} {zone['zone']}".upper().split())
            return cls.TYPE_LABELS.get(label, dtype if zone is None else zone["name"].lower())
        sized = cls.SIZED_LABELS.get(label)
        if sized is None:
            return cls.TYPE_LABELS.get(label, dtype)
        return f"{sized}({size}" if sized else dtype

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

    @classmethod
    def string_type(cls, size: int) -> str:  # noqa: ARG003 - dbt's signature
        return "string"

    def string_size(self) -> int:
        return _LARGEST_BIGINT

    def is_string(self) -> bool:
        return self.dtype.lower().split("(")[0] in ("string", "varchar", "char", "text")

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
