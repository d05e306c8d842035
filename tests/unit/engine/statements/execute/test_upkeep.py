"""OPTIMIZE TABLES: upkeep of many tables within a budget."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import Row

from dbt.adapters.silt.engine.catalog.upkeep import survey, uses_in
from dbt.adapters.silt.engine.commands.maintenance.upkeep import upkeep
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, RemoveFile
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from tests.unit.engine.catalog.test_rollback import Killed, Mortal
from tests.unit.engine.house import House, side_by_side

ALL = "optimize tables budget '5 minutes'"


def splintered(house: House, name: str, files: int = 4, properties: Mapping[str, str] | None = None) -> None:
    """Creates a table of small files, each with ten rows."""
    given = ", ".join(f"'{key}' = '{value}'" for key, value in (properties or {}).items())
    house.sql(f"create table {name} (id bigint, v string)" + (f" tblproperties ({given})" if given else ""))
    for part in range(files):
        first = part * 10
        house.sql(f"insert into {name} select /*+ coalesce(1) */ id, 'a' from range({first}, {first + 10})")


def kept(house: House, statement: str = ALL) -> dict[str, Row]:
    return {row.table.rpartition(".")[2]: row for row in house.fetched(statement)}


def commits(house: House, name: str, operation: str = "OPTIMIZE") -> Iterator[Commit]:
    return (commit for commit in house.log(name).commits() if commit.info.operation == operation)


def _run(house: House) -> None:
    house.fetched(ALL)


def number_of_files(house: House, name: str) -> int:
    return house.log(name).snapshot().num_files


def test_the_small_files_of_each_table_become_one_file_and_no_row_changes(house: House) -> None:
    splintered(house, "a")
    splintered(house, "b", files=8)
    splintered(house, "c", files=3)
    before = {name: house.rows(f"select * from {name}") for name in "abc"}
    found = kept(house)
    assert [(name, row.bins, row.files, row.waits) for name, row in sorted(found.items())] == [
        ("a", 1, 4, None),
        ("b", 1, 8, None),
        ("c", 0, 3, None),
    ]
    assert [number_of_files(house, name) for name in "abc"] == [1, 1, 3]
    assert {name: house.rows(f"select * from {name}") for name in "abc"} == before
    assert all(row.rewritten == row.size > row.written > 0 for name, row in found.items() if name != "c")


def test_a_second_upkeep_commits_nothing(house: House) -> None:
    splintered(house, "a")
    kept(house)
    version = house.log("a").snapshot().version
    assert kept(house)["a"].rewritten == 0
    assert house.log("a").snapshot().version == version


def test_its_commit_is_an_automatic_optimize_that_readers_of_changes_ignore(house: House) -> None:
    splintered(house, "a")
    before = house.log("a").snapshot().version
    kept(house)
    (commit,) = commits(house, "a")
    assert commit.info.operation_parameters is not None and commit.info.operation_parameters["auto"] in (True, "true")
    assert not any(each.data_change for each in commit.actions if isinstance(each, AddFile | RemoveFile))
    changes = f"select * from silt_changes('main.a', after => {before})"
    assert house.rows(changes) == []


def test_marked_rows_are_left_out_of_the_files(house: House) -> None:
    splintered(house, "a", files=1, properties={"delta.enableDeletionVectors": "true"})
    house.sql("delete from a where id < 2")
    assert kept(house)["a"].bins == 0
    house.sql("delete from a where id < 3")
    row = kept(house)["a"]
    assert (row.bins, round(row.marked, 1)) == (1, 0.3)
    assert house.log("a").snapshot().files["deletion_vector"].null_count == 1
    assert house.rows("select id from a") == [(id,) for id in range(3, 10)]


def test_each_bin_is_a_commit_of_its_own(house: House) -> None:
    house.sql("create table a (id bigint, day string) partitioned by (day)")
    for _ in range(4):
        house.sql("insert into a select id, cast(id % 3 as string) from range(9)")
    assert kept(house)["a"].bins == 3
    assert len(list(commits(house, "a"))) == 3


@pytest.mark.parametrize("budget", ["0 minutes", "abc", "-1 hour"])
def test_a_budget_that_is_no_time_is_refused(house: House, budget: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="such as `5 minutes`"):
        house.sql(f"optimize tables budget '{budget}'")


def test_tables_that_do_not_exist_and_views_are_refused(house: House) -> None:
    splintered(house, "a")
    house.sql("create view v as select 1 as id")
    with pytest.raises(errors.RelationNotFoundError):
        house.sql("optimize tables (a, missing) budget '1 minute'")
    with pytest.raises(errors.UnsupportedStatementError, match="tables of the warehouse"):
        house.sql("optimize tables (v) budget '1 minute'")
    with pytest.raises(errors.UnsupportedStatementError, match="tables of the warehouse"):
        house.sql("optimize tables in nowhere budget '1 minute'")
    assert list(commits(house, "a")) == []


def test_only_the_named_tables_are_kept_up(house: House) -> None:
    splintered(house, "a")
    splintered(house, "b")
    assert kept(house, "optimize tables in main (b) budget '1 minute'").keys() == {"b"}
    assert [number_of_files(house, name) for name in "ab"] == [4, 1]


def test_a_dry_run_says_what_would_be_done(house: House) -> None:
    splintered(house, "a")
    (row,) = house.fetched(f"{ALL} dry run")
    assert (row.bins, row.small_files, row.rewritten, row.waits) == (1, 4, 0, None) and row.score > 1000
    assert number_of_files(house, "a") == 4


def test_a_table_whose_property_forbids_it_waits(house: House) -> None:
    splintered(house, "a", properties={"delta.autoOptimize.autoCompact": "false"})
    assert kept(house)["a"].waits == "its property `delta.autoOptimize.autoCompact` is false"
    assert number_of_files(house, "a") == 4


def test_a_table_that_an_open_transaction_uses_waits(house: House) -> None:
    splintered(house, "a")
    splintered(house, "b")
    other = house.another()
    other.sql("begin")
    other.sql("update a set v = 'b' where id = 1")
    found = kept(house)
    assert found["a"].waits == "a run or branch that is not published uses it" and found["b"].waits is None
    other.sql("commit")
    assert kept(house)["a"].waits is None


def test_it_cannot_be_part_of_a_transaction(house: House) -> None:
    splintered(house, "a")
    house.sql("begin")
    with pytest.raises(errors.UnsupportedStatementError, match="cannot be part of a transaction"):
        house.sql(ALL)


def test_without_time_all_tables_wait(house: House) -> None:
    splintered(house, "a")
    found = kept(house, "optimize tables budget '0.5 seconds'")
    assert found["a"].waits == "the budget ended" and number_of_files(house, "a") == 4


def test_another_writer_who_changes_the_files_meanwhile_makes_only_that_table_wait(house: House) -> None:
    splintered(house, "a")
    splintered(house, "b")
    found = survey(house.warehouse.catalog, list(house.warehouse.catalog.all_tables()))
    house.sql("update a set v = 'b' where id = 1")
    done = upkeep(house.warehouse.spark, uses_in(house.warehouse.catalog), found, 60, WriteSettings())
    assert [each.waits for each in done.tables] == ["another writer changes it", ""]
    assert str(done).startswith("compacted 1 table, ") and str(done).endswith(" of 1m; 1 table waits")
    assert [number_of_files(house, name) for name in "ab"] == [4, 1]


def test_two_upkeeps_at_once_leave_each_row_once(house: House) -> None:
    for name in "abcd":
        splintered(house, name)
    houses = [house.another(), house.another()]
    side_by_side([lambda: _run(houses[0]), lambda: _run(houses[1])])
    assert [number_of_files(house, name) for name in "abcd"] == [1] * 4
    assert all(house.rows(f"select count(*), count(distinct id) from {name}") == [(40, 40)] for name in "abcd")
    assert all(len(list(commits(house, name))) == 1 for name in "abcd")


def test_files_are_deleted_after_their_retention_but_not_those_of_clones(house: House) -> None:
    for name in "ab":
        splintered(house, name, properties={"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    house.sql("create table c shallow clone b")
    kept(house)
    found = kept(house)
    assert found["a"].deleted > 0 and found["b"].deleted == 0
    assert house.rows("select count(*) from c") == [(40,)]
    assert len(list(commits(house, "a", "VACUUM END"))) == 1


@pytest.mark.parametrize(("after", "clustered"), [(False, ""), (True, ""), (True, "cluster by (id)")])
def test_an_upkeep_that_is_killed_at_any_step_changes_no_row_and_is_completed_by_the_next(
    house: House, after: bool, clustered: str
) -> None:
    retention = "'delta.deletedFileRetentionDuration' = 'interval 0 seconds'"
    house.sql(f"create table a (id bigint) {clustered} tblproperties ({retention})")
    for step in range(1, 60):
        house.sql("insert into a select /*+ repartition(6) */ id from range(60)")
        before, left = house.rows("select count(*), sum(id) from a"), [step]
        (found,) = survey(house.warehouse.catalog, house.warehouse.catalog.all_tables())
        mortal = DeltaLog(Mortal(found.log.store, left, after), found.log.name)
        with contextlib.suppress(Killed):
            uses = uses_in(house.warehouse.catalog)
            upkeep(house.warehouse.spark, uses, [replace(found, log=mortal)], 60, WriteSettings())
        assert house.rows("select count(*), sum(id) from a") == before
        if left[0] > 0:
            assert step > 5 and number_of_files(house, "a") < 6
            return
    pytest.fail("the steps did not end")


def upkeep_before_the_commit(house: House, statement: str) -> Outcome:
    """Runs a statement; upkeep by another session commits when the statement has written its files."""
    other, real = house.another(), transaction.commit
    pending = [lambda: _run(other)]

    def overtaken(*given: Any) -> Any:
        if pending:
            pending.pop()()
        return real(*given)

    with mock.patch.object(transaction, "commit", overtaken):
        outcome = house.warehouse.execute(statement).outcome
    assert outcome is not None and not pending
    return outcome


FEATURES = (
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true'",
)


@pytest.mark.parametrize("features", FEATURES, ids=["vectors", "mapped columns and row ids"])
@pytest.mark.parametrize("clustered", ["", "cluster by (id)"])
def test_a_statement_takes_back_the_bin_that_upkeep_commits_meanwhile(
    house: House, features: str, clustered: str
) -> None:
    columns = "key bigint generated always as identity, id bigint, v string"
    house.sql(f"create table a ({columns}) {clustered} tblproperties ({features})")
    for part in range(5):
        house.sql(f"insert into a (id, v) select /*+ coalesce(1) */ id + {10 * part}, 'a' from range(10)")
    before = house.rows("select key, id, if(id = 13, 'b', v) from a order by id")
    outcome = upkeep_before_the_commit(house, "update a set v = 'b' where id = 13")
    assert (outcome.statement_attempts, outcome.attempts, outcome.rows_updated) == (1, 2, 1)
    assert house.rows("select key, id, v from a order by id") == before
    assert number_of_files(house, "a") in (5, 6)
    assert kept(house)["a"].bins == 1 and number_of_files(house, "a") < 3
    assert house.rows("select key, id, v from a order by id") == before
    house.sql("insert into a (id, v) values (100, 'c')")
    assert house.rows("select count(distinct key) from a") == [(51,)]


def test_readers_of_changes_see_the_changed_row_of_a_bin_that_was_taken_back(house: House) -> None:
    splintered(house, "a")
    version = house.log("a").snapshot().version
    upkeep_before_the_commit(house, "update a set v = 'b' where id = 13")
    changes = house.rows(f"select id, v, _change_type from silt_changes('main.a', after => {version})")
    net = Counter((id, v) for id, v, kind in changes if kind == "insert")
    net.subtract((id, v) for id, v, kind in changes if kind == "delete")
    assert {row: times for row, times in net.items() if times} == {(13, "b"): 1, (13, "a"): -1}
