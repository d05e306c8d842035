"""Column mapping: ids and physical names of new and existing columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, InternalError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.column_mapping import (
    COLUMN_ID,
    MAX_COLUMN_ID,
    MODE,
    PARQUET_FIELD_ID,
    check_mapping,
    effective,
    mapped,
    stored_schema,
    succeeding,
    without_mapping,
)
from dbt.adapters.silt.engine.kernel.table.schema import (
    PHYSICAL_NAME,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
)

NAME = {MODE: "name"}
SIMPLE = st.sampled_from([PrimitiveType("long"), PrimitiveType("string")])


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    members = st.lists(inner, min_size=1, max_size=3)
    return members.map(lambda types: StructType(tuple(StructField(f"c {n}", each) for n, each in enumerate(types))))


TYPES: st.SearchStrategy[DataType] = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(structs(inner), st.builds(ArrayType, inner), st.builds(MapType, inner, inner)),
    max_leaves=8,
)


def ids() -> Callable[[], str]:
    counter = itertools.count()
    return lambda: f"uuid-{next(counter)}"


def metadata(schema: StructType, configuration: Mapping[str, str] = NAME) -> Metadata:
    return Metadata("id", schema.to_json(), configuration=configuration)


def schema_of(described: Metadata) -> StructType:
    return StructType.from_json(described.schema_string)


PLAIN = StructType((StructField("a b", PrimitiveType("long")), StructField("p", PrimitiveType("string"))))


@given(structs(TYPES))
def test_every_field_of_a_new_table_has_its_own_id_and_physical_name(schema: StructType) -> None:
    made = mapped(metadata(schema), None, ids(), "t")
    check_mapping(made, "t")
    fields = list(all_fields(schema_of(made)))
    assert sorted(field.metadata[COLUMN_ID] for field in fields) == list(range(1, len(fields) + 1))
    assert all(field.physical_name.startswith("col-uuid-") for field in fields)
    assert made.configuration == {**NAME, MAX_COLUMN_ID: str(len(fields))}
    assert without_mapping(schema_of(made)) == schema


@given(structs(TYPES))
def test_data_files_have_the_physical_names_and_the_ids(schema: StructType) -> None:
    made = mapped(metadata(schema), None, ids(), "t")
    logical, stored = list(all_fields(schema_of(made))), list(all_fields(stored_schema(made)))
    assert [field.name for field in stored] == [field.physical_name for field in logical]
    assert [field.metadata[PARQUET_FIELD_ID] for field in stored] == [field.metadata[COLUMN_ID] for field in logical]
    assert not any(field.metadata for field in all_fields(stored_schema(made, with_ids=False)))


@given(structs(TYPES))
def test_mapping_a_mapped_schema_changes_nothing(schema: StructType) -> None:
    made = mapped(metadata(schema), None, ids(), "t")
    assert mapped(made, made, ids(), "t") == made


def test_a_table_with_files_keeps_their_names() -> None:
    stale = next(iter(PLAIN)).with_metadata(**{PHYSICAL_NAME: "another"})
    before = metadata(StructType((stale, PLAIN.fields[1])), {})
    after = mapped(replace(before, configuration=NAME), before, ids(), "t")
    assert [field.physical_name for field in schema_of(after)] == ["a b", "p"]
    assert after.configuration[MAX_COLUMN_ID] == "2"


def test_a_column_added_after_a_drop_has_a_new_id_and_name() -> None:
    made = mapped(metadata(PLAIN), None, ids(), "t")
    dropped = replace(made, schema_string=schema_of(made).drop("p").to_json())
    mapped_again = mapped(dropped, made, ids(), "t")
    assert mapped_again.configuration[MAX_COLUMN_ID] == "2"
    with_p = replace(mapped_again, schema_string=schema_of(mapped_again).add(PLAIN.fields[1]).to_json())
    after = mapped(with_p, mapped_again, iter(["fresh"]).__next__, "t")
    assert schema_of(after).require("p").metadata == {COLUMN_ID: 3, PHYSICAL_NAME: "col-fresh"}
    assert after.configuration[MAX_COLUMN_ID] == "3"


@pytest.mark.parametrize(("old", "new"), [("name", "none"), ("name", "id"), ("id", "name"), ("none", "id")])
def test_other_changes_of_the_mode_are_refused(old: str, new: str) -> None:
    before = metadata(PLAIN, {MODE: old})
    with pytest.raises(UnsupportedStatementError, match=f"from {old} to {new}"):
        mapped(metadata(PLAIN, {MODE: new}), before, ids(), "t")


def test_a_table_without_mapping_is_not_changed() -> None:
    plain = metadata(PLAIN, {})
    assert mapped(plain, plain, ids(), "t") is plain
    assert stored_schema(plain) == PLAIN
    check_mapping(plain, "t")


def test_the_remains_of_an_earlier_mapping_are_ignored() -> None:
    left_behind = replace(mapped(metadata(PLAIN), None, ids(), "t"), configuration={})
    assert schema_of(effective(left_behind)) == PLAIN
    for other in (metadata(PLAIN, {}), mapped(metadata(PLAIN), None, ids(), "t")):
        assert effective(other) is other


def test_the_ids_of_a_table_that_replaces_another_continue_after_its_ids() -> None:
    replaced = mapped(metadata(PLAIN), None, ids(), "t")
    others = StructType((StructField("q", PrimitiveType("long")), StructField("r", PrimitiveType("long"))))
    new = mapped(succeeding(metadata(others), replaced), None, ids(), "t")
    assert [field.metadata[COLUMN_ID] for field in schema_of(new)] == [3, 4]
    assert succeeding(metadata(others), metadata(PLAIN, {})) == metadata(others)


@given(structs(TYPES))
def test_a_table_that_replaces_another_of_the_same_columns_keeps_their_mapping(schema: StructType) -> None:
    replaced = mapped(metadata(schema), None, ids(), "t")
    assert mapped(succeeding(metadata(schema), replaced), None, ids(), "t") == replaced
    unmapped = succeeding(metadata(schema, {}), replaced)
    assert schema_of(unmapped) == schema


def nested(inner: str) -> StructType:
    number, text = PrimitiveType("long"), PrimitiveType(inner)
    member = StructType((StructField("same", number), StructField("other", text)))
    return StructType(
        (
            StructField("ID", number),
            StructField("v", text),
            StructField("l", ArrayType(text)),
            StructField("m", MapType(number, text)),
            StructField("s", member),
            StructField("ls", ArrayType(MapType(number, member))),
        )
    )


def test_a_column_or_field_of_another_type_has_a_new_id_and_name() -> None:
    replaced = mapped(metadata(nested("string")), None, ids(), "t")
    new = mapped(succeeding(metadata(nested("long")), replaced), None, iter("abcdefgh").__next__, "t")
    check_mapping(new, "t")
    before, after = ({field.physical_name for field in all_fields(schema_of(each))} for each in (replaced, new))
    kept = [field.name for field in all_fields(schema_of(new)) if field.physical_name in before]
    assert kept == ["ID", "s", "same", "ls", "same"]
    assert len(after - before) == 5
    assert new.configuration[MAX_COLUMN_ID] == "15"


def test_an_incomplete_mapping_of_another_writer_is_a_damaged_log() -> None:
    with pytest.raises(CorruptLogError, match="`a b`"):
        stored_schema(metadata(PLAIN))
    with pytest.raises(CorruptLogError, match="maxColumnId"):
        mapped(metadata(PLAIN, {**NAME, MAX_COLUMN_ID: "many"}), None, ids(), "t")


@pytest.mark.parametrize("column_id", [None, [None], {}, "1", "x", 1.5, True])
def test_an_id_that_is_no_integer_is_a_damaged_log(column_id: object) -> None:
    odd = PLAIN.fields[0].with_metadata(**{PHYSICAL_NAME: "p", COLUMN_ID: column_id})
    table = metadata(StructType((odd,)))
    with pytest.raises(CorruptLogError, match="lacks its physical name or id"):
        stored_schema(table, with_ids=True)
    with pytest.raises(CorruptLogError, match="has no id"):
        check_mapping(table, "t", CorruptLogError)


def test_no_commit_maps_two_columns_to_the_same_name_or_id() -> None:
    made = schema_of(mapped(metadata(PLAIN), None, ids(), "t"))
    (first, second) = made.fields
    for key in (COLUMN_ID, PHYSICAL_NAME):
        same = second.with_metadata(**{key: first.metadata[key]})
        with pytest.raises(InternalError):
            check_mapping(metadata(StructType((first, same))), "t")
        with pytest.raises(InternalError):
            check_mapping(metadata(StructType((first, second.with_metadata(**{key: None})))), "t")
