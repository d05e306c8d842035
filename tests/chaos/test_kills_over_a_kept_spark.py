"""The run or its kept Spark is killed in each phase of a model; a rerun applies each write once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import kept_sparks
from tests.chaos.notes import damage
from tests.chaos.state import Difference, State
from tests.chaos.steps import Moment, Step
from tests.chaos.workplace import Ended, Workplace

_ARGUMENTS = ("run", "--select", "events", "as_append", "as_merge", "slow", "--vars", "{round: 1, silt_run_id: one}")
_SLOW = "select id from range(0, 4000000, 1, 4) where hash(id) % 2000000 = 0"
_LONGEST_SECONDS = 300

PHASES = {
    "while dbt starts": Moment(Step.START.name, seconds=0.3),
    "before the first statement": Moment(Step.ENTRY.name),
    "when Spark has written the data files": Moment(Step.WRITTEN.name),
    "between the data files and the commit": Moment(Step.COMMIT.name, 2),
    "in the commit, before it has its name": Moment(Step.LINK.name, 2),
    "in the commit, before its answer": Moment(Step.LINKED.name, 2),
    "right after a commit": Moment(Step.JOURNAL.name, 2),
    "before dbt writes its results": Moment(Step.RESULTS.name),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """A project with a kept Spark."""
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(cache))
        place = Workplace.make(tmp_path_factory.mktemp("kept") / "place")
        place.keep_spark()
        (place.project / "models" / "slow.sql").write_text(_SLOW)
        yield place
        kept_sparks.stop_all(cache)


@pytest.fixture(scope="module")
def undisturbed(place: Workplace) -> State:
    assert run(place).code == 0
    return State.of(place.warehouse)


@pytest.fixture
def empty(place: Workplace, undisturbed: State) -> Workplace:
    """The same project without tables; its Spark has been used before."""
    place.warehouse.remove()
    shutil.rmtree(place.project / "target")
    return place


def run(place: Workplace, moment: Moment | None = None) -> Ended:
    return place.dbt(_ARGUMENTS, moment)


def assert_a_rerun_ends_it(place: Workplace, undisturbed: State) -> None:
    again = run(place)
    assert again.code == 0, again.output
    assert not Difference.of(undisturbed, State.of(place.warehouse))
    assert list(damage(place.warehouse)) == []


def assert_it_said_so(killed: Ended) -> None:
    """Checks that a run whose Spark was killed succeeded, or reports that Spark ended."""
    assert killed.code == 0 or "SILT_SPARK_ENDED" in killed.output, killed.output


@pytest.mark.long
@pytest.mark.parametrize("phase", PHASES)
def test_a_rerun_completes_a_killed_run(empty: Workplace, undisturbed: State, phase: str) -> None:
    assert run(empty, PHASES[phase]).killed
    assert_a_rerun_ends_it(empty, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("phase", PHASES)
def test_a_rerun_completes_a_run_whose_spark_was_killed(empty: Workplace, undisturbed: State, phase: str) -> None:
    moment = PHASES[phase]
    killed = run(empty, Moment(moment.step, moment.n, moment.seconds, of_spark=True))
    assert killed.struck, killed.output
    assert_it_said_so(killed)
    assert_a_rerun_ends_it(empty, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("of_spark", [False, True], ids=["the run", "Spark"])
def test_a_rerun_completes_a_run_that_was_killed_while_spark_writes(
    empty: Workplace, undisturbed: State, of_spark: bool
) -> None:
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(kill_while_spark_writes, empty, of_spark)
        killed = run(empty)  # in the main thread, which keeps the process from which dbt is forked
        killing.result()
    assert killed.killed != of_spark
    assert not list((folder_of(empty) / "main" / "slow" / "_delta_log").glob("*.json"))
    if of_spark:
        assert killed.code == 1
        assert_it_said_so(killed)
    assert_a_rerun_ends_it(empty, undisturbed)


def folder_of(place: Workplace) -> Path:
    return Path(place.warehouse.url)


def kill_while_spark_writes(place: Workplace, of_spark: bool) -> None:
    wait_until_spark_writes(folder_of(place) / "main" / "slow")
    if of_spark:
        kept_sparks.kill()
        return
    registry = json.loads((place.project / "target" / "silt_runs.json").read_text())
    os.killpg(registry["runs"][-1]["process"], signal.SIGKILL)


def wait_until_spark_writes(table: Path) -> None:
    """Waits until the folder of a statement's files exists, which Spark creates before its tasks start."""
    end = time.monotonic() + _LONGEST_SECONDS
    while not list(table.rglob("_temporary")):
        assert time.monotonic() < end
        time.sleep(0.002)
