"""Schemas that no table can have."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, TypeMismatchError
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable


def test_names_that_differ_only_in_case_are_refused_within_structs_too() -> None:
    twice = StructType((StructField("a", PrimitiveType("long")), StructField("A", PrimitiveType("long"))))
    for schema in (twice, StructType((StructField("s", ArrayType(twice)),))):
        with pytest.raises(InvalidNameError, match="`a`, `A`"):
            check_storable(schema)


def test_an_empty_name_is_refused_unless_another_writer_has_given_it() -> None:
    empty = StructType((StructField("", PrimitiveType("long")),))
    within = StructType((StructField("list", ArrayType(empty)),))
    for schema in (empty, within):
        with pytest.raises(InvalidNameError, match="an empty name"):
            check_storable(schema)
        check_storable(schema, old=schema)


def test_a_type_that_no_table_can_store_is_refused() -> None:
    schema = StructType((StructField("i", ArrayType(PrimitiveType("interval year to month"))),))
    with pytest.raises(TypeMismatchError, match="`i` has the type interval year to month"):
        check_storable(schema)


VOID = PrimitiveType("void")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (VOID, r"`m` has no type: it is a bare NULL in the query\. .*cast\(null as string\)"),
        (ArrayType(VOID), r"`m` is array<void>: .* an empty array\(\) or a bare NULL .* as array<string>\)"),
        (MapType(VOID, VOID), r"`m` is map<void,void>: .* an empty map\(\) or a bare NULL .* as map<string,string>\)"),
        (
            StructType((StructField("void", VOID), StructField("a", ArrayType(VOID)))),
            r"`m` is struct<void:void,a:array<void>>: .* as struct<void:string,a:array<string>>\)",
        ),
    ],
)
def test_a_column_or_nested_field_without_a_type_is_named_with_a_cast_that_gives_it_one(
    kind: DataType, words: str
) -> None:
    with pytest.raises(TypeMismatchError, match=words):
        check_storable(StructType((StructField("id", PrimitiveType("long")), StructField("m", kind))))
