"""The plans that seeds determine, and the checks of a story's results."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from tests.chaos.chaos import stories
from tests.chaos.figures import Figures
from tests.chaos.plan import KILLS_PER_ROUND, ROUNDS, Life, Way, plan
from tests.chaos.request_steps import Around
from tests.chaos.state import Difference, State
from tests.chaos.steps import Moment, Places, Step
from tests.chaos.story import Kill, Told
from tests.cloud.proxy import Head, Passing

LIVES = (
    Life(dict.fromkeys((step.name for step in Step), 20), seconds=30.0, start_seconds=5.0),
    Life(dict.fromkeys((step.name for step in Step), 2), seconds=8.0, start_seconds=5.0),
)
LOG = "/warehouse/main/orders/_delta_log"


def state(rows: dict[str, int], units: dict[str, int]) -> State:
    return State({"main.orders": Counter(rows)}, {"main.orders": 3}, {"main.orders": Counter(units)})


def test_a_seed_has_the_same_plan_each_time_and_fewer_kills_are_its_first_kills() -> None:
    assert plan(7, 3, 2, LIVES) == plan(7, 3, 2, LIVES)
    assert plan(7, 3, 2, LIVES) != plan(8, 3, 2, LIVES)
    assert plan(7, 3, 2, LIVES, kills=2).kills == plan(7, 3, 2, LIVES).kills[:2]


def test_three_hundred_kills_cover_every_step_command_and_way_to_continue() -> None:
    plans = [
        plan(1, story, round_, LIVES, min(KILLS_PER_ROUND, kills - first))
        for story, kills in stories(0, 300).items()
        for round_, first in enumerate(range(0, kills, KILLS_PER_ROUND), 1)
    ]
    moments = [moment for each in plans for _, moment in each.kills]
    assert len(moments) == 300
    assert {moment.step for moment in moments} == {step.name for step in Step}
    assert {number for each in plans for number, _ in each.kills} == {0, 1}
    assert {each.way for each in plans} == set(Way)


def test_the_kills_of_a_round_are_spread_over_the_duration_of_its_commands() -> None:
    seconds = [
        sum(
            moment.seconds for number, moment in plan(seed, 0, 1, LIVES).kills if moment.step == "ENTRY" and number == 0
        )
        for seed in range(300)
    ]
    assert max(seconds) > 15.0
    assert max(seconds) <= LIVES[0].seconds - LIVES[0].start_seconds + 0.01


def test_a_range_of_kills_belongs_to_the_stories_that_contain_it() -> None:
    whole = ROUNDS * KILLS_PER_ROUND
    assert stories(0, whole + 5) == {0: whole, 1: 5}
    assert stories(2 * whole, whole) == {2: whole}


def test_rows_and_units_that_are_missing_or_exist_twice_are_found() -> None:
    expected = state({"a": 1, "b": 1}, {"silt/p/m/*/main": 1})
    assert not Difference.of(expected, expected)
    lost = Difference.of(expected, state({"a": 1}, {"silt/p/m/*/main": 1}))
    assert (lost.rows_lost, lost.rows_doubled, bool(lost)) == (1, 0, True)
    doubled = Difference.of(expected, state({"a": 2, "b": 1}, {"silt/p/m/*/main": 1}))
    assert (doubled.rows_lost, doubled.rows_doubled, bool(doubled)) == (0, 1, True)
    assert Difference.of(expected, state({"a": 1, "b": 1}, {"silt/p/m/*/main": 2}))


def test_the_steps_of_a_commit_are_recognized_by_pythons_audit_events() -> None:
    places, temporary = Places(), f".{7:020}.json.{'0' * 32}.tmp"
    assert places.step("open", (temporary, None, 0)) is Step.COMMIT
    assert places.step("os.link", (temporary, f"{LOG}/{7:020}.json", -1, -1)) is Step.LINK
    assert places.table == "orders"
    assert places.step("os.remove", (temporary, 3)) is Step.LINKED
    assert places.step("open", ("/p/target/silt_commits.jsonl", None, 0)) is Step.JOURNAL
    assert places.step("open", ("/p/target/silt_commits.jsonl", None, 0)) is None
    assert places.step("open", (f"{LOG}/.{8:020}.checkpoint.parquet.{'0' * 32}.tmp", None, 0)) is Step.CHECKPOINT
    assert places.step("os.rename", ("/p/silt_runs.1.tmp", "/p/silt_runs.json", -1, -1)) is Step.ENTRY


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        ("PUT /b/p%20x/main/orders/1-a/_delta_log/00000000000000000007.json", ("COMMIT", "LATE", "LINKED", "JOURNAL")),
        ("PUT /b/p/main/audit/1-a/_delta_log/00000000000000000007.json", ("COMMIT", "LATE", "LINKED", "HOOK")),
        (
            "PUT /b/p/main/o/1-a/_delta_log/00000000000000000002.checkpoint.x.parquet",
            ("CHECKPOINT", "CHECKPOINTED"),
        ),
        ("PUT /b/p/main/orders/1-a/_delta_log/_last_checkpoint", ("HINT",)),
        ("PUT /b/p/_catalog.json", ("NAMES", "LATE_NAMES", "NAMED")),
        ("PUT /b/p/_definitions/1.json", ("DEFINITION", "DEFINED")),
        ("PUT /b/p/main/orders/1-a/f/part-0.snappy.parquet", ("UPLOAD", "UPLOADED")),
        ("PUT /b/p/main/orders/1-a/_delta_log/00000000000000000007.crc", ("OTHER",)),
        ("POST /b?delete", ("DELETE", "DELETED")),
        ("DELETE /b/p/main/orders/1-a/f/part-0.snappy.parquet", ("DELETE", "DELETED")),
        ("GET /b/p/_catalog.json", ()),
    ],
)
def test_the_steps_of_a_run_in_an_object_store_are_recognized_by_its_requests(
    request_: str, steps: tuple[str, ...]
) -> None:
    head = Head.read(io.BytesIO(f"{request_} HTTP/1.1\r\nHost: here\r\n\r\n".encode()))
    assert head is not None
    around = Around.of(Passing(head, io.BytesIO()))
    found = () if around is None else (*around.before, around.answered, around.after)
    assert tuple(step.name for step in found if step) == steps


def test_figures_are_summed_over_rounds() -> None:
    told = Told(plan(1, 0, 1, LIVES), kills=[Kill(0, Moment("COMMIT"), "build", "orders", 1.0)], runs=3, reruns=2)
    figures = Figures.of([told, told])
    assert (figures.kill_count, figures.kills, figures.runs) == (2, {Step.COMMIT.value: 2}, 6)
    assert figures.merged(figures).kill_count == 4
