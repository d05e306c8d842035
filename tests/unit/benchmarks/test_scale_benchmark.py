"""The benchmark of scale: its counts, and writers in virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console

from benchmarks.scale import models
from benchmarks.scale.__main__ import limits_table, runs_table, steps_table
from benchmarks.scale.meter import Cost, Meter, Request, depth, metered
from benchmarks.scale.one_table import Step
from benchmarks.scale.virtual import Load, simulate
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore

APPEND = 5
"""The number of successive requests of an append; `tests/cloud/test_requests.py` counts them at a server."""


@pytest.mark.parametrize("latency", [0.05, 1.0])
def test_a_single_writers_commit_takes_as_long_as_its_successive_requests(latency: float) -> None:
    result = simulate(Load(1, latency, 40 * latency))
    assert result.seen.requests == APPEND * result.seen.commits
    assert result.seen.waits == pytest.approx([APPEND * latency] * (40 // APPEND))
    assert result.per_second == pytest.approx(1 / (APPEND * latency))


@pytest.mark.parametrize("writers", [2, 7, 24])
def test_the_table_has_exactly_the_commits_of_all_writers(writers: int) -> None:
    result = simulate(Load(writers, 0.05, 5))
    assert result.files == result.committed
    assert len(result.files) == result.seen.commits > 10
    assert result.seen.attempts > result.seen.commits


def test_writers_that_conflict_run_their_statements_again() -> None:
    result = simulate(Load(3, 0.05, 30, is_merge=True, work=2.0))
    assert result.files == result.committed
    assert result.seen.conflicts > 0
    # Of two writers that work at the same time, only one commits.
    assert result.seen.commits <= result.seen.conflicts + (30 + 3 * 2.5) / 2.0


def test_a_load_has_the_same_result_each_time() -> None:
    load = Load(5, 0.05, 4)
    assert simulate(load) == simulate(load)


def test_a_pool_sends_sixteen_requests_at_a_time() -> None:
    one, many = Request("get", "a"), Request("get", "a", is_parallel=True)
    assert depth([]) == 0
    assert depth([one, one]) == 2
    assert depth([one, *[many] * 16, one, many]) == 4
    assert depth([many] * 17) == 2


def test_the_meter_counts_the_requests_to_a_service() -> None:
    store = ObjectStore("memory:///")
    with metered() as meter:
        store.put("f/a", b"12345")
        assert store.read("f/a") == b"12345"
        assert store.status("f/b") is None
        for number in range(1_001):
            store.put(f"g/{number:04}", b"")
        cost = _of(meter, lambda: store.list_from("g", "0500"))
        assert (cost.kinds["list"], cost.depth) == (1, 1)
        assert _of(meter, lambda: store.list_from("g")).kinds["list"] == 2
        assert _of(meter, lambda: store.read_ranges("f/a", [(0, 2), (3, 4)])).requests == 1
        assert _of(meter, lambda: store.read("f/a")).received == 5


def _of(meter: Meter, work: Callable[[], object]) -> Cost:
    meter.reset()
    work()
    return meter.cost()


def test_the_cost_per_model_does_not_depend_on_the_number_of_models() -> None:
    few, more = models.measure(3), models.measure(30)
    assert more.models_cost.requests == 10 * few.models_cost.requests
    assert (few.look.requests, more.look.requests, more.listing.requests) == (1, 1, 1)
    assert more.seconds(0.05, 4) == pytest.approx(10 * few.seconds(0.05, 4), rel=0.5)
    assert models.document_bytes(200) > models.document_bytes(100) > 0


def test_the_tables_of_the_report_have_all_lines() -> None:
    console = Console(record=True, width=200)
    console.print(steps_table("a", [Step("open", {"get": 3}, 3, 0, 10, 0.1, 100.0)]))
    console.print(runs_table([models.measure(2)]))
    console.print(limits_table("b", [simulate(Load(2, 0.05, 1))]))
    text = console.export_text()
    assert all(each in text for each in ("open", "0.15", "0.05 s"))
