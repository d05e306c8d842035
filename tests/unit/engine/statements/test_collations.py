"""Tables with collated columns: every statement compares their strings by the collation, and keeps it.

What an engine would compare by bytes instead is refused by name before anything is written.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    SiltError,
    UnsupportedFeatureError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.table.features import features_of
from tests.unit.engine.house import House, other_rows

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

COLLATED = "string collate UTF8_LCASE"
FEATURES = ("enableTypeWidening", "enableDeletionVectors", "enableChangeDataFeed")


@pytest.fixture
def people(house: House) -> House:
    """A table with a file for each row."""
    house.sql(f"create table t (id int, name {COLLATED}, plain string)")
    for number, name in enumerate(("Ann", "bob", "CARL")):
        house.sql(f"insert into t values ({number}, '{name}', '{name}')")
    return house


def type_of(house: House, table: str, column: str = "name") -> str:
    return house.log(table).snapshot().schema.require(column).type.sql_name


def stored(house: House, table: str) -> str:
    return house.log(table).snapshot().metadata.schema_string


# Reading


def test_the_log_states_collation_and_feature_as_other_engines_write_them(people: House) -> None:
    snapshot = people.log("t").snapshot()
    assert '"type":"string","nullable":true,"metadata":{"__COLLATIONS":{"name":"spark.UTF8_LCASE"}}' in stored(
        people, "t"
    )
    assert {"collations", "domainMetadata"} <= set(features_of(snapshot.protocol))
    assert snapshot.protocol.min_reader_version == 1


def test_conditions_order_groups_and_joins_use_the_collation(people: House) -> None:
    assert people.rows("select id from t where name = 'ANN'") == [(0,)]
    assert people.rows("select id from t where plain = 'ANN'") == []
    assert people.rows("select id from t where name in ('BOB', 'carl') and id < 9") == [(1,), (2,)]
    assert people.rows("select id from t where name between 'B' and 'bz'") == [(1,)]
    assert people.rows("select id from t where name like 'c%'") == [(2,)]
    assert people.rows("select id from t where name is null") == []
    assert [row.id for row in people.fetched("select id from t order by name desc")] == [2, 1, 0]
    people.sql("insert into t values (3, 'ANN', 'x')")
    assert people.rows("select count(*) from t group by name order by 1") == [(1,), (1,), (2,)]
    assert people.rows("select a.id, b.id from t a join t b on a.name = b.name where a.id < b.id") == [(0, 3)]
    assert people.rows("select lower(max(name)), count(distinct name) from t") == [("carl", 3)]


def test_an_explicit_collation_of_a_literal_rules_out_no_file(people: House) -> None:
    assert people.rows("select id from t where plain = 'ANN' collate UNICODE_CI") == [(0,)]
    assert people.rows("select id from t where plain in ('ANN' collate UNICODE_CI)") == [(0,)]
    assert people.rows("select id from t where name = 'ANN' collate UTF8_BINARY") == []


def test_minimum_and_maximum_are_not_taken_from_statistics(people: House) -> None:
    assert people.rows("select min(name), max(name), min(plain), max(plain) from t") == [("Ann", "CARL", "Ann", "bob")]


def test_descriptions_show_the_collation(people: House) -> None:
    described = {row[0]: row[1] for row in people.fetched("describe table t")}
    assert described["name"] == COLLATED
    assert f"`name` {COLLATED.upper()}" in people.fetched("show create table t")[0][0]
    assert people.rows(
        "select data_type from information_schema.columns where table_name = 't' and column_name = 'name'"
    ) == [(COLLATED,)]
    assert COLLATED in str(people.fetched("describe table t name"))


def test_arrow_reads_plain_text_and_refuses_a_comparison(people: House) -> None:
    location = people.place.location
    rows = silt.read("main.t", location, columns=["name"])
    assert rows.schema.field("name").type == pa.string()
    assert sorted(rows["name"].to_pylist()) == ["Ann", "CARL", "bob"]
    assert silt.read("main.t", location, where="name is not null").num_rows == 3
    assert silt.read("main.t", location, where="plain = 'bob'").num_rows == 1
    with pytest.raises(UnsupportedStatementError, match="name = 'BOB'"):
        silt.read("main.t", location, where="name = 'BOB'")


def test_another_engine_reads_the_rows(people: House) -> None:
    assert other_rows(people, "t", "id", "name") == [(0, "Ann"), (1, "bob"), (2, "CARL")]


def test_a_view_keeps_the_collation(people: House) -> None:
    people.sql("create view v as select name, id from t")
    assert people.rows("select id from v where name = 'aNN'") == [(0,)]
    assert {row[0]: row[1] for row in people.fetched("describe table v")}["name"] == COLLATED


NESTED = [
    (f"array<{COLLATED}>", "array('A')", "exists(x, each -> each = 'a')"),
    (f"map<int,{COLLATED}>", "map(1, 'A')", "x[1] = 'a'"),
    (f"struct<y:{COLLATED}>", "named_struct('y', 'A')", "x.y = 'a'"),
    (f"array<struct<y:array<{COLLATED}>>>", "array(named_struct('y', array('A')))", "x[0].y[0] = 'a'"),
]


@pytest.mark.parametrize(("kind", "value", "condition"), NESTED)
def test_strings_inside_of_columns_have_collations(house: House, kind: str, value: str, condition: str) -> None:
    house.sql(f"create table n (x {kind}, z int)")
    assert type_of(house, "n", "x") == kind
    house.sql(f"insert into n values ({value}, 1)")
    assert house.rows(f"select z from n where {condition}") == [(1,)]
    house.sql(f"update n set z = 2 where {condition}")
    house.sql(f"update n set x = {value}")
    assert house.another().rows(f"select z from n where {condition}") == [(2,)]


# Writing


@pytest.mark.parametrize("feature", FEATURES)
def test_rows_are_changed_by_the_collation(people: House, feature: str) -> None:
    people.sql(f"alter table t set tblproperties ('delta.{feature}' = true)")
    people.sql("update t set plain = 'found' where name = 'ANN'")
    people.sql("update t set name = upper(plain) where name = 'BOB'")
    people.sql("update t set name = 'x' collate UNICODE_CI where name = 'carl'")
    assert people.rows("select id, name, plain from t") == [(0, "Ann", "found"), (1, "BOB", "bob"), (2, "x", "CARL")]
    people.sql("delete from t where name in ('ann', 'X')")
    assert people.rows("select name from t") == [("BOB",)]
    assert type_of(people, "t") == COLLATED


@pytest.mark.parametrize("feature", FEATURES)
def test_a_merge_by_a_collated_key_finds_equal_strings(people: House, feature: str) -> None:
    people.sql(f"alter table t set tblproperties ('delta.{feature}' = true)")
    people.sql(
        "merge into t using (select * from values (7, 'ANN', 'p'), (8, 'new', 'q') as v(id, name, plain)) s"
        " on t.name = s.name collate UTF8_LCASE"
        " when matched then update set id = s.id, name = s.name when not matched then insert *"
    )
    assert people.rows("select id, name, plain from t") == [
        (1, "bob", "bob"),
        (2, "CARL", "CARL"),
        (7, "ANN", "Ann"),
        (8, "new", "q"),
    ]


def test_a_merge_with_the_same_collation_on_both_sides_finds_equal_strings(people: House) -> None:
    people.sql("create table s as select 9 as id, upper(name) as name, plain from t where id = 0")
    assert type_of(people, "s") == COLLATED
    people.sql("merge into t using s on t.name = s.name when matched then update set * when not matched then insert *")
    assert people.rows("select id, name from t where id = 9") == [(9, "ANN")]
    assert people.rows("select count(*) from t") == [(3,)]


def test_a_merge_that_skips_equal_rows_compares_bytes(people: House) -> None:
    people.sql(
        "merge skip equal rows into t using (select 0 as id, 'ANN' as name, 'Ann' as plain) s on t.id = s.id"
        " when matched then update set *"
    )
    assert people.rows("select name from t where id = 0") == [("ANN",)]


def test_a_comparison_with_another_collation_is_refused_by_spark(people: House) -> None:
    with pytest.raises(SiltError, match=r"(?i)collation"):
        people.sql("merge into t using (select concat('A', 'nn') as n) s on t.name = s.n when matched then delete")
    assert people.log("t").snapshot().version == 3


def test_rows_are_replaced_by_the_collation(people: House) -> None:
    people.sql("insert into t replace where name = 'ANN' values (5, 'ann', 'r')")
    assert people.rows("select id from t where name = 'Ann'") == [(5,)]
    people.sql("insert into t replace using (name) select 6, upper(name), 'u' from t where id = 5")
    assert people.rows("select id, name from t where name = 'ann'") == [(6, "ANN")]
    people.sql("insert overwrite t select id, name, plain from t where name = 'ann'")
    assert people.rows("select id from t") == [(6,)]


def test_differences_are_paired_by_the_collation_and_found_by_bytes(people: House) -> None:
    people.sql(
        "create or replace table t write differences by (name) as"
        " select id, if(id = 0, upper(name), name) as name, plain from t"
    )
    assert people.rows("select id, name from t") == [(0, "ANN"), (1, "bob"), (2, "CARL")]
    assert type_of(people, "t") == COLLATED


def test_a_query_with_a_collation_makes_a_collated_column(house: House) -> None:
    house.sql("create table n as select 1 as id, 'A' collate UNICODE_CI as name")
    assert type_of(house, "n") == "string collate UNICODE_CI"
    assert '{"__COLLATIONS":{"name":"icu.UNICODE_CI"}}' in stored(house, "n")
    assert house.rows("select id from n where name = 'a'") == [(1,)]
    house.warehouse.write(house.sql("select 2 as id, 'b' collate UTF8_LCASE as name"), "m")
    assert type_of(house, "m") == COLLATED


def test_the_collation_by_bytes_is_none(house: House) -> None:
    house.sql("create table n (x string collate UTF8_BINARY)")
    assert "__COLLATIONS" not in stored(house, "n")
    assert "collations" not in features_of(house.log("n").snapshot().protocol)


def test_columns_get_and_lose_collations(people: House) -> None:
    people.sql("create table n (id int)")
    people.sql("insert into n values (1)")
    people.sql(f"alter table n add column name {COLLATED}")
    assert "collations" in features_of(people.log("n").snapshot().protocol)
    people.sql("update n set name = 'A'")
    assert people.rows("select id from n where name = 'a'") == [(1,)]
    people.sql("alter table t alter column name type string")
    assert people.rows("select id from t where name = 'ANN'") == []
    people.sql("alter table t alter column plain type string collate UNICODE_CI")
    assert people.rows("select id, plain from t where plain = 'ANN'") == [(0, "Ann")]


def test_an_evolved_schema_keeps_collations(people: House) -> None:
    people.sql(
        "insert with schema evolution into t by name"
        " select 4 as id, 'D' as name, 'd' as plain, 'X' collate UNICODE_CI as y"
    )
    assert (type_of(people, "t"), type_of(people, "t", "y")) == (COLLATED, "string collate UNICODE_CI")
    assert people.rows("select id from t where name = 'd' and y = 'x'") == [(4,)]


def test_a_renamed_column_keeps_its_collation(people: House) -> None:
    people.sql("alter table t rename column name to called")
    assert people.rows("select id from t where called = 'ANN'") == [(0,)]
    people.sql("create table m (id int, a array<string collate UTF8_LCASE>)")
    people.sql("alter table m set tblproperties ('delta.columnMapping.mode' = 'name')")
    people.sql("insert into m values (1, array('A'))")
    people.sql("alter table m rename column a to b")
    assert '{"b.element":"spark.UTF8_LCASE"}' in stored(people, "m")
    assert people.another().rows("select id from m where b[0] = 'a'") == [(1,)]


def test_copies_keep_collations(people: House) -> None:
    people.sql("create table shallow shallow clone t")
    people.sql("create table deep deep clone t")
    people.sql("create table alike like t")
    people.sql("insert into alike select * from t")
    for table in ("shallow", "deep", "alike"):
        assert type_of(people, table) == COLLATED
        assert people.rows(f"select id from {table} where name = 'ANN'") == [(0,)]
    people.sql("create or replace table t as select 1 as id")
    people.sql("restore table t to version as of 3")
    assert people.rows("select id from t where name = 'ANN'") == [(0,)]


def test_maintenance_keeps_collations(people: House) -> None:
    people.sql("optimize t")
    people.sql("optimize t zorder by (id)")
    assert people.rows("select id from t where name = 'ANN'") == [(0,)]
    people.log("t").checkpoint(people.log("t").snapshot())
    assert people.another().rows("select id from t where name = 'BOB'") == [(1,)]


def test_the_change_feed_keeps_collations(people: House) -> None:
    people.sql("alter table t set tblproperties ('delta.enableChangeDataFeed' = true)")
    people.sql("update t set plain = 'z' where name = 'ANN'")
    changed = "select _change_type from table_changes('t', 5) where name = 'aNN'"
    assert people.rows(changed) == [("update_postimage",), ("update_preimage",)]


@pytest.mark.parametrize(
    "properties", ["'a' = 'b'", *(f"'delta.{each}' = true" for each in (*FEATURES, "enableRowTracking"))]
)
def test_a_change_that_the_collation_ignores_is_a_change_of_the_row(people: House, properties: str) -> None:
    people.sql(f"create table c (id int, name {COLLATED}, a array<{COLLATED}>) tblproperties ({properties})")
    people.sql("insert into c select id, name, array(name) from t")
    people.sql("create table totals changed keys (id) as select id, max(name) as name, max(a) as a from c group by id")
    version = people.log("c").snapshot().version
    has_ids = "enableRowTracking" in properties  # each row that replaces a row has another id, so it is another row
    others = {(0, "ANN"), (1, "BOB")} if has_ids else set()
    for change, expected in (
        ("update c set name = upper(name) where id < 2", {(0, "Ann"), (0, "ANN"), (1, "bob"), (1, "BOB")}),
        ("update c set a = array('CARL', 'x') where id = 2", {(2, "CARL")}),
        ("update c set a = array('carl', 'X') where id = 2", {(2, "CARL")}),
        ("insert overwrite c select id, if(id = 2, 'Carl', name), a from c", {(2, "CARL"), (2, "Carl")} | others),
        ("insert overwrite c select * from c", {(2, "Carl"), *others} if has_ids else set()),
    ):
        people.sql(change)
        found = people.fetched(f"select id, name, a from silt_changes('main.c', after => {version})")
        assert {(row.id, row.name) for row in found} == expected, change
        version = people.log("c").snapshot().version
        people.sql(
            "insert into totals by name replace changed keys (id) "
            "select id, max(name) as name, max(a) as a from c group by id"
        )
        assert people.rows("select * from totals") == people.rows("select * from c"), change


def test_upserts_of_a_collated_key_are_of_equal_strings(people: House) -> None:
    people.sql("delete from t where name = 'ann'")
    people.sql("insert into t values (5, 'ANN', 'n')")
    changed = people.rows(
        "select id, name, _change_type from silt_changes('main.t', after => 3, as => 'upserts', key => 'name')"
    )
    assert changed == [(5, "ANN", "upsert")]


def test_a_transaction_sees_and_commits_collated_rows(people: House) -> None:
    with people.warehouse.transaction():
        people.sql("update t set plain = 'one' where name = 'ANN'")
        people.sql(f"create table n (name {COLLATED})")
        people.sql("insert into n select name from t where name = 'ann'")
        assert people.rows("select count(*) from n where name = 'ANN'") == [(1,)]
    assert people.rows("select plain from t where name = 'ann'") == [("one",)]
    assert type_of(people, "n") == COLLATED


def test_checks_generated_columns_and_defaults_use_the_collation(house: House) -> None:
    house.sql(f"create table c (name {COLLATED}, g string generated always as (upper(name)), x {COLLATED} default 'D')")
    house.sql("alter table c add constraint k check (name <> 'no')")
    house.sql("insert into c (name) values ('yes')")
    assert house.rows("select g, x from c where g = 'YES' and x = 'd'") == [("YES", "D")]
    assert house.rows("select g from c where g = 'yes'") == []
    with pytest.raises(CheckViolationError, match="`k`"):
        house.sql("insert into c (name) values ('NO')")


def test_a_generated_column_may_be_computed_by_a_collation(house: House) -> None:
    house.sql("create table c (x string, g string generated always as (x collate UNICODE_CI))")
    house.sql("alter table c add constraint k check (x collate UTF8_LCASE <> 'no')")
    house.sql("insert into c (x) values ('yes')")
    assert house.rows("select g from c where g = 'YES'") == []
    with pytest.raises(CheckViolationError, match="`k`"):
        house.sql("insert into c (x) values ('NO')")


def test_a_check_is_repeated_if_a_column_gets_a_collation(house: House) -> None:
    house.sql("create table c (x string)")
    house.sql("alter table c add constraint k check (x <> 'no')")
    house.sql("insert into c values ('NO')")
    with pytest.raises(CheckViolationError, match="`k`"):
        house.sql("alter table c alter column x type string collate UTF8_LCASE")


# What is refused


@pytest.mark.parametrize(
    "statement",
    [
        "create table n (x string) default collation UTF8_LCASE",
        "alter table t default collation UTF8_LCASE",
        "create view v default collation UTF8_LCASE as select 'a' as x",
    ],
)
def test_a_default_collation_is_refused(people: House, statement: str) -> None:
    with pytest.raises(UnsupportedStatementError, match=r"(?i)default collation UTF8_LCASE"):
        people.sql(statement)


def test_an_expression_of_several_collations_is_refused_by_spark(people: House) -> None:
    for query in ("select nvl(name, plain) as x from t", "select name from t union all select 'x'"):
        with pytest.raises(SiltError, match=r"(?i)collat"):
            people.sql(f"create table n as {query}")


@pytest.mark.parametrize(
    "statement",
    [
        f"create table n (x {COLLATED}, z int) partitioned by (x)",
        "create table n partitioned by (x) as select 'A' collate UNICODE as x, 1 as z",
        "create or replace table t partitioned by (name) as select * from t",
    ],
)
def test_a_collated_partition_column_is_refused(people: House, statement: str) -> None:
    with pytest.raises(UnsupportedStatementError, match=r"collate U.* cannot be a partition column"):
        people.sql(statement)
    assert people.log("t").snapshot().version == 3


def test_a_partition_column_gets_no_collation(house: House) -> None:
    house.sql("create table p (x string, z int) partitioned by (x)")
    with pytest.raises(UnsupportedStatementError, match="cannot be a partition column"):
        house.sql("alter table p alter column x type string collate UNICODE_CI")


@pytest.mark.parametrize("kind", ["char(3) collate UNICODE_CI", "varchar(3) collate UTF8_LCASE"])
def test_a_length_with_a_collation_is_refused(house: House, kind: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="both a length and a collation"):
        house.sql(f"create table n (x {kind})")


def test_files_are_not_ordered_by_a_collated_column(people: House) -> None:
    with pytest.raises(UnsupportedStatementError, match="string collate UTF8_LCASE cannot be sorted"):
        people.sql("optimize t zorder by (name)")


# Tables of other writers


def given(people: House, old: str, new: str) -> House:
    """Opens the warehouse after a change to the schema in the table's first commit."""
    folder = people.root / "main" / "t" / "_delta_log"
    commit = folder / f"{0:020}.json"
    text = commit.read_text()
    assert old in text
    commit.write_text(text.replace(old, new))
    for crc in folder.glob("*.crc"):
        crc.unlink()
    return people.another()


@pytest.mark.in_folders("rewrites a file of the log")
@pytest.mark.parametrize("identifier", ["ICU.UNICODE_CI", "icu.UNICODE_CI.75.1"])
def test_an_identifier_may_have_a_version_and_any_case(people: House, identifier: str) -> None:
    other = given(people, "spark.UTF8_LCASE", identifier)
    assert other.rows("select id from t where name = 'ANN'") == [(0,)]
    assert type_of(other, "t") == "string collate UNICODE_CI"


@pytest.mark.in_folders("rewrites a file of the log")
@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("other.X", "the collation other.X, which Spark does not have"),
        ("icu.A(1)", "the collation icu.A"),
        ("icu.NO_SUCH", "the collation NO_SUCH, which this version of Spark does not have"),
    ],
)
def test_an_unknown_collation_is_refused_by_name(people: House, identifier: str, problem: str) -> None:
    other = given(people, "spark.UTF8_LCASE", identifier)
    with pytest.raises(SiltError, match=problem):
        other.rows("select * from t where name = 'a'")


@pytest.mark.in_folders("rewrites a file of the log")
def test_a_table_with_a_collated_partition_column_is_refused_by_name(people: House) -> None:
    other = given(people, '"partitionColumns":[]', '"partitionColumns":["name"]')
    with pytest.raises(UnsupportedFeatureError, match="the partition column `name` has the type"):
        other.rows("select * from t")


@pytest.mark.in_folders("adds a file to the table's folder")
def test_statistics_of_another_writer_rule_out_no_file(people: House) -> None:
    folder = people.root / "main" / "t"
    lines = []
    for add in people.log("t").snapshot().add_files():
        (name,) = pq.read_table(folder / add.path)["name"].to_pylist()
        bounds = {"minValues": {"name": name}, "maxValues": {"name": name}, "nullCount": {"name": 0}}
        lines.append(json.dumps({"add": {**add.to_json(), "stats": json.dumps({"numRecords": 1, **bounds})}}))
    (folder / "_delta_log" / f"{4:020}.json").write_text("\n".join(lines) + "\n")
    other = people.another()
    assert other.rows("select id from t where name in ('ANN', 'Carl')") == [(0,), (2,)]
    assert other.rows("select id from t where name > 'B' and name <= 'BOB'") == [(1,)]
    assert other.rows("select min(name), max(name) from t") == [("Ann", "CARL")]
    other.sql("delete from t where name = 'BOB'")
    assert other.rows("select count(*) from t") == [(2,)]


# Values with a collation in tables without one


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


def test_a_merge_by_an_explicit_collation_finds_rows_of_a_plain_column(people: House) -> None:
    people.sql("merge into t using (select 'ANN' as n) s on t.plain = s.n collate UTF8_LCASE when matched then delete")
    assert people.rows("select id from t") == [(1,), (2,)]
    values: Any = people.rows("select plain from t where plain collate UNICODE_CI = 'BOB'")
    assert values == [("bob",)]
