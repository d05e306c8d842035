"""A field that a struct of the source lacks is treated like a column that the source lacks."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, NotNullViolationError
from tests.unit.engine.house import House

MARKED = "tblproperties('delta.enableDeletionVectors' = 'true')"
RECORDED = "tblproperties('delta.enableChangeDataFeed' = 'true')"
HOWEVER_WRITTEN = pytest.mark.parametrize("properties", ["", MARKED, RECORDED])

STAR = "when matched then update set *"
SET = "when matched then update set s = n.s"
UPDATES = pytest.mark.parametrize("update", [STAR, SET])

NESTED = "id int, s struct<a: int, b: int, inner: struct<x: int, y: int>>"
OLD = "named_struct('a', 1, 'b', 2, 'inner', named_struct('x', 3, 'y', 4))"


def merge(house: House, source: str, clauses: str, evolution: str = "") -> None:
    house.sql(f"merge {evolution} into t using ({source}) n on t.id = n.id {clauses}")


def struct(house: House) -> list[object]:
    return [row["s"] for row in house.warehouse.table("t").orderBy("id").toArrow().to_pylist()]


@pytest.mark.parametrize(
    ("update", "properties"),
    [
        *((STAR, ""), (SET, MARKED), (STAR, RECORDED)),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((SET, ""), (STAR, MARKED), (SET, RECORDED))),
    ],
)
def test_schema_evolution_keeps_the_fields_that_the_sources_struct_lacks(
    house: House, update: str, properties: str
) -> None:
    house.sql(f"create table t ({NESTED}) {properties}")
    house.sql(f"insert into t values (1, {OLD}), (2, {OLD})")
    new = "named_struct('A', 10L, 'Inner', named_struct('X', 30, 'new', 'z'))"
    merge(house, f"select 1 id, {new} s", update, "with schema evolution")
    assert struct(house) == [
        {"a": 10, "b": 2, "inner": {"x": 30, "y": 4, "new": "z"}},
        {"a": 1, "b": 2, "inner": {"x": 3, "y": 4, "new": None}},
    ]


@UPDATES
def test_a_null_struct_keeps_the_fields_that_it_lacks(house: House, update: str) -> None:
    house.sql(f"create table t ({NESTED})")
    house.sql(f"insert into t values (1, null), (2, null), (3, {OLD}), (4, {OLD})")
    house.sql("insert into t values (5, named_struct('a', 1, 'b', 2, 'inner', null))")
    given = "named_struct('a', 9, 'inner', cast(null as struct<x: int>))"
    merge(
        house,
        f"select * from values (1, null), (2, {given}), (3, null), (4, {given}), (5, {given}) v(id, s)",
        update,
        "with schema evolution",
    )
    assert struct(house) == [
        None,
        {"a": 9, "b": None, "inner": None},
        {"a": None, "b": 2, "inner": {"x": None, "y": 4}},
        {"a": 9, "b": 2, "inner": {"x": None, "y": 4}},
        {"a": 9, "b": 2, "inner": None},
    ]


@UPDATES
@pytest.mark.parametrize("null", ["null", "cast(null as struct<inner: struct<y: int, x: int>, b: long, a: int>)"])
def test_a_null_struct_that_lacks_no_field_is_null(house: House, update: str, null: str) -> None:
    house.sql(f"create table t ({NESTED})")
    house.sql(f"insert into t values (1, {OLD})")
    merge(house, f"select 1 id, {null} s", update, "with schema evolution")
    assert struct(house) == [None]


@pytest.mark.parametrize(
    "clause",
    [
        STAR,
        SET,
        "when not matched then insert *",
        "when not matched then insert (id, s) values (n.id, n.s)",
        "when not matched by source then update set s = named_struct('a', 1)",
    ],
)
def test_without_evolution_a_merge_refuses_a_struct_that_lacks_a_field(house: House, clause: str) -> None:
    house.sql("create table t (id int, s struct<a: int, b: int>)")
    house.sql("insert into t values (1, named_struct('a', 1, 'b', 2))")
    with pytest.raises(ColumnNotFoundError, match=r"lacks s\.b.*SCHEMA EVOLUTION"):
        merge(house, "select 1 id, named_struct('A', 9) s", clause)
    assert struct(house) == [{"a": 1, "b": 2}]


def test_the_error_for_a_star_names_everything_that_the_source_lacks_at_any_depth(house: House) -> None:
    house.sql(
        "create table t (id int, s struct<a: int, i: struct<x: int, y: int>>, l array<struct<a: int, b: int>>,"
        " m map<struct<a: int, b: int>, struct<c: int, d: int>>, n int,"
        " o struct<l: array<struct<a: int, `odd.name`: int>>>)"
    )
    source = (
        "select 1 id, named_struct('A', 1, 'I', named_struct('X', 1)) S, array(named_struct('a', 1)) l,"
        " map(named_struct('a', 1), named_struct('c', 1)) m, named_struct('l', array(named_struct('a', 1))) o"
    )
    paths = r"lacks s\.i\.y, l\.element\.b, m\.key\.b, m\.value\.d, n, o\.l\.element\.`odd\.name`\. "
    with pytest.raises(ColumnNotFoundError, match=paths):
        merge(house, source, STAR)


def test_an_update_refuses_a_struct_that_lacks_a_field(house: House) -> None:
    house.sql(f"create table t ({NESTED})")
    with pytest.raises(ColumnNotFoundError, match=r"`s` lacks s\.b.*single fields"):
        house.sql("update t set s = named_struct('a', 1, 'inner', named_struct('x', 1, 'y', 1))")
    with pytest.raises(ColumnNotFoundError, match=r"`s\.inner` lacks s\.inner\.y"):
        house.sql("update t set s.inner = named_struct('x', 1)")


SINGLE_FIELDS = pytest.mark.parametrize(
    "statement",
    [
        "update t set s.inner.y = 5, s.`a` = 6",
        "merge into t using (select 5 y, 6 a) n on true when matched then update set t.s.inner.y = n.y, s.a = n.a",
        "merge skip equal rows into t using (select 5 y) n on true when matched then update set s.a = 6, s.inner.y = 5",
    ],
)


@SINGLE_FIELDS
@HOWEVER_WRITTEN
def test_a_field_of_a_null_struct_is_set(house: House, statement: str, properties: str) -> None:
    house.sql(f"create table t ({NESTED}) {properties}")
    house.sql(f"insert into t values (1, null), (2, named_struct('a', 1, 'b', 2, 'inner', null)), (3, {OLD})")
    house.sql(statement)
    assert struct(house) == [
        {"a": 6, "b": None, "inner": {"x": None, "y": 5}},
        {"a": 6, "b": 2, "inner": {"x": None, "y": 5}},
        {"a": 6, "b": 2, "inner": {"x": 3, "y": 5}},
    ]


@pytest.mark.parametrize(
    "statement",
    ["update t set s.b = 1", "merge into t using (select 1 b) n on true when matched then update set s.b = n.b"],
)
def test_a_field_of_a_null_struct_is_not_set_if_another_field_must_not_be_null(house: House, statement: str) -> None:
    house.sql("create table t (id int, s struct<a: int not null, b: int>)")
    house.sql("insert into t values (1, null)")
    with pytest.raises(NotNullViolationError, match=r"s\.a"):
        house.sql(statement)
    assert struct(house) == [None]


@HOWEVER_WRITTEN
def test_schema_evolution_sets_null_if_no_row_has_a_value_to_keep(house: House, properties: str) -> None:
    house.sql(f"create table t (id int, s struct<a: int, b: int>, l array<struct<a: int, b: int>>) {properties}")
    house.sql("insert into t values (1, named_struct('a', 1, 'b', 2), array(named_struct('a', 1, 'b', 2)))")
    merge(
        house,
        "select id, named_struct('a', 9) s, array(named_struct('a', 9)) l from values (1), (2) v(id)",
        f"{STAR} when not matched then insert *",
        "with schema evolution",
    )
    elements = [{"a": 9, "b": None}]
    assert house.warehouse.table("t").orderBy("id").toArrow().to_pylist() == [
        {"id": 1, "s": {"a": 9, "b": 2}, "l": elements},
        {"id": 2, "s": {"a": 9, "b": None}, "l": elements},
    ]


def test_the_change_feed_has_the_fields_that_were_kept(house: House) -> None:
    house.sql(f"create table t (id int, s struct<a: int, b: int>) {RECORDED}")
    house.sql("insert into t values (1, named_struct('a', 1, 'b', 2))")
    merge(house, "select 1 id, named_struct('a', 9) s", STAR, "with schema evolution")
    changes = "select s.a, s.b from table_changes('t', 2) where _change_type = 'update_postimage'"
    assert house.rows(changes) == [(9, 2)]


def test_an_insert_by_name_sets_null_in_the_fields_that_its_struct_lacks(house: House) -> None:
    house.sql("create table t (id int, s struct<a: int, b: int>)")
    house.sql("insert into t by name select named_struct('A', 1) s, 1 id")
    house.sql("insert into t by name replace using (id) select 2 id, named_struct('a', 2) s")
    assert struct(house) == [{"a": 1, "b": None}, {"a": 2, "b": None}]
