"""Processes that run dbt on the same models concurrently, with one run id and with several.

`test_beaten_at_each_commit.py` tests each moment at which another run may commit, in one process.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.functional.exactly_once.dbt_process import Workplace

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace.make(tmp_path_factory.mktemp("built"))
    assert place.build("run-1", 1) == 0, place.output()
    return place


@pytest.fixture(scope="module")
def built_twice(built: Workplace, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = built.copy(tmp_path_factory.mktemp("twice") / "copy")
    assert place.build("run-2", 2) == 0, place.output()
    return place


def test_three_first_runs_of_one_id_in_one_folder_share_the_work_even_if_one_is_killed(
    built: Workplace, tmp_path: Path
) -> None:
    place = Workplace.make(tmp_path / "shared")
    processes = [place.start("run-1", 1) for _ in range(3)]
    place.kill_when(processes[0], place.has_committed(5))
    assert [process.wait(timeout=300) for process in processes[1:]] == [0, 0], place.output()
    assert place.build("run-1", 1) == 0, place.output()
    assert place.rows() == built.rows()
    assert set(done_by_commits(place).values()) == {1}
    assert re.search(r"skipped, nothing written: run run-1 has done it, as silt\.main\.\w+@v\d+", place.output())


def test_two_runs_of_one_id_in_two_folders_leave_the_same_tables_as_one_run(
    built: Workplace, built_twice: Workplace, tmp_path: Path
) -> None:
    first = built.copy(tmp_path / "first")
    second = first.beside(tmp_path / "second")
    processes = [place.start("run-2", 2) for place in (first, second)]
    codes = [process.wait(timeout=300) for process in processes]
    assert codes == [0, 0], first.output() + second.output()
    assert first.rows() == built_twice.rows()
    assert done_by_commits(first) == done_by_commits(built_twice)


def done_by_commits(place: Workplace) -> Counter[str]:
    """Returns how many commits of all tables hold each unit of work."""
    lines = (line for log in place.warehouse.glob("main/*/_delta_log/*.json") for line in log.read_text().splitlines())
    return Counter(action["txn"]["appId"] for action in map(json.loads, lines) if "txn" in action)


SEVERAL_COMMITS = "as_two_steps"
"""A model of several statements has several commits, and another run may commit between them."""
ONE_COMMIT = ("--exclude", SEVERAL_COMMITS)


def test_two_concurrent_runs_leave_the_same_tables_as_consecutive_runs(
    built: Workplace, built_twice: Workplace, tmp_path: Path
) -> None:
    after_each_other = built_twice.copy(tmp_path / "serial")
    assert after_each_other.build("run-3", 2, *ONE_COMMIT) == 0, after_each_other.output()
    first = built.copy(tmp_path / "first")
    second = first.beside(tmp_path / "second")
    processes = [first.start("run-2", 2, *ONE_COMMIT), second.start("run-3", 2, *ONE_COMMIT)]
    codes = [process.wait(timeout=300) for process in processes]
    assert codes == [0, 0], first.output() + second.output()
    found, expected = first.rows(), after_each_other.rows()
    del found[SEVERAL_COMMITS], expected[SEVERAL_COMMITS]
    assert found == expected


def test_two_concurrent_backfills_with_different_vars_are_both_applied(built: Workplace, tmp_path: Path) -> None:
    """Neither reads the other's staged rows: each inserts the rows of its own round."""
    first = built.copy(tmp_path / "first")
    second = first.beside(tmp_path / "second")
    selected = ("--select", "as_backfill")
    processes = [first.start("run-2", 2, *selected), second.start("run-3", 3, *selected)]
    codes = [process.wait(timeout=300) for process in processes]
    assert codes == [0, 0], first.output() + second.output()
    expected = [repr([("id", str(id_)), ("round", str(1 + id_ // 60))]) for id_ in range(180)]
    assert first.rows()["as_backfill"] == sorted(expected)


WAITS = "as_append is not there yet"
WAIT_FOR_A_TABLE = f"""
{{% macro wait_for_a_table() %}}
  {{%- set seen = namespace(it=false) -%}}
  {{%- for _ in range(3000) if execute and not seen.it -%}}
    {{{{- log('{WAITS}', info=true) if loop.first -}}}}
    {{%- set seen.it = run_query("show tables in " ~ target.schema ~ " like 'as_append'") | length > 0 -%}}
    {{%- do run_query("select java_method('java.lang.Thread', 'sleep', 50L)") -%}}
  {{%- endfor -%}}
{{% endmacro %}}
"""
"""dbt lists the existing tables before a hook at the run's start: this hook lets another run create a table then."""


def wait_at_its_start(place: Workplace) -> None:
    """Makes each run of the folder wait for the table `as_append` after it has listed the existing tables."""
    project = place.root / "project"
    (project / "macros" / "wait_for_a_table.sql").write_text(WAIT_FOR_A_TABLE)
    with (project / "dbt_project.yml").open("a") as settings:
        settings.write('on-run-start: "{{ wait_for_a_table() }}"\n')


def test_of_two_concurrent_first_runs_the_run_that_loses_a_table_is_advised_to_run_again(
    built: Workplace, tmp_path: Path
) -> None:
    winner = Workplace.make(tmp_path / "winner")
    loser = winner.beside(tmp_path / "loser")
    wait_at_its_start(loser)
    losing = loser.start("run-2", 1)
    while WAITS not in loser.output():
        assert losing.poll() is None, loser.output()
        time.sleep(0.05)
    winning = winner.start("run-1", 1)
    assert losing.wait(timeout=300) != 0, loser.output()
    assert "run it again" in loser.output().lower()
    # The first run may also have lost some of the tables that both then created concurrently.
    if winning.wait(timeout=300) != 0:
        assert winner.build("run-1", 1) == 0, winner.output()
    assert loser.build("run-2", 1) == 0, loser.output()
    appended = winner.rows()["as_append"]
    assert {row: appended.count(row) for row in appended} == dict.fromkeys(appended, 2)
    for table in ("as_merge", "as_table", "as_snapshot", "colours"):
        assert winner.rows()[table] == built.rows()[table]
