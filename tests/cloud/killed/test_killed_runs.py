"""dbt is killed at the requests of its runs, and resumed (`make chaos CLOUD=s3` is the long form)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.chaos import Chaos
from tests.chaos.plan import First, RoundPlan, Way
from tests.chaos.planted import FORGETS_UNITS
from tests.chaos.steps import Moment, Step
from tests.chaos.story import Round, Told
from tests.chaos.workplace import Workplace
from tests.cloud.servers import ObjectServer

SEED = int(os.environ.get("SILT_KILL_SEED", "20130111"))
MOMENTS = (
    Moment(Step.UPLOADED.name, 2),
    Moment(Step.LATE.name, 3, seconds=9.0),
    Moment(Step.LINKED.name, 2),
    Moment(Step.NAMED.name, 2),
    Moment(Step.LATE_NAMES.name, 2, seconds=9.0),
)


@pytest.fixture(scope="module")
def chaos(cloud: ObjectServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chaos]:
    assert cloud is not None
    if cloud.name != "s3":
        pytest.skip("the proxy knows the requests of an S3")
    chaos = Chaos(tmp_path_factory.mktemp("chaos"), SEED, cloud=cloud)
    yield chaos
    chaos.undisturbed.place.remove()


@pytest.fixture
def place(chaos: Chaos, cloud: ObjectServer, tmp_path: Path) -> Iterator[Workplace]:
    made = Workplace.make(tmp_path / "place", cloud=cloud)
    yield made
    made.remove()


def live(chaos: Chaos, place: Workplace, moments: tuple[Moment, ...]) -> Told:
    """Runs a first round whose build is killed at the moments."""
    plan = RoundPlan(0, 1, Way.VARIABLE, First.NOTHING, tuple((0, moment) for moment in moments))
    return Round(place, plan, print).live(chaos.undisturbed.round(1))


def test_a_build_killed_between_requests_and_resumed_leaves_the_tables_of_an_undisturbed_build(
    chaos: Chaos, place: Workplace
) -> None:
    told = live(chaos, place, MOMENTS)
    assert told.faults == []
    assert told.difference is not None and told.difference.notes == ()
    assert len(told.kills) == len(MOMENTS)


def test_the_comparison_finds_rows_doubled_by_an_adapter_that_forgets_its_units_of_work(
    chaos: Chaos, place: Workplace
) -> None:
    told = live(chaos, replace(place, variables=FORGETS_UNITS), (Moment(Step.JOURNAL.name, 6),))
    assert told.difference is not None and told.difference.rows_doubled
