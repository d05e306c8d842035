"""The tolerance of a build: for a time after it, new rows of its inputs require no other build."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.builds.decision import Built, LastBuild, Present, PresentTable, Reused, decide
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, Effect, TableState

BUILT_AT = 1_000_000
READ = TableState("id", 3, "columns")
LAST = LastBuild("orders", 7, BuildFacts("model.orders", "code", tables={"raw": READ}), "monday", at_ms=BUILT_AT)
BUILD = Build("model.orders", "code", at_ms=BUILT_AT + 500, tolerance_ms=1_000)


def changed(at_ms: int, version: int = 5, state: TableState = READ) -> Present:
    return Present({"raw": PresentTable(replace(state, version=version), version, at_ms)})


def test_new_rows_wait_until_the_time_has_passed() -> None:
    found = decide(BUILD, LAST, changed(BUILT_AT + 100))
    assert isinstance(found, Reused)
    assert str(found) == "built within lag_tolerance as orders@v7 (run monday): raw changed (v3 -> v5)"
    assert decide(replace(BUILD, tolerance_ms=0), LAST, changed(BUILT_AT + 100)) == Built(("raw changed (v3 -> v5)",))
    assert isinstance(decide(replace(BUILD, tolerance_ms=500), LAST, changed(BUILT_AT + 100)), Built)
    assert isinstance(decide(replace(BUILD, tolerance_ms=501), LAST, changed(BUILT_AT + 100)), Reused)


def test_a_commit_that_is_later_by_the_tolerance_ends_it_whatever_the_clock_shows() -> None:
    assert isinstance(decide(BUILD, LAST, changed(BUILT_AT + 999)), Reused)
    assert isinstance(decide(BUILD, LAST, changed(BUILT_AT + 1_000)), Built)


def test_a_clock_behind_the_build_tolerates_nothing() -> None:
    assert isinstance(decide(replace(BUILD, at_ms=BUILT_AT - 1), LAST, changed(BUILT_AT + 1)), Built)
    assert isinstance(decide(replace(BUILD, at_ms=BUILT_AT), LAST, changed(BUILT_AT + 1)), Reused)


@pytest.mark.parametrize(
    ("build", "last", "present"),
    [
        (replace(BUILD, code="other"), LAST, changed(BUILT_AT)),
        (replace(BUILD, environment="other"), LAST, changed(BUILT_AT)),
        (replace(BUILD, unknown=("it uses rand()",)), LAST, changed(BUILT_AT)),
        (replace(BUILD, effect=Effect.ADDS), LAST, changed(BUILT_AT)),
        (BUILD, replace(LAST, changed_since="orders was changed by v8 (DELETE)"), changed(BUILT_AT)),
        (BUILD, LAST, changed(BUILT_AT, state=replace(READ, schema="others"))),
        (BUILD, LAST, Present({"raw": PresentTable(replace(READ, table_id="new", version=5), None)})),
        (BUILD, LAST, Present({"raw": PresentTable(replace(READ, version=5), None)})),
        (BUILD, LAST, Present({"raw": None})),
        (BUILD, replace(LAST, facts=replace(LAST.facts, definitions={"v": "a"})), changed(BUILT_AT)),
        (BUILD, replace(LAST, facts=replace(LAST.facts, files={"f": "a"})), changed(BUILT_AT)),
        (BUILD, replace(LAST, facts=replace(LAST.facts, day="2026-01-01")), changed(BUILT_AT)),
    ],
)
def test_every_other_reason_builds_at_once(build: Build, last: LastBuild, present: Present) -> None:
    assert isinstance(decide(build, last, present), Built)


def test_nothing_waits_if_nothing_changed() -> None:
    assert decide(BUILD, LAST, changed(0, version=3)) == Reused("orders", 7, "monday")
