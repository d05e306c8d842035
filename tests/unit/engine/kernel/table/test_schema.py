"""The JSON of schemas, parsed and serialized."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    nullable,
    primitive_types,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
PRIMITIVES: st.SearchStrategy[DataType] = st.one_of(
    st.sampled_from([PrimitiveType(n) for n in ("string", "long", "timestamp_ntz", "binary", "void", "double")]),
    st.builds(DecimalType, st.integers(1, 38), st.integers(0, 18)),
)
METADATA = st.dictionaries(NAMES, st.one_of(st.text(max_size=5), st.integers(), st.booleans()), max_size=2)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    fields = st.builds(StructField, NAMES, inner, st.booleans(), METADATA)
    return st.lists(fields, max_size=4).map(lambda found: StructType(tuple(found)))


TYPES = st.recursive(
    PRIMITIVES,
    lambda inner: st.one_of(
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, inner, inner, st.booleans()),
        structs(inner),
    ),
    max_leaves=8,
)


@given(structs(TYPES))
def test_a_serialized_schema_is_parsed_back(schema: StructType) -> None:
    assert StructType.from_json(schema.to_json()) == schema


def test_the_json_equals_that_of_spark() -> None:
    text = (
        '{"type":"struct","fields":[{"name":"a","type":"decimal(10,2)","nullable":false,"metadata":{"comment":"x"}},'
        '{"name":"b","type":{"type":"array","elementType":"integer","containsNull":true},"nullable":true,"metadata":{}}'
        "]}"
    )
    schema = StructType.from_json(text)
    assert schema.fields[0].type == DecimalType(10, 2)
    assert schema.fields[0].comment == "x"
    assert schema.to_json() == text


def test_a_decimal_without_parameters_has_ten_digits() -> None:
    text = json.dumps({"type": "struct", "fields": [_field("a", "decimal")]})
    assert StructType.from_json(text).fields[0].type == DecimalType(10, 0)


@pytest.mark.parametrize("text", ["", "{", "[]", '"long"', '{"type":"struct"}', '{"type":"tree","fields":[]}', "null"])
def test_an_invalid_schema_is_a_corrupt_log(text: str) -> None:
    with pytest.raises(CorruptLogError):
        StructType.from_json(text)


def test_a_user_defined_type_is_refused() -> None:
    udt = {"type": "udt", "class": "org.example.Point", "sqlType": "binary"}
    with pytest.raises(UnsupportedFeatureError, match="user-defined"):
        StructType.from_json(json.dumps({"type": "struct", "fields": [_field("a", udt)]}))


def test_columns_are_found_in_any_case() -> None:
    schema = StructType((StructField("Größe", PrimitiveType("long")),))
    assert schema.field("gRÖSSE") is None
    assert schema.field("GRÖßE") is schema.fields[0]
    assert "größe" in schema


def test_a_missing_column_is_named_with_the_existing_columns() -> None:
    schema = StructType((StructField("a", PrimitiveType("long")), StructField("b", PrimitiveType("long"))))
    with pytest.raises(ColumnNotFoundError, match="`c` does not exist; columns: a, b"):
        schema.require("c", "shop.orders")


def test_fields_are_added_replaced_dropped_and_selected() -> None:
    a, b, c = (StructField(name, PrimitiveType("long")) for name in "abc")
    wide = StructField("A", PrimitiveType("string"))
    assert StructType((a,)).add(b, c).names == ("a", "b", "c")
    assert StructType((a, b)).replace("a", wide).fields == (wide, b)
    assert StructType((a, b, c)).drop("B").names == ("a", "c")
    assert StructType((a, b, c)).select("C", "a").names == ("c", "a")


def test_metadata_entries_are_set_and_removed() -> None:
    field = StructField("a", PrimitiveType("long"), metadata={"comment": "old", "x": 1})
    assert field.with_metadata(comment=None, y=2).metadata == {"x": 1, "y": 2}


def test_types_are_named_as_in_spark_sql() -> None:
    inner = StructType((StructField("a b", PrimitiveType("long")), StructField("c", PrimitiveType("byte"))))
    assert MapType(PrimitiveType("integer"), ArrayType(inner)).sql_name == (
        "map<int,array<struct<`a b`:bigint,c:tinyint>>>"
    )


def test_nested_fields_and_types_are_all_visited() -> None:
    inner = StructType((StructField("x", PrimitiveType("timestamp_ntz")),))
    schema = StructType((StructField("m", MapType(PrimitiveType("string"), ArrayType(inner))),))
    assert [field.name for field in all_fields(schema)] == ["m", "x"]
    assert {kind.name for kind in primitive_types(schema)} == {"string", "timestamp_ntz"}


def test_nullable_applies_within_arrays_maps_and_structs() -> None:
    strict = StructType((StructField("a", PrimitiveType("long"), False),))
    loose = StructType((StructField("a", PrimitiveType("long"), True),))
    assert nullable(ArrayType(MapType(strict, strict, False), False)) == ArrayType(MapType(loose, loose))


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}
