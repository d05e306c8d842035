"""A `char` is padded by every statement, and no string is longer than its column, at any depth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.errors import CheckViolationError, ValueNotCastableError
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.unit.engine.house import House

NESTED = "a array<varchar(2)>, m map<char(2), varchar(2)>, s struct<x: char(2), y: array<varchar(2)>>"


def partitions(house: House, table: str) -> set[str | None]:
    return {add.partition_values["c"] for add in house.log(table).snapshot().add_files()}


def texts(house: House, table: str, column: str = "c") -> list[object]:
    return sorted(house.warehouse.table(table).toArrow()[column].to_pylist(), key=repr)


def by_arrow(house: House, table: str) -> list[object]:
    return sorted(silt.read(f"main.{table}", house.place.location)["c"].to_pylist())


def declared_by_another_writer(house: House, table: str, kind: str) -> None:
    """Gives the column `c` a length as another writer, without changing its files."""
    log = house.log(table)
    snapshot = log.snapshot()
    field = snapshot.schema.require("c").with_metadata(**{CHAR_VARCHAR_KEY: kind})
    schema: StructType = snapshot.schema.replace("c", field)
    metadata = replace(snapshot.metadata, schema_string=schema.to_json())
    commit(log, snapshot, Changes(Operation("CHANGE COLUMN"), metadata=metadata), ReadSet(), CommitSettings())


PARTITIONED = "partitioned by (c)"
BOTH_KINDS = pytest.mark.parametrize("partitioned", [pytest.param("", marks=pytest.mark.long), PARTITIONED])


@pytest.mark.parametrize("partitioned", ["", PARTITIONED])
def test_every_statement_pads_a_char(house: House, partitioned: str) -> None:
    house.sql(
        f"create table t (id int, c char(3) default 'd', v varchar(3)) {partitioned} tblproperties"
        "('delta.enableChangeDataFeed' = 'true', 'delta.feature.allowColumnDefaults' = 'supported')"
    )
    house.sql("insert into t values (1, 'a', 'v'), (2, 'b', 'v'), (3, 'c', 'v')")
    house.sql("insert into t (id) values (4)")
    house.sql("update t set c = 'u' where id = 1")
    house.sql("update t set c = default where id = 3")
    house.sql(
        "merge into t using (select 2 as id union all select 5 union all select 6) s on t.id = s.id"
        " when matched then update set c = 'm'"
        " when not matched and s.id = 5 then insert (id, c) values (s.id, 'i')"
        " when not matched then insert (id) values (s.id)"
    )
    house.sql("insert into t by name replace using (id) select 7 as id, 'r' as c")
    found = texts(house, "t")
    assert found == ["d  ", "d  ", "d  ", "i  ", "m  ", "r  ", "u  "]
    assert by_arrow(house, "t") == found
    changed = house.fetched("select c from table_changes('t', 1)")
    assert {len(row.c) for row in changed} == {3}
    if partitioned:
        assert partitions(house, "t") == {"d  ", "i  ", "m  ", "r  ", "u  "}
    house.sql("insert into t replace using (c) values (8, 'd', 'v')")
    house.sql("insert into t replace where c = 'u' values (9, 'u', 'v')")
    assert house.rows("select id from t where c in ('d', 'u')") == [(8,), (9,)]


def test_a_new_table_and_a_generated_column_are_padded(house: House) -> None:
    house.sql("create table t (c char(3), g char(4) generated always as (concat('g', rtrim(c)))) ")
    house.sql("insert into t (c) values ('a')")
    house.sql("insert into t values ('b', 'gb')")
    assert house.rows("select c, g from t") == [("a  ", "ga  "), ("b  ", "gb  ")]
    house.sql("create table copy (x char(5)) as select 'q'")
    house.sql("create table again as select x from copy")
    assert texts(house, "again", "x") == ["q    "]
    assert house.log("again").snapshot().schema.require("x").sql_type == "char(5)"


@BOTH_KINDS
def test_all_spellings_of_another_writer_are_equal(house: House, partitioned: str) -> None:
    house.sql(f"create table t (id int, c string) {partitioned}")
    house.sql("insert into t values (1, 'ab'), (2, 'ab  '), (3, 'z')")
    declared_by_another_writer(house, "t", "char(4)")
    house.sql("insert into t values (4, 'ab ')")
    assert house.rows("select id from t where c = 'ab'") == [(1,), (2,), (4,)]
    assert house.rows("select count(*), min(c) from t group by c") == [(1, "z   "), (3, "ab  ")]
    assert by_arrow(house, "t") == ["ab  ", "ab  ", "ab  ", "z   "]
    house.sql("merge into t using (select 'ab  ' as c) s on t.c = s.c when matched then update set id = t.id * 10")
    assert house.rows("select id from t") == [(10,), (20,), (3,), (40,)]
    house.sql("update t set c = 'z' where c = 'ab' and id = 20")
    if partitioned:
        house.sql("optimize t where c = 'z'")
        adds = house.log("t").snapshot().add_files()
        assert len([add for add in adds if (add.partition_values["c"] or "").strip() == "z"]) == 1
    house.sql("insert into t replace using (c) values (5, 'ab')")
    house.sql("delete from t where c = 'z'")
    assert house.rows("select id, c from t") == [(5, "ab  ")]


@BOTH_KINDS
def test_a_key_of_a_query_equals_a_char_without_padding(house: House, partitioned: str) -> None:
    house.sql(f"create table t (id int, c char(3)) {partitioned}")
    house.sql("insert into t values (1, 'a'), (2, 'b'), (3, 'c'), (4, null)")
    house.sql("create table s (id int, c string)")
    house.sql("insert into s values (10, 'a'), (20, 'b     '), (30, 'abcd'), (40, null)")
    source = "select id, c as `c` from s where id < 30 or id = 40"
    house.sql(
        f"merge into t using ({source}) s on (t.c) <=> s.`c` -- a comment\n and t.id > 0 and t.id < s.id"
        " when matched then update set id = s.id when not matched then insert *"
    )
    assert house.rows("select id, c from t") == [(10, "a  "), (20, "b  "), (3, "c  "), (40, None)]
    predicate = house.fetched("describe history t")[0].operationParameters["predicate"]
    assert "rpad" not in predicate
    house.sql(f"insert into t as d by name replace on d.c = n.c (select id + 1 as id, c from ({source})) as n")
    assert house.rows("select id, c from t") == [(11, "a  "), (21, "b  "), (3, "c  "), (40, None), (41, None)]
    house.sql(f"insert into t by name replace using (c) {source} and c is not null")
    assert house.rows("select id, c from t") == [(10, "a  "), (20, "b  "), (3, "c  "), (40, None), (41, None)]
    house.sql("merge into t using s on s.c = t.c when matched then delete")
    assert house.rows("select id, c from t") == [(3, "c  "), (40, None), (41, None)]


def test_a_key_in_a_struct_and_a_key_of_another_type_are_compared_as_stored(house: House) -> None:
    house.sql("create table t (k struct<c: char(3)>, n char(2), hits int)")
    house.sql("insert into t values (named_struct('c', 'a'), '1', 0)")
    house.sql("merge into t using (select 'a' as x) s on t.k.c = lower(s.x) when matched then update set hits = 1")
    house.sql("merge into t using (select 1 as x) s on t.n = s.x when matched then update set hits = hits + 1")
    house.sql("merge into t using (select 'ab' as x) s on t.n = s.x when matched then update set hits = 100")
    assert house.rows("select hits from t") == [(2,)]


WRITES = {
    "INSERT": "insert into t (id, {column}) values (2, {value})",
    "UPDATE": "update t set {column} = {value}",
    "MERGE's UPDATE": "merge into t using (select 1 as id) s on t.id = s.id"
    " when matched then update set {column} = {value}",
    "MERGE's INSERT": "merge into t using (select 2 as id) s on false"
    " when not matched then insert (id, {column}) values (2, {value})",
}


@pytest.fixture
def nested(house: House) -> House:
    house.sql(f"create table t (id int, {NESTED})")
    house.sql("insert into t (id) values (1)")
    return house


@pytest.mark.parametrize("statement", WRITES)
def test_no_string_is_longer_than_its_column_or_field(nested: House, statement: str) -> None:
    for column, value, place in (
        ("a", "array('ab', 'abc')", "a.element"),
        ("m", "map('abc', 'x')", "m.key"),
        ("m", "map('ab', 'abc')", "m.value"),
        ("s", "named_struct('x', 'abc', 'y', array('a'))", "s.x"),
        ("s", "named_struct('x', 'ab', 'y', array('abc'))", "s.y.element"),
    ):
        with pytest.raises(ValueNotCastableError, match=f"`{place}` that is longer than (var)?char"):
            nested.sql(WRITES[statement].format(column=column, value=value))


@pytest.mark.parametrize("statement", WRITES)
def test_excess_spaces_are_truncated_and_a_char_is_padded_at_every_depth(nested: House, statement: str) -> None:
    for column, value in (
        ("a", "array('ab   ', 'a ', null)"),
        ("m", "map('a', 'b    ', 'k    ', null)"),
        ("s", "named_struct('x', 'a', 'y', array('b    '))"),
    ):
        nested.sql(WRITES[statement].format(column=column, value=value))
    for frame in (nested.warehouse.table("t").toArrow(), silt.read("main.t", nested.place.location)):
        rows = [row for row in frame.to_pylist() if row["a"] or row["m"] or row["s"]]
        assert [row["a"] for row in rows if row["a"]] == [["ab", "a ", None]]
        assert [row["m"] for row in rows if row["m"]] == [[("a ", "b "), ("k ", None)]]
        assert [row["s"] for row in rows if row["s"]] == [{"x": "a ", "y": ["b "]}]


def test_a_struct_field_is_set_according_to_its_own_length(nested: House) -> None:
    nested.sql("update t set s = named_struct('x', 'a', 'y', array('b'))")
    nested.sql("update t set s.x = 'c'")
    assert nested.rows("select s.x from t") == [("c ",)]
    with pytest.raises(ValueNotCastableError, match=r"`s\.x`"):
        nested.sql("update t set s.x = 'abc'")


def test_lengths_follow_the_fields_that_have_them(house: House) -> None:
    house.sql("create table t (s struct<x: char(2), y: varchar(2), z: int>)")
    house.sql("insert into t values (named_struct('x', 'a', 'y', 'b', 'z', 1))")
    house.sql("alter table t add column s.w varchar(3)")
    house.sql("alter table t rename column s.x to first")
    house.sql("alter table t drop column s.y")
    house.sql("alter table t add column s.y string")
    (column,) = house.log("t").snapshot().schema
    assert column.sql_type == "struct<first:char(2),z:int,w:varchar(3),y:string>"
    house.sql("insert into t values (named_struct('first', 'q', 'z', 1, 'w', 'abc', 'y', 'long enough'))")
    with pytest.raises(ValueNotCastableError, match=r"`s\.w`"):
        house.sql("insert into t values (named_struct('first', 'q', 'z', 1, 'w', 'abcd', 'y', ''))")
    house.sql("alter table t alter column s.w type varchar(5)")
    house.sql("insert into t values (named_struct('first', 'q', 'z', 1, 'w', 'abcd', 'y', ''))")
    with pytest.raises(ValueNotCastableError, match=r"`s\.w`"):
        house.sql("alter table t alter column s.w type varchar(3)")


def test_a_violating_row_is_shown_with_its_nested_values(house: House) -> None:
    house.sql("create table t (s struct<x: int>, a array<int>, b binary, constraint big check (s.x > 1))")
    with pytest.raises(CheckViolationError) as caught:
        house.sql("insert into t values (named_struct('x', 1), array(1), null)")
    assert '{"s":{"x":1},"a":[1]}' in str(caught.value)


def test_the_rule_of_a_generated_column_is_shown_on_one_line(house: House) -> None:
    house.sql("create table t (id int, g int generated always as (id * 2))")
    with pytest.raises(CheckViolationError, match=r"`g`, `g` <=> \(id \* 2\), for example"):
        house.sql("insert into t values (1, 3)")
