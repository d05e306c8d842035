"""The folder of an input is replaced by a copy, and commits follow with the same numbers as before.

The table has the same id, so only the files of a version tell that it is another version.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import ChangesMissingError
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.positions import END_OF_TIME, recorded_mark, recorded_position
from tests.unit.engine.house import House

pytestmark = pytest.mark.in_folders("copies a folder")

TOTALS = "select k, sum(v) as s from src group by k"
SUM = "create or replace table total as select sum(v) as s from src"
KEYED = f"insert into keyed by name replace changed keys (k) {TOTALS}"
CONSUMED = (
    "insert into seen select k, v from silt_changes('src', consumer => 'main.seen') where _change_type = 'insert'"
)


def copied(house: House) -> Path:
    copy = house.root / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(house.location("src"), copy)
    return copy


def restored(house: House) -> House:
    """Replaces the folder of the input by the copy; another process then opens the warehouse."""
    location = house.location("src")
    shutil.rmtree(location)
    shutil.copytree(house.root / "copy", location)
    return house.another()


@pytest.fixture
def shop(house: House) -> House:
    house.sql("set silt.reuse = unchanged")
    house.sql("create table src (k string, v int)")
    house.sql("insert into src values ('a', 1)")
    copied(house)
    house.sql("insert into src values ('b', 5)")
    house.sql(SUM)
    house.sql(f"create or replace table keyed changed keys (k) as {TOTALS}")
    house.sql("create table seen (k string, v int)")
    house.sql(CONSUMED)
    return house


def swapped(shop: House) -> House:
    """Restores the copy; then another commit has the number of the commit that was read."""
    house = restored(shop)
    house.sql("set silt.reuse = unchanged")
    house.sql("insert into src values ('z', 100)")
    return house


def rebuilt(house: House) -> str:
    commit = next(iter(house.log("keyed").newest_commits()))
    return str(commit.info.extra.get("rebuilt"))


def test_a_table_is_built_from_another_version_of_the_same_number(shop: House) -> None:
    assert shop.sql(SUM).collect()[0].skipped
    house = swapped(shop)
    assert house.log("src").snapshot().version == 2
    assert not house.sql(SUM).collect()[0].skipped
    assert house.rows("select s from total") == [(101,)]
    assert house.sql(SUM).collect()[0].skipped


def test_a_build_in_a_transaction_knows_the_version_of_its_input_that_was_published(shop: House) -> None:
    for statement in ("begin", "insert into src values ('c', 7)", SUM, "commit"):
        shop.sql(statement)
    assert shop.log("src").snapshot().version == 3 and shop.sql(SUM).collect()[0].skipped
    house = swapped(shop)
    house.sql("insert into src values ('y', 50)")
    assert house.log("src").snapshot().version == 3
    assert not house.sql(SUM).collect()[0].skipped
    assert house.rows("select s from total") == [(151,)]


def test_a_table_is_built_if_only_its_input_was_rearranged_after_it_was_restored(shop: House) -> None:
    house = swapped(shop)
    house.sql("optimize src")
    house.sql(SUM)
    assert house.rows("select s from total") == [(101,)]


def test_a_copy_of_the_version_that_was_read_changes_nothing(shop: House) -> None:
    copied(shop)
    house = restored(shop)
    house.sql("set silt.reuse = unchanged")
    assert house.sql(SUM).collect()[0].skipped
    house.sql(KEYED)
    assert rebuilt(house) == "None"
    house.sql(CONSUMED)
    assert house.rows("select count(*) from seen") == [(2,)]


@pytest.mark.parametrize("more", [0, 1])
def test_changed_keys_replace_all_rows_after_an_input_was_restored(shop: House, more: int) -> None:
    house = swapped(shop)
    for _ in range(more):
        house.sql("insert into src values ('y', 7)")
    house.sql(KEYED)
    assert "restored from a copy" in rebuilt(house)
    assert house.rows("select * from keyed") == house.rows(TOTALS)
    house.sql("update src set v = 2 where k = 'a'")
    house.sql(KEYED)
    assert rebuilt(house) == "None" and house.rows("select * from keyed") == house.rows(TOTALS)


def test_changed_keys_replace_all_rows_if_the_restored_input_has_fewer_versions(shop: House) -> None:
    house = restored(shop)
    house.sql(KEYED)
    assert "restored from a copy" in rebuilt(house)
    assert house.rows("select * from keyed") == house.rows(TOTALS)


@pytest.mark.parametrize("more", [0, 1])
def test_changes_of_a_restored_input_are_refused_until_the_consumer_is_built_again(shop: House, more: int) -> None:
    house = swapped(shop)
    for _ in range(more):
        house.sql("insert into src values ('y', 7)")
    with pytest.raises(ChangesMissingError, match="restored from a copy"):
        house.sql(CONSUMED)
    assert house.rows("select count(*) from seen") == [(2,)]
    house.sql(f"create or replace table seen as {CONSUMED.partition(' select ')[2].join(['select ', ''])}")
    house.sql("insert into src values ('x', 9)")
    house.sql(CONSUMED)
    assert house.rows("select * from seen") == house.rows("select * from src")


def test_a_position_records_the_version_by_a_time_that_never_expires(shop: House) -> None:
    consumer, source = (shop.log(name).snapshot() for name in ("seen", "src"))
    position = recorded_position(consumer, source.metadata.id)
    assert position is not None and position.last_updated is not None
    assert 0 < position.last_updated - END_OF_TIME < 86_400_000
    assert recorded_mark(position) == position.last_updated - END_OF_TIME


def edited(house: House, table: str, edit: Callable[[dict[str, object]], None]) -> None:
    """Rewrites the newest commit of a table as an earlier version of the package would have written it."""
    log = house.log(table)
    path = Path(house.location(table), commit_path(log.snapshot().version))
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for each in actions:
        edit(each)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in actions))


def test_facts_without_the_files_of_their_inputs_count_as_changed_once(shop: House) -> None:
    def without_content(action: dict[str, object]) -> None:
        info = action.get("commitInfo")
        if isinstance(info, dict):
            del info["build"]["tables"]["silt.main.src"]["content"]

    edited(shop, "total", without_content)
    house = shop.another()
    house.sql("set silt.reuse = unchanged")
    assert not house.sql(SUM).collect()[0].skipped
    assert house.sql(SUM).collect()[0].skipped


def test_a_position_without_a_mark_is_continued(shop: House) -> None:
    def without_mark(action: dict[str, object]) -> None:
        txn = action.get("txn")
        if isinstance(txn, dict) and str(txn["appId"]).startswith("silt-changes:"):
            txn["lastUpdated"] = END_OF_TIME

    edited(shop, "seen", without_mark)
    house = shop.another()
    house.sql("insert into src values ('c', 6)")
    house.sql(CONSUMED)
    assert house.rows("select * from seen") == house.rows("select * from src")


STEPS = ("insert", "insert", "delete", "optimize", "copy", "restore", "restore")


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long if seed > 1 else ()) for seed in range(12)])
def test_tables_hold_the_rows_of_their_queries_after_any_restore(house: House, seed: int) -> None:
    drawn, done = random.Random(seed), []
    house.sql("create table src (k string, v int)")
    house.sql("insert into src values ('a', 1)")
    copied(house)
    house.sql(f"create table keyed changed keys (k) as {TOTALS}")
    for number in range(10):
        step = drawn.choice(STEPS)
        done.append(step)
        if step == "copy":
            copied(house)
        elif step == "restore":
            house = restored(house)
        else:
            house.sql(
                {
                    "insert": f"insert into src values ('{drawn.choice('abc')}', {number})",
                    "delete": f"delete from src where k = '{drawn.choice('abc')}'",
                    "optimize": "optimize src",
                }[step]
            )
        if drawn.random() < 0.6:
            house.sql("set silt.reuse = unchanged")
            house.sql(SUM)
            house.sql(KEYED)
            assert house.rows("select s from total") == house.rows("select sum(v) from src"), done
            assert house.rows("select * from keyed") == house.rows(TOTALS), done
            done.append("build")
