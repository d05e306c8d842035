"""Type changes of columns: allowed, recorded and read."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.type_widening import (
    TYPE_CHANGES,
    TypeChange,
    check_known,
    is_widening,
    type_changes,
    widened,
    without_changes,
)

INTEGERS = ("byte", "short", "integer", "long")
NAMES = (*INTEGERS, "float", "double", "date", "timestamp", "timestamp_ntz", "string", "boolean", "binary", "void")
WIDER = {
    *itertools.combinations(INTEGERS, 2),
    *((name, "double") for name in INTEGERS[:3]),
    ("float", "double"),
    ("date", "timestamp_ntz"),
}


@pytest.mark.parametrize(("old", "new"), list(itertools.product(NAMES, NAMES)))
def test_simple_types_widen_as_the_specification_lists_it(old: str, new: str) -> None:
    assert is_widening(PrimitiveType(old), PrimitiveType(new)) == ((old, new) in WIDER)


def decimals() -> st.SearchStrategy[DecimalType]:
    return st.integers(1, 38).flatmap(lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, 38)))


@given(decimals(), decimals())
def test_a_wider_decimal_loses_digits_on_neither_side_of_the_point(old: DecimalType, new: DecimalType) -> None:
    keeps_all = new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    assert is_widening(old, new) == (keeps_all and old != new)


@given(st.sampled_from(INTEGERS), decimals())
def test_a_decimal_holds_every_whole_number_of_the_type_it_takes_over(old: str, new: DecimalType) -> None:
    room = {"long": 20}.get(old, 10)
    assert is_widening(PrimitiveType(old), new) == (new.precision - new.scale >= room)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (PrimitiveType("integer"), PrimitiveType("long"), ""),
        (ArrayType(PrimitiveType("float")), ArrayType(PrimitiveType("double")), "element"),
        (
            MapType(PrimitiveType("byte"), ArrayType(DecimalType(6, 2))),
            MapType(PrimitiveType("byte"), ArrayType(DecimalType(10, 4))),
            "value.element",
        ),
        (
            MapType(PrimitiveType("byte"), PrimitiveType("string")),
            MapType(PrimitiveType("short"), PrimitiveType("string")),
            "key",
        ),
    ],
)
def test_a_change_is_recorded_after_those_before_it(old: DataType, new: DataType, path: str) -> None:
    earlier = TypeChange(PrimitiveType("byte"), PrimitiveType("short")).to_json()
    field = widened(StructField("c", old, metadata={TYPE_CHANGES: [earlier], "comment": "x"}), new)
    assert field is not None and field.type == new and field.comment == "x"
    assert len(type_changes(field)) == 2 and type_changes(field)[1].field_path == path
    again = StructType.from_json(StructType((field,)).to_json())
    check_known(again, "t")
    assert again == StructType((field,))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (PrimitiveType("long"), PrimitiveType("integer")),
        (PrimitiveType("long"), PrimitiveType("long")),
        (PrimitiveType("integer"), ArrayType(PrimitiveType("integer"))),
        (StructType(), StructType((StructField("a", PrimitiveType("long")),))),
        (
            MapType(PrimitiveType("byte"), PrimitiveType("long")),
            MapType(PrimitiveType("short"), PrimitiveType("byte")),
        ),
    ],
)
def test_what_is_no_widening_is_not_recorded(old: DataType, new: DataType) -> None:
    assert widened(StructField("c", old), new) is None


def test_readers_of_rows_are_shown_no_list_of_changes() -> None:
    changed = widened(StructField("x", PrimitiveType("integer"), metadata={"comment": "c"}), PrimitiveType("long"))
    assert changed is not None
    found = without_changes(StructType((changed, StructField("s", StructType((changed,))))))
    plain = StructField("x", PrimitiveType("long"), metadata={"comment": "c"})
    assert found == StructType((plain, StructField("s", StructType((plain,)))))


def test_a_decimal_spelled_with_a_blank_is_read() -> None:
    change = {"fromType": "decimal(6, 2)", "toType": "decimal(10, 4)", "fieldPath": "element.value"}
    (read,) = type_changes(StructField("c", DecimalType(10, 4), metadata={TYPE_CHANGES: [change]}))
    assert read == TypeChange(DecimalType(6, 2), DecimalType(10, 4), "element.value")


def test_an_unknown_change_inside_a_struct_is_refused() -> None:
    inner = StructField(
        "x", PrimitiveType("string"), metadata={TYPE_CHANGES: [{"fromType": "long", "toType": "string"}]}
    )
    with pytest.raises(UnsupportedFeatureError, match="`x` was changed from bigint to string"):
        check_known(StructType((StructField("s", ArrayType(StructType((inner,)))),)), "t")


@pytest.mark.parametrize("broken", [[{}], [1], 5, [{"fromType": "integer", "toType": {"type": "what"}}]])
def test_a_broken_list_of_changes_is_a_damaged_log(broken: object) -> None:
    with pytest.raises(CorruptLogError):
        type_changes(StructField("c", PrimitiveType("long"), metadata={TYPE_CHANGES: broken}))
