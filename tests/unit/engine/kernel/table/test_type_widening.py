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
    common_type,
    is_widening,
    readable_by_spark,
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
def test_simple_types_widen_as_the_specification_lists(old: str, new: str) -> None:
    assert is_widening(PrimitiveType(old), PrimitiveType(new)) == ((old, new) in WIDER)


def decimals() -> st.SearchStrategy[DecimalType]:
    return st.integers(1, 38).flatmap(lambda precision: st.builds(DecimalType, st.just(precision), st.integers(0, 38)))


@given(decimals(), decimals())
def test_a_wider_decimal_loses_digits_on_neither_side_of_the_point(old: DecimalType, new: DecimalType) -> None:
    keeps_all = new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    assert is_widening(old, new) == (keeps_all and old != new)


@given(st.sampled_from(INTEGERS), decimals())
def test_a_decimal_widened_from_an_integer_holds_every_value_of_the_integer_type(old: str, new: DecimalType) -> None:
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
def test_a_change_is_recorded_after_earlier_changes(old: DataType, new: DataType, path: str) -> None:
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
def test_a_change_that_is_no_widening_is_not_recorded(old: DataType, new: DataType) -> None:
    assert widened(StructField("c", old), new) is None


def test_schemas_of_rows_contain_no_list_of_type_changes() -> None:
    changed = widened(StructField("x", PrimitiveType("integer"), metadata={"comment": "c"}), PrimitiveType("long"))
    assert changed is not None
    found = without_changes(StructType((changed, StructField("s", StructType((changed,))))))
    plain = StructField("x", PrimitiveType("long"), metadata={"comment": "c"})
    assert found == StructType((plain, StructField("s", StructType((plain,)))))


def test_a_decimal_with_a_space_in_its_parameters_is_parsed() -> None:
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


WHOLE = {"byte": 127, "short": 32_767, "integer": 2**31 - 1, "long": 2**63 - 1}


@given(st.sampled_from(INTEGERS), decimals())
def test_a_decimal_widened_from_an_integer_is_read_as_a_decimal_that_spark_accepts_or_refused(
    old: str, new: DecimalType
) -> None:
    change = TypeChange(PrimitiveType(old), new).to_json()
    schema = StructType((StructField("c", new, metadata={TYPE_CHANGES: [change]}),))
    wanted = max(new.precision, new.scale + (20 if old == "long" else 10))
    if new.scale <= new.precision and len(str(WHOLE[old])) <= new.precision - new.scale and wanted <= 38:
        check_known(schema, "t")
        (read,) = readable_by_spark(schema)
        assert read.type == DecimalType(wanted, new.scale)
    else:
        with pytest.raises(UnsupportedFeatureError, match="changed from"):
            check_known(schema, "t")


def test_nested_decimals_are_read_with_space_for_their_earlier_type() -> None:
    changes = [
        TypeChange(PrimitiveType("byte"), DecimalType(4, 1), "key"),
        TypeChange(PrimitiveType("byte"), PrimitiveType("short"), "value.element"),
        TypeChange(PrimitiveType("short"), DecimalType(5, 0), "value.element"),
        TypeChange(DecimalType(5, 0), DecimalType(7, 2), "value.element"),
    ]
    narrow = MapType(DecimalType(4, 1), ArrayType(DecimalType(7, 2)))
    field = StructField("m", narrow, metadata={TYPE_CHANGES: [change.to_json() for change in changes]})
    schema = StructType((StructField("s", StructType((field,))),))
    check_known(schema, "t")
    (outer,) = readable_by_spark(schema)
    assert isinstance(outer.type, StructType)
    assert outer.type.require("m").type == MapType(DecimalType(11, 1), ArrayType(DecimalType(12, 2)))


def test_a_type_change_with_a_path_that_does_not_exist_is_ignored() -> None:
    change = TypeChange(PrimitiveType("byte"), DecimalType(4, 1), "element").to_json()
    schema = StructType((StructField("c", DecimalType(4, 1), metadata={TYPE_CHANGES: [change]}),))
    assert readable_by_spark(schema) == schema


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (DecimalType(12, 2), DecimalType(13, 2), DecimalType(13, 2)),
        (DecimalType(12, 2), DecimalType(13, 4), DecimalType(14, 4)),
        (DecimalType(38, 2), DecimalType(38, 4), None),
        (PrimitiveType("integer"), PrimitiveType("long"), PrimitiveType("long")),
        (PrimitiveType("long"), DecimalType(12, 2), DecimalType(22, 2)),
        (PrimitiveType("integer"), PrimitiveType("integer"), PrimitiveType("integer")),
        (PrimitiveType("float"), PrimitiveType("long"), None),
        (PrimitiveType("string"), PrimitiveType("long"), None),
    ],
)
def test_the_common_type_holds_the_values_of_both(first: DataType, second: DataType, both: DataType | None) -> None:
    assert common_type(first, second) == common_type(second, first) == both
