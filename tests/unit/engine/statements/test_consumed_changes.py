"""A table that consumes the changes of another table: each change once, whatever happens."""

from __future__ import annotations

import re

import pytest

from dbt.adapters.silt.engine.kernel.errors import ChangesMissingError, InvalidStatementError, SiltError
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from tests.unit.engine.house import House, side_by_side

APPEND = "insert into d select id, _change_type from silt_changes('main.t', consumer => 'main.d')"
UPSERT = (
    "merge into m using (select * from silt_changes('main.t', consumer => 'm', as => 'upserts', key => 'id')) s "
    "on m.id = s.id when matched and s._change_type = 'delete' then delete when matched then update set size = s.size "
    "when not matched and s._change_type = 'upsert' then insert (id, size) values (s.id, s.size)"
)


@pytest.fixture
def consuming(house: House) -> House:
    """A table `t` with two rows, and an empty table `d`."""
    house.sql("create table t (id int, size int)")
    house.sql("insert into t values (1, 1), (2, 2)")
    house.sql("create table d (id int, kind string)")
    return house


def position(house: House, table: str = "d") -> int | None:
    (found,) = [each.version for key, each in house.log(table).snapshot().transactions.items() if "silt-changes" in key]
    return found


def test_each_statement_consumes_the_changes_since_the_last(consuming: House) -> None:
    consuming.sql(APPEND)
    assert consuming.rows("select * from d") == [(1, "insert"), (2, "insert")]
    assert position(consuming) == 1
    consuming.sql("insert into t values (3, 3)")
    consuming.sql("delete from t where id = 1")
    assert consuming.rows("select id from silt_changes('main.t', consumer => 'main.d')") == [(1,), (3,)]
    consuming.sql(APPEND)
    assert consuming.rows("select * from d") == [(1, "delete"), (1, "insert"), (2, "insert"), (3, "insert")]
    assert position(consuming) == 3
    consuming.sql(APPEND)
    assert consuming.sql("select * from d").count() == 4


def test_a_merge_applies_the_newest_row_of_each_key_and_deletes_keys_that_are_gone(consuming: House) -> None:
    consuming.sql("create table m (id int, size int)")
    consuming.sql(UPSERT)
    consuming.sql("update t set size = 20 where id = 2")
    consuming.sql("delete from t where id = 1")
    consuming.sql("insert into t values (3, 3)")
    consuming.sql(UPSERT)
    assert consuming.rows("select * from m") == consuming.rows("select * from t") == [(2, 20), (3, 3)]


def test_a_statement_without_new_rows_still_moves_the_position(consuming: House) -> None:
    consuming.sql(APPEND)
    consuming.sql("delete from t where id = 99")
    consuming.sql("optimize t")
    consuming.sql("create table m (id int, size int)")
    consuming.sql(UPSERT)
    consuming.sql("delete from t where id = 1")
    consuming.sql("insert into t values (1, 1)")
    for statement, table in ((UPSERT, "m"), (APPEND, "d")):
        consuming.sql(statement)
        assert position(consuming, table) == consuming.log("t").snapshot().version


def test_a_statement_with_a_txn_that_is_recorded_consumes_nothing(consuming: House) -> None:
    consuming.sql(APPEND, ("run", 1))
    consuming.sql("insert into t values (3, 3)")
    assert consuming.fetched(APPEND) is not None
    consuming.sql("insert into t values (4, 4)")
    done = position(consuming)
    assert consuming.sql(APPEND, ("run", 1)).first().skipped  # type: ignore[union-attr]
    assert position(consuming) == done


def test_a_statement_that_fails_before_its_commit_consumes_nothing(consuming: House) -> None:
    consuming.sql("alter table d add constraint few check (id < 3)")
    consuming.sql(APPEND)
    consuming.sql("insert into t values (3, 3)")
    with pytest.raises(SiltError):
        consuming.sql(APPEND)
    assert position(consuming) == 1
    consuming.sql("alter table d drop constraint few")
    consuming.sql(APPEND)
    assert consuming.rows("select id from d") == [(1,), (2,), (3,)]


def test_of_two_writers_that_consume_the_same_changes_only_one_commits_them(patient_house: House) -> None:
    house = patient_house
    house.sql("create table t (id int, size int)")
    house.sql("create table d (id int, kind string)")
    house.sql("insert into t values (1, 1)")
    writers = [house.another() for _ in range(3)]
    side_by_side([lambda writer=writer: writer.sql(APPEND) for writer in writers])  # type: ignore[misc]
    assert house.rows("select * from d") == [(1, "insert")]


def test_restoring_the_consumer_moves_its_position_back(consuming: House) -> None:
    consuming.sql(APPEND)
    consuming.sql("insert into t values (3, 3)")
    consuming.sql(APPEND)
    consuming.sql("restore table d to version as of 1")
    assert position(consuming) == 1
    consuming.sql(APPEND)
    assert consuming.rows("select id from d") == [(1,), (2,), (3,)]


def test_a_table_that_is_created_anew_consumes_all_rows(consuming: House) -> None:
    rebuild = "create or replace table d as select id from silt_changes('main.t', consumer => 'main.d')"
    consuming.sql(rebuild)
    consuming.sql("insert into t values (3, 3)")
    consuming.sql(rebuild)
    assert consuming.rows("select * from d") == [(1,), (2,), (3,)]
    assert position(consuming) == 2
    consuming.sql(rebuild)
    assert consuming.rows("select * from d") == [(1,), (2,), (3,)]
    consuming.sql("insert into t values (4, 4)")
    consuming.sql("insert into d select id from silt_changes('main.t', consumer => 'main.d')")
    assert consuming.rows("select * from d") == [(1,), (2,), (3,), (4,)]


def test_a_table_that_is_replaced_by_other_rows_has_consumed_nothing(consuming: House) -> None:
    consuming.sql(APPEND)
    consuming.sql("insert overwrite d values (9, 'x')")
    assert position(consuming) == -1
    with pytest.raises(InvalidStatementError, match="does not record which changes"):
        consuming.sql(APPEND)


def test_a_renamed_table_and_a_renamed_consumer_continue(consuming: House) -> None:
    consuming.sql(APPEND)
    consuming.sql("alter table t rename to t2")
    consuming.sql("alter table d rename to d2")
    consuming.sql("insert into t2 values (3, 3)")
    consuming.sql("insert into d2 select id, _change_type from silt_changes('main.t2', consumer => 'main.d2')")
    assert consuming.rows("select id from d2") == [(1,), (2,), (3,)]


def test_two_inputs_are_consumed_at_one_cut_with_a_position_each(consuming: House) -> None:
    consuming.sql("create table u (id int)")
    consuming.sql("insert into u values (7)")
    both = (
        "insert into d select id, 't' from silt_changes('main.t', consumer => 'main.d') "
        "union all select id, 'u' from silt_changes('main.u', consumer => 'main.d')"
    )
    consuming.sql(both)
    consuming.sql("insert into u values (8)")
    consuming.sql(both)
    assert consuming.rows("select * from d") == [(1, "t"), (2, "t"), (7, "u"), (8, "u")]


def test_an_input_that_is_named_twice_is_consumed_once(consuming: House) -> None:
    consuming.sql(
        "insert into d select a.id, b._change_type from silt_changes('main.t', consumer => 'main.d') a "
        "join silt_changes('main.t', consumer => 'main.d') b on a.id = b.id"
    )
    assert consuming.rows("select id from d") == [(1,), (2,)]
    recorded = [each for commit in consuming.log("d").commits(1) for each in commit.actions]
    assert len([each for each in recorded if isinstance(each, SetTransaction)]) == 1


def test_a_consumer_with_rows_begins_after_the_version_that_it_is_given(consuming: House) -> None:
    consuming.sql("insert into d values (1, 'x'), (2, 'x')")
    consuming.sql("insert into t values (3, 3)")
    begin = "insert into d select id, _change_type from silt_changes('t', consumer => 'd', after => 1)"
    consuming.sql(begin)
    consuming.sql("insert into t values (4, 4)")
    consuming.sql(begin)
    assert consuming.rows("select id from d") == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(
    ("before", "statement", "message"),
    [
        ("insert into d values (9, 'x')", APPEND, "does not record which changes of silt.main.t"),
        ("select 1", APPEND.replace("'main.d'", "'main.other'"), "consumed by silt.main.other, but"),
        ("select 1", APPEND.replace("'main.d'", "'spark_catalog.default.d'"), "is not in the warehouse"),
        (
            "select 1",
            "insert into d select a.id, '' from silt_changes('t', consumer => 'd', until => 0) a "
            "join silt_changes('t', consumer => 'd', until => 1) b on a.id = b.id",
            "up to different versions",
        ),
    ],
)
def test_consumers_that_cannot_work_are_refused_by_name(
    consuming: House, before: str, statement: str, message: str
) -> None:
    consuming.sql(before)
    with pytest.raises(InvalidStatementError, match=re.escape(message)):
        consuming.sql(statement)


def test_a_table_that_was_dropped_and_created_again_is_not_the_consumed_table(consuming: House) -> None:
    consuming.sql(APPEND)
    consuming.sql("drop table t")
    consuming.sql("create table t (id int, size int)")
    with pytest.raises(ChangesMissingError, match="dropped and created again"):
        consuming.sql(APPEND)


def test_changes_that_the_log_no_longer_has_are_refused_with_the_way_out(house: House) -> None:
    house.sql("create table t (id int, size int) tblproperties ('delta.checkpointInterval' = '2')")
    house.sql("create table d (id int, kind string)")
    house.sql(APPEND)
    for _ in range(3):
        house.sql("insert into t values (3, 3)")
    for version in (0, 1):
        house.log("t").store.delete(commit_path(version))
    with pytest.raises(ChangesMissingError, match="after version 0 can no longer be read"):
        house.another().sql(APPEND)
