"""A build records the facts that determine its rows; the logs alone decide whether its table is reused."""

from __future__ import annotations

import contextlib

import pytest

from dbt.adapters.silt.engine.builds.present import decide_now
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, Effect
from tests.unit.engine.house import House

NOON = 1_772_366_400_000
DAY_MS = 86_400_000
RAW = "create table raw as select id from range(3)"
T = "create or replace table t as select * from raw"
REUSED = "unchanged since silt.main.t@v0"
CHANGED = "a statement before it changed its session"


def built(house: House, statement: str, **build: object) -> None:
    house.warehouse.execute(statement, build=Build("t", "code", at_ms=NOON, **build))  # type: ignore[arg-type]


def decided(house: House, text: str = "", at_ms: int = NOON, effect: Effect = Effect.REPLACES) -> str:
    wanted = Build("t", "code", at_ms=at_ms, effect=effect)
    return str(decide_now(house.warehouse.catalog, house.log("t"), wanted, text))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("optimize raw", REUSED),
        ("alter table raw set tblproperties ('a' = 'b')", REUSED),
        ("comment on table raw is 'orders'", REUSED),
        ("alter table raw alter column id comment 'key'", REUSED),
        ("delete from raw where id = 99", REUSED),
        ("optimize t", REUSED),
        ("alter table t alter column id comment 'key'", REUSED),
        ("insert into raw values (9)", "silt.main.raw changed (v0 -> v1)"),
        ("alter table raw add columns (name string)", "silt.main.raw has other columns"),
        ("insert into t values (9)", "silt.main.t was changed by v1 (WRITE)"),
        ("alter table t add columns (name string)", "silt.main.t was changed by v1 (ADD COLUMNS)"),
        ("drop table raw", "silt.main.raw may have changed: it is no longer a table of this warehouse"),
        ("create or replace table raw as select id from range(3)", "silt.main.raw changed (v0 -> v1)"),
    ],
)
def test_the_logs_decide_whether_a_table_is_reused(house: House, change: str, expected: str) -> None:
    house.sql(RAW)
    built(house, T)
    house.sql(change)
    assert decided(house) == expected


def test_a_view_is_an_input_with_its_definition_and_its_tables(house: House) -> None:
    house.sql(RAW)
    house.sql("create view v as select id from raw")
    built(house, "create table t as select * from v")
    assert decided(house) == REUSED
    house.sql("create or replace view v as select id from raw")
    assert decided(house) == REUSED
    house.sql("create or replace view v as select id + 1 as id from raw")
    assert decided(house) == "silt.main.v has a new definition"
    built(house, "create or replace table t as select * from v")
    house.sql("insert into raw values (9)")
    assert decided(house) == "silt.main.raw changed (v0 -> v1)"


def test_the_files_of_a_source_are_inputs(house: House, tmp_path_factory: pytest.TempPathFactory) -> None:
    files = tmp_path_factory.mktemp("landing")
    (files / "a.csv").write_text("1\n")
    query = f"select * from read_files('{files}', format => 'csv', schema => 'id int')"
    built(house, f"create table t as {query}")
    assert decided(house, query) == REUSED
    (files / "b.csv").write_text("2\n")
    assert decided(house, query) == f"the files of {files} changed"


GIVEN = "merge into t using ({}) s on s.id = t.id when not matched then insert *"


@pytest.mark.parametrize(
    ("more", "expected"), [("", "unchanged since silt.main.t@v1"), ("\n, rand()", "it uses rand()")]
)
def test_files_and_functions_in_the_given_text_of_a_build_are_inputs(
    house: House, tmp_path_factory: pytest.TempPathFactory, more: str, expected: str
) -> None:
    files = tmp_path_factory.mktemp("landing")
    (files / "a.csv").write_text("1\n")
    house.sql("create function twice(id int) returns int return id * 2")
    house.sql("create table t (id int)")
    query = f"select twice(id) as id from read_files('{files}', format => 'csv', schema => 'id int')"
    built(house, GIVEN.format(query), text=query + more)
    assert decided(house, query) == expected
    (files / "b.csv").write_text("2\n")
    assert decided(house, query) != "unchanged since silt.main.t@v1"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select rand() as x from raw", "it uses rand()"),
        ("select * from chance", "it uses rand()"),
        ("select tossed() as x", "it uses rand()"),
        ("select * from information_schema.tables", "it reads information_schema.tables"),
        ("select * from sparks_own", "it reads sparks_own, which is not in the warehouse"),
    ],
)
def test_a_table_is_built_if_its_inputs_cannot_be_known(house: House, query: str, reason: str) -> None:
    house.sql(RAW)
    house.sql("create view chance as select rand() as x from raw")
    house.sql("create function tossed() returns double return rand()")
    house.warehouse.spark.range(1).createOrReplaceTempView("sparks_own")
    built(house, f"create table t as {query}")
    assert decided(house) == reason


def test_the_date_is_an_input(house: House) -> None:
    built(house, "create table t as select current_date as day")
    assert decided(house, at_ms=NOON + 1000) == REUSED
    assert decided(house, at_ms=NOON + DAY_MS) == "it depends on the date, which was 2026-03-01"


def test_a_write_that_reads_its_own_table_is_reused_once_it_changes_nothing(house: House) -> None:
    house.sql(RAW)
    built(house, "create table t as select * from raw where id < 0")
    insert = "insert into t select id from raw where id > (select coalesce(max(id), -1) from t)"
    built(house, insert)
    assert decided(house, effect=Effect.ADDS) == "it adds rows, and the last build changed the table"
    assert decided(house, effect=Effect.REPEATS) == "it reads its own table, which the last build changed"
    built(house, insert)
    assert decided(house, effect=Effect.ADDS) == "unchanged since silt.main.t@v2"


def test_facts_in_an_invalid_form_are_ignored(house: House) -> None:
    house.sql(RAW)
    built(house, T)
    info = next(house.log("t").newest_commits()).info
    assert BuildFacts.of_info(info) is not None
    for body in ("text", {}, {"owner": "t", "code": "c", "environment": "", "tables": {"a": {"id": 1}}}):
        object.__setattr__(info, "extra", {**info.extra, "build": body})
        assert BuildFacts.of_info(info) is None


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("set spark.sql.ansi.enabled = false", CHANGED),
        ("set time zone 'Asia/Tokyo'", CHANGED),
        ("reset spark.sql.ansi.enabled", CHANGED),
        ("use main", CHANGED),
        ("declare or replace variable silt_x int default 1", CHANGED),
        ("create temporary function upper as 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower'", CHANGED),
        ("set spark.sql.ansi.enabled", REUSED),
        ("create or replace temporary view shown as select 1 as id", REUSED),
    ],
)
def test_a_session_that_a_statement_changed_is_unknown(house: House, statement: str, reason: str) -> None:
    other = house.in_one_cut()
    other.sql(RAW)
    with contextlib.suppress(SiltError):  # this Spark has no Hive
        other.sql(statement)
    built(other, T)
    assert decided(other) == reason


def test_a_temporary_view_is_unknown(house: House) -> None:
    house.sql("create temporary view shown as select 1 as id")
    built(house, "create table t as select * from shown")
    assert decided(house) == "it reads shown, which is not in the warehouse"


@pytest.mark.parametrize("query", ["select * from raw version as of 0", "select * from table_changes('raw', 0)"])
def test_old_versions_and_changes_of_a_table_are_inputs(house: House, query: str) -> None:
    house.sql(RAW)
    house.sql("alter table raw set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    house.sql("insert into raw values (9)")
    built(house, f"create table t as {query.replace('0)', '2)')}")
    house.sql("insert into raw values (10)")
    assert decided(house).startswith("silt.main.raw changed (v")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("insert into t replace where day >= current_date - 3 select * from raw where day > date '2100-01-01'", "day"),
        ("insert into t replace where day >= now() select * from raw where day > date '2100-01-01'", "it uses now()"),
        ("merge into t using raw on t.day = raw.day and t.day < now() when matched then delete", "it uses now()"),
        ("merge into t using raw on t.day = raw.day when matched and rand() < 2 then delete", "it uses rand()"),
        ("merge into t using raw on t.day = raw.day when matched then update set day = current_date", "day"),
    ],
)
def test_the_conditions_of_a_write_are_searched_for_functions_that_vary(
    house: House, statement: str, reason: str
) -> None:
    house.sql("create table raw as select date '2026-01-01' as day")
    house.sql("create table t as select * from raw")
    built(house, statement)
    expected = "it depends on the date, which was 2026-03-01" if reason == "day" else reason
    assert expected in decided(house, at_ms=NOON + DAY_MS)
