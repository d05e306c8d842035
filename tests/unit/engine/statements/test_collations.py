"""A column with a collation is refused by the feature's name; queries compare by collations as in Spark."""

from __future__ import annotations

import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.unit.engine.house import House

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

COLLATED = "'A' collate UNICODE_CI"
STATEMENTS = [
    "create table n (x string collate UNICODE_CI)",
    "create table n (x array<string collate UTF8_LCASE>)",
    "create table n (x map<string, struct<y: string collate UNICODE_CI>>)",
    "create table n (x char(3) collate UNICODE_CI)",
    "create or replace table t (x varchar(3) collate UTF8_LCASE)",
    f"create table n as select {COLLATED} as x",
    f"create table n as select named_struct('y', array({COLLATED})) as x",
    f"create or replace table t as select {COLLATED} as x",
    "alter table t add column y string collate UNICODE_CI",
    "alter table t add column s.y string collate UNICODE_CI",
    "alter table t alter column x type string collate UNICODE_CI",
    f"insert with schema evolution into t by name select 'a' as x, {COLLATED} as y",
    f"merge with schema evolution into t using (select 'a' as x, {COLLATED} as y) q on t.x = q.x"
    " when not matched then insert *",
]


@pytest.fixture
def filled(house: House) -> House:
    house.sql("create table t (x string, s struct<z: int>)")
    house.sql("insert into t values ('a', null), ('A', null)")
    return house


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_creates_a_column_with_a_collation(filled: House, statement: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="collation") as caught:
        filled.sql(statement)
    assert caught.value.details["features"] == ("collations",)
    assert filled.log("t").snapshot().version == 1


def test_a_data_frame_creates_no_column_with_a_collation(filled: House) -> None:
    frame = filled.sql(f"select {COLLATED} as x")
    with pytest.raises(UnsupportedFeatureError, match="the column `x` has the collation UNICODE_CI"):
        filled.warehouse.write(frame, "n")


def test_the_default_collation_is_accepted(filled: House) -> None:
    filled.sql("create table n (x string collate UTF8_BINARY)")
    assert dict(filled.log("n").snapshot().schema.require("x").metadata) == {}


def test_a_query_and_a_rule_may_compare_by_a_collation(filled: House) -> None:
    assert filled.rows("select x from t where x collate UNICODE_CI = 'a'") == [("A",), ("a",)]
    filled.sql(f"insert into t select {COLLATED}, null")
    assert filled.rows("select count(*) from t where x = 'A'") == [(2,)]
    filled.sql("create table c (x string, g string generated always as (x collate UNICODE_CI))")
    filled.sql("alter table c add constraint k check (x collate UTF8_LCASE <> 'no')")
    filled.sql("insert into c (x) values ('yes')")
    assert filled.rows("select g from c") == [("yes",)]
    with pytest.raises(Exception, match="`k`"):
        filled.sql("insert into c (x) values ('NO')")


@pytest.mark.in_folders("rewrites a file of the log")
def test_a_table_of_another_writer_with_a_collation_is_refused(filled: House) -> None:
    store: Store = filled.log("t").store
    name = f"_delta_log/{0:020}.json"
    text = store.read(name).decode()
    plain = r"\"name\":\"x\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}"
    assert plain in text
    given = plain.replace("{}", r"{\"__COLLATIONS\":{\"x\":\"icu.UNICODE_CI\"}}")
    (filled.root / "main" / "t" / name).write_text(text.replace(plain, given))
    for crc in (filled.root / "main" / "t" / "_delta_log").glob("*.crc"):
        crc.unlink()
    other = filled.another()
    for read in (
        lambda: other.rows("select * from t"),
        lambda: other.rows("describe table t"),
        lambda: other.rows("show create table t"),
        lambda: other.sql("insert into t values ('a')"),
        lambda: other.sql("create table n shallow clone t"),
        lambda: silt.read("main.t", filled.place.location),
    ):
        with pytest.raises(UnsupportedFeatureError, match="the column `x` has the collation UNICODE_CI"):
            read()
    other.sql("drop table t")
    assert other.warehouse.catalog.find(RelationName("silt", "main", "t")) is None


@pytest.mark.parametrize("vectors", ["", "tblproperties ('delta.enableDeletionVectors' = true)"])
@pytest.mark.parametrize("clauses", ["update set *", "update set x = q.x, s = q.s"])
@pytest.mark.parametrize("option", ["", "skip equal rows"])
def test_the_values_of_a_merge_may_have_a_collation(house: House, vectors: str, clauses: str, option: str) -> None:
    house.sql(f"create table t (id int, x string, s struct<y: array<string>>) {vectors}")
    house.sql("insert into t values (1, 'a', null), (2, 'b', null), (3, 'C', named_struct('y', array('C')))")
    source = ", ".join(
        f"({number}, '{text}' collate UTF8_LCASE, named_struct('y', array('{text}' collate UTF8_LCASE)))"
        for number, text in ((1, "A"), (3, "C"), (4, "D"))
    )
    house.sql(
        f"merge {option} into t using (select * from values {source} as v(id, x, s)) q on t.id = q.id"
        f" when matched then {clauses} when not matched then insert *"
    )
    assert house.rows("select id, x, s.y from t order by id") == [
        (1, "A", ["A"]),
        (2, "b", None),
        (3, "C", ["C"]),
        (4, "D", ["D"]),
    ]
    assert house.rows("select count(*) from t where x = 'd'") == [(0,)]
