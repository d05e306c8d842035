"""The first messages of a command if an earlier run did not finish or another run is in progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.records.command_result import CommandResult, Ending
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.announcement import Announcement
from dbt.adapters.silt.runs.logical_run.run_id import LogicalRun, Origin

EARLIER = RunEntry("I1", "R1", "dbt run", "/shop", "2026-03-01T10:00:00+00:00", process=7, host="box")
OWN = RunEntry("I9", "R9", "dbt run", "/shop", "2026-03-01T12:00:00+00:00")
NEW = LogicalRun("R9", Origin.INVOCATION)


ORDERS, SLOW, HOOK = "model.shop.orders", "model.shop.slow", "operation.shop.shop-on-run-end-0"
ERROR = CommandResult(Ending.FAILED, problem="Java is missing")
ENDED = "2026-03-01T10:01:00+00:00"


def announced(
    *entries: RunEntry, run: LogicalRun = NEW, committed: Sequence[str] = (ORDERS,), **fields: Any
) -> list[str]:
    selected = fields.pop("selected", (ORDERS,))
    entries = (*entries, replace(OWN, running=True))
    return list(Announcement(run, OWN, entries, lambda _: committed, selected, **fields).warnings())


def test_a_run_after_a_killed_run_warns_of_duplicates_and_shows_the_command_to_continue() -> None:
    [said] = announced(EARLIER)
    assert said == (
        "The last run of this command, started at 2026-03-01T10:00:00+00:00, was killed after it had committed orders. "
        "This is a new run, which repeats that work: rows that it appends are then in the table twice. To continue "
        "that run, stop this one and type `dbt run --vars '{silt_run_id: R1}'`. With `resume: 2 hours` in the profile "
        "the same command, typed again, continues such a run"
    )


@pytest.mark.parametrize(
    ("earlier", "how"),
    [
        (replace(EARLIER, has_results=True, ended_at=ENDED), "was interrupted after"),
        (replace(EARLIER, ended_at=ENDED, result=ERROR), "ended with an error after"),
    ],
)
def test_a_run_after_an_unfinished_run_reports_how_that_run_ended(earlier: RunEntry, how: str) -> None:
    [said] = announced(earlier)
    assert how in said


@pytest.mark.parametrize(
    ("committed", "selected"),
    [((), (ORDERS,)), ((SLOW,), (ORDERS,)), ((HOOK,), (ORDERS,)), ((ORDERS,), ())],
    ids=["nothing was committed", "other models", "only a hook", "nothing is selected"],
)
def test_another_command_is_not_mentioned_if_this_run_does_not_repeat_its_commits(
    committed: Sequence[str], selected: Sequence[str]
) -> None:
    killed = replace(EARLIER, command="dbt run --select slow")
    assert announced(killed, committed=committed, selected=selected) == []


def test_committed_hooks_of_the_same_command_are_mentioned() -> None:
    [said] = announced(EARLIER, committed=[HOOK], selected=[SLOW])
    assert "had committed shop-on-run-end-0." in said


def test_only_the_first_of_many_nodes_are_named_and_the_rest_is_counted() -> None:
    nodes = [f"model.shop.m{number}" for number in range(8)]
    [said] = announced(EARLIER, committed=nodes, selected=nodes)
    assert "had committed m0, m1, m2, m3, m4 and 3 more." in said


@pytest.mark.parametrize(
    ("resume", "advice"), [("1 hour", "longer ago than the profile's `resume`, 1 hour"), ("off", "R1}'`")]
)
def test_the_advice_does_not_suggest_resume_if_the_profile_has_it(resume: str, advice: str) -> None:
    [said] = announced(EARLIER, resume=resume)
    assert said.endswith(advice)


def test_a_killed_run_of_another_command_is_named_with_its_command_line() -> None:
    killed = replace(EARLIER, command="dbt run --threads 8")
    before = replace(EARLIER, invocation_id="I0", started_at="2026-03-01T09:00:00+00:00", finished=True)
    [said] = announced(before, killed)
    assert said.startswith("The last run here, `dbt run --threads 8`, started at ")
    assert "`dbt run --threads 8 --vars '{silt_run_id: R1}'`" in said and "resume" not in said


@pytest.mark.parametrize(
    "earlier",
    [
        replace(EARLIER, finished=True),
        replace(EARLIER, command="dbt seed", target="prod"),
    ],
    ids=["finished", "another target"],
)
def test_a_finished_run_and_a_run_of_another_target_are_not_mentioned(earlier: RunEntry) -> None:
    assert announced(earlier) == []


def test_a_killed_run_that_was_repeated_later_is_not_mentioned() -> None:
    again = replace(EARLIER, invocation_id="I2", started_at="2026-03-01T11:00:00+00:00", finished=True)
    assert announced(EARLIER, again) == []


@pytest.mark.parametrize("origin", [Origin.VARIABLE, Origin.PROFILE, Origin.RETRY, Origin.RESUME])
def test_a_run_with_a_chosen_id_does_not_mention_killed_runs(origin: Origin) -> None:
    assert announced(EARLIER, run=LogicalRun("R9", origin)) == []


def test_another_run_in_progress_is_named_with_the_command_that_joins_it() -> None:
    [said] = announced(replace(EARLIER, running=True))
    assert said == (
        "Another run of this project is in progress: `dbt run`, started at 2026-03-01T10:00:00+00:00 (process 7 of box)"
        "; rows that both append are then in the table twice. If the two should be one run, stop this one and type "
        "`dbt run --vars '{silt_run_id: R1}'`: each skips what the other has committed"
    )


OTHER = replace(EARLIER, command="dbt run --select slow", running=True)


@pytest.mark.parametrize(
    "running",
    [
        replace(OTHER, selected=frozenset([SLOW])),
        replace(OTHER, selected=frozenset()),
        replace(EARLIER, running=True, target="prod"),
    ],
    ids=["other models", "nothing", "another target"],
)
def test_a_run_in_progress_that_shares_no_work_is_not_mentioned(running: RunEntry) -> None:
    assert announced(running) == []
    assert announced(replace(running, run_id="R9"), run=LogicalRun("R9", Origin.PROFILE)) == []


@pytest.mark.parametrize(
    "running",
    [
        replace(OTHER, selected=frozenset([SLOW, ORDERS])),
        OTHER,
        replace(EARLIER, running=True, selected=frozenset([SLOW])),
    ],
    ids=["a model of both", "not known", "the same command, whose hooks both run"],
)
def test_a_run_in_progress_that_may_share_work_is_named(running: RunEntry) -> None:
    [said] = announced(running)
    assert said.startswith("Another run of this project is in progress: ")


HERE: dict[str, Any] = {"warehouse": "/wh", "schema": "main"}
NIGHT = replace(EARLIER, running=True, command="dbt build -t night", target="night", **HERE)
IN_DEV = replace(OWN, target="dev", **HERE)


def of_dev(*entries: RunEntry, selected: Sequence[str] = (ORDERS,)) -> Announcement:
    return Announcement(NEW, IN_DEV, (*entries, replace(IN_DEV, running=True)), lambda _: [ORDERS], selected)


def test_a_run_in_progress_of_another_target_with_the_same_tables_is_named() -> None:
    [said] = of_dev(NIGHT).warnings()
    assert said.startswith(
        "Another run is in progress on the same tables: `dbt build -t night` (target night), started "
    )
    assert "in the table twice" in said and "silt_run_id" not in said


@pytest.mark.parametrize(
    "running",
    [replace(NIGHT, selected=frozenset([SLOW])), replace(NIGHT, warehouse="/other"), replace(NIGHT, running=False)],
    ids=["other models", "another warehouse", "not in progress"],
)
def test_a_run_of_another_target_that_shares_no_tables_is_not_mentioned(running: RunEntry) -> None:
    assert list(of_dev(running).warnings()) == []
    assert len(list(of_dev(running).lines())) == 1


def test_a_run_in_another_schema_of_the_warehouse_is_named_without_a_warning() -> None:
    running = replace(NIGHT, schema="night")
    assert list(of_dev(running).warnings()) == []
    assert (
        "Also in progress in this warehouse, in the schema night: `dbt build -t night`"
        in list(of_dev(running).lines())[-1]
    )


LATER = "2026-03-01T12:30:00+00:00"


@pytest.mark.parametrize("is_over", [False, True])
def test_a_run_that_began_meanwhile_is_named_at_the_end_by_the_earlier_run(is_over: bool) -> None:
    later = replace(NIGHT, started_at=LATER, running=not is_over, finished=is_over)
    [said] = of_dev(later).overlaps()
    assert "worked on the same tables meanwhile: `dbt build -t night` (target night)" in said
    assert list(of_dev(replace(later, started_at=EARLIER.started_at)).overlaps()) == []
    assert list(of_dev(later, selected=[SLOW]).overlaps()) == ([] if is_over else [said])


def test_several_runs_in_progress_are_counted() -> None:
    others = [replace(EARLIER, invocation_id=f"I{number}", running=True) for number in range(3)]
    [said] = announced(*others)
    assert "(process 7 of box), and 2 more; " in said


def test_another_run_with_the_same_id_is_named_without_a_warning_of_duplicates() -> None:
    [said] = announced(replace(EARLIER, run_id="R9", running=True), run=LogicalRun("R9", Origin.PROFILE))
    assert "with the same run id" in said and said.endswith("Each write is done by one of them only")


def test_the_continued_run_is_shown_before_the_run_id() -> None:
    run = LogicalRun("R1", Origin.RESUME, EARLIER)
    lines = list(Announcement(run, OWN, (EARLIER,), lambda _: (), ()).lines())
    assert lines[0].startswith("Continuing `dbt run`, started at 2026-03-01T10:00:00+00:00, which did not finish: ")
    assert lines[1] == "Run id R1 (a run that did not finish)"
