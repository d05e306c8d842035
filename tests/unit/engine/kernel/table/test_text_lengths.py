"""The lengths of strings are in the metadata of columns, and follow the columns and fields that have them."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    PrimitiveType,
    StructField,
    StructType,
    data_type_from_json,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import (
    declared_type,
    distributed,
    gathered,
    has_char,
    length_limit,
    plain_type,
    text_form,
)


def array(element: object) -> dict[str, object]:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(key: object, value: object) -> dict[str, object]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def struct(**members: object) -> dict[str, object]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in members.items()]
    return {"type": "struct", "fields": fields}


def column(kind: object, text: str | None) -> StructField:
    metadata = {} if text is None else {CHAR_VARCHAR_KEY: text}
    return StructField("x", plain_type(data_type_from_json(kind)), True, metadata)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("char(5)", "char(5)"),
        ("varchar(12)", "varchar( 12 )"),
        (array("char(2)"), "array<char(2)>"),
        (mapping("varchar(2)", array("char(1)")), "map<varchar(2),array<char(1)>>"),
        (struct(a="char(3)", b="decimal(10,2)", c="string"), "struct<a:char(3),b:decimal(10,2),c:string>"),
        (struct(**{"a b": "char(3)", "c`,:<d": "varchar(1)"}), "struct<a b:char(3),`c``,:<d`:varchar(1)>"),
        (array(struct(m=mapping("string", "char(4)"))), "array<struct<m:map<string,char(4)>>>"),
        (struct(), "struct<>"),
    ],
    ids=str,
)
def test_lengths_are_parsed_from_the_text_of_a_type(declared: object, text: str) -> None:
    found = declared_type(column(declared, text))
    assert length_limit(found) == length_limit(data_type_from_json(declared))
    assert found.sql_name == data_type_from_json(declared).sql_name


@pytest.mark.parametrize("text", ["array<char(2)>", "char(", "struct<a", "map<char(2)", "wrong<char(2)>", "", "int"])
def test_a_text_of_another_type_than_the_columns_gives_no_length(text: str) -> None:
    assert declared_type(column("string", text)) == PrimitiveType("string")


def test_a_field_missing_in_the_text_has_no_length() -> None:
    found = declared_type(column(struct(a="string", b="string"), "struct<b:char(2),gone:char(3)>"))
    assert found.sql_name == "struct<a:string,b:char(2)>"


def test_lengths_are_moved_to_the_nested_fields_and_gathered_again() -> None:
    schema = StructType(
        (column(array(struct(a="string", b=array("string"))), "array<struct<a:char(2),b:array<char(3)>>>"),)
    )
    (spread,) = distributed(schema)
    assert CHAR_VARCHAR_KEY not in spread.metadata
    assert gathered(distributed(schema)) == schema
    assert has_char(spread)
    assert declared_type(spread).sql_name == "array<struct<a:char(2),b:array<char(3)>>>"


def test_a_char_is_padded_to_its_length_and_no_further() -> None:
    field = column("string", "char(3)")
    assert [text_form(text, field) for text in ("a", "abc", "ab   ", "abcd ")] == ["a  ", "abc", "ab ", "abcd"]
    assert text_form("a  ", column("string", "varchar(3)")) == "a  "
