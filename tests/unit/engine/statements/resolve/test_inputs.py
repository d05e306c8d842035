"""A commit records the inputs of its statement, so that later changes of them can be listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.runs.logical_run.changed_inputs import changed_inputs
from tests.unit.engine.house import House

NO_TABLE = "silt.main.raw may have changed: it is no longer a table of this warehouse"
RAW = "create table raw as select id from range(3)"


def commit(house: House, table: str = "t") -> Commit:
    return next(house.log(table).newest_commits())


def changed(house: House, code: str = "") -> list[str]:
    log = house.log("t")
    return [each.text for each in changed_inputs(house.warehouse.catalog, log.name, commit(house).info, code)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("insert into raw values (9)", ["silt.main.raw changed (v0 -> v1)"]),
        ("delete from raw where id = 1", ["silt.main.raw changed (v0 -> v1)"]),
        ("delete from raw where id = 99", []),
        ("optimize raw", []),
        ("alter table raw set tblproperties ('a' = 'b')", []),
        ("comment on table raw is 'orders'", []),
        ("drop table raw", [NO_TABLE]),
        (
            "alter table raw rename to other",
            [NO_TABLE],
        ),
    ],
)
def test_a_table_has_changed_if_a_later_commit_changed_its_data(house: House, change: str, expected: list[str]) -> None:
    house.sql(RAW)
    house.sql("create table t as select * from raw")
    house.sql(change)
    assert changed(house) == expected


def test_a_table_that_was_dropped_and_created_again_has_changed(house: House) -> None:
    house.sql(RAW)
    house.sql("insert into raw values (9)")
    house.sql("create table t as select * from raw")
    house.sql("drop table raw")
    house.sql(RAW)
    assert changed(house) == ["silt.main.raw was replaced"]
    house.sql("optimize raw")
    house.sql("alter table raw set tblproperties ('a' = 'b')")
    assert changed(house) == ["silt.main.raw was replaced"]


def test_the_written_table_is_not_an_input(house: House) -> None:
    house.sql("create table t as select 1L as id")
    house.sql("insert into t select max(id) + 1 from t")
    assert changed(house) == []


def test_views_and_functions_are_inputs_also_through_other_views(house: House) -> None:
    house.sql(RAW)
    house.sql("create function twice(x bigint) returns bigint return x * 2")
    house.sql("create view inner_view as select twice(id) as id from raw")
    house.sql("create view outer_view as select id from inner_view")
    house.sql("create table t as select * from outer_view")
    assert changed(house) == []
    house.sql("create or replace view inner_view as select id from raw")
    assert changed(house) == ["silt.main.inner_view has a new definition"]
    house.sql("create or replace view inner_view as select twice(id) as id from raw")
    house.sql("create or replace function twice(x bigint) returns bigint return x + x")
    house.sql("insert into raw values (9)")
    assert changed(house) == ["silt.main.raw changed (v0 -> v1)", "silt.main.twice has a new definition"]
    house.sql("drop view inner_view")
    assert "silt.main.inner_view has a new definition" in changed(house)


def test_inputs_that_the_same_transaction_has_changed_have_not_changed_since(house: House) -> None:
    house.sql(RAW)
    house.sql("create table t (id bigint)")
    for _ in range(3):
        with house.warehouse.transaction() as together:
            together.sql("insert into raw values (7)")
            together.sql("insert into raw values (8)")
            together.sql("insert into t select * from raw")
        assert changed(house) == []
    house.sql("insert into raw values (9)")
    assert changed(house) == ["silt.main.raw changed (v3 -> v4)"]


@pytest.mark.parametrize("pattern", ["", "/*.csv", "/a.csv", "/[ab].{csv,txt}"])
def test_files_are_inputs_by_path_size_and_time(house: House, tmp_path: Path, pattern: str) -> None:
    tmp_path = tmp_path / "files"
    tmp_path.mkdir()
    (tmp_path / "a.csv").write_text("1\n")
    path = f"{tmp_path}{pattern}"
    code = f"select * from read_files('{path}', format => 'csv', schema => 'id int')"
    house.sql(f"create table t as {code}")
    assert changed(house, code) == []
    (tmp_path / "a.csv").write_text("12\n")
    assert changed(house, code) == [f"the files of {path} changed"]
    assert changed(house, "select 1") == [f"the files of {path} may have changed"], "a log may name any path"


def test_files_that_the_pattern_does_not_match_are_not_inputs(house: House, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1\n")
    code = f"select * from read_files('{tmp_path}/in/*.csv', schema => 'id int')"
    house.sql(f"create table t as {code}")
    (tmp_path / "b.csv").write_text("1\n")
    (tmp_path / "in" / "b.txt").write_text("1\n")
    assert changed(house, code) == []
    (tmp_path / "in" / "b.csv").write_text("2\n")
    assert changed(house, code) == [f"the files of {tmp_path}/in/*.csv changed"]
