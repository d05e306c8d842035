"""Random histories of rows, code, views, maintenance and mistakes: no node is reused whose build would write other
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.builds.decision import Decision, LastBuild, Present, PresentTable, decide
from dbt.adapters.silt.engine.kernel.log.builds import Build, Effect
from tests.unit.engine.builds.simulated_builds import Builds

STEPS = 40


def played(seed: int, decision: Callable[[Build, LastBuild | None, Present], Decision] = decide) -> Builds:
    world = Builds(seed, decision)
    for _ in range(STEPS):
        world.step()
    return world


def test_no_history_has_a_wrong_reuse() -> None:
    worlds = [played(seed) for seed in range(300)]
    assert [wrong for world in worlds for wrong in world.wrong] == []
    assert sum(world.reused for world in worlds) > 1000


@pytest.mark.long
def test_ten_thousand_histories_have_no_wrong_reuse_and_few_needless_builds() -> None:
    needless = decisions = 0
    for seed in range(10_000):
        world = played(seed)
        assert world.wrong == []
        needless += world.needless
        decisions += world.reused + world.built
    assert needless <= 0.02 * decisions


def changed(
    *, wanted: Callable[[Build], Build] = lambda it: it, last: Callable[[LastBuild], LastBuild] = lambda it: it
) -> Callable[[Build, LastBuild | None, Present], Decision]:
    """Returns a decision that sees other facts."""
    return lambda build, found, present: decide(wanted(build), None if found is None else last(found), present)


def seen(
    table: Callable[[PresentTable, LastBuild, str], PresentTable],
) -> Callable[[Build, LastBuild | None, Present], Decision]:
    """Returns a decision that sees other states of tables."""

    def decision(build: Build, last: LastBuild | None, present: Present) -> Decision:
        tables = {
            name: None if at is None or last is None else table(at, last, name) for name, at in present.tables.items()
        }
        return decide(build, last, replace(present, tables=tables))

    return decision


def blind(**facts: object) -> Callable[[Build, LastBuild | None, Present], Decision]:
    return changed(last=lambda last: replace(last, facts=replace(last.facts, **facts)))  # type: ignore[arg-type]


def of_same_id(at: PresentTable, last: LastBuild, name: str) -> PresentTable:
    read = last.facts.tables[name]
    return replace(at, state=replace(at.state, table_id=read.table_id), last_change=at.last_change or read.version)


def of_same_columns(at: PresentTable, last: LastBuild, name: str) -> PresentTable:
    return replace(at, state=replace(at.state, schema=last.facts.tables[name].schema))


def of_unknown_changes(at: PresentTable, last: LastBuild, name: str) -> PresentTable:
    return replace(at, last_change=last.facts.tables[name].version if at.last_change is None else at.last_change)


def of_no_changes(at: PresentTable, last: LastBuild, name: str) -> PresentTable:
    return replace(at, last_change=last.facts.tables[name].version)


def without_one_input(last: LastBuild) -> LastBuild:
    return replace(last, facts=replace(last.facts, tables=dict(list(last.facts.tables.items())[1:])))


def without_vanished(build: Build, last: LastBuild | None, present: Present) -> Decision:
    tables = {} if last is None else {n: t for n, t in last.facts.tables.items() if n.startswith("m.")}
    return decide(build, None if last is None else replace(last, facts=replace(last.facts, tables=tables)), present)


MISTAKES: dict[str, Callable[[Build, LastBuild | None, Present], Decision]] = {
    "ignores the table's id": seen(of_same_id),
    "ignores columns": seen(of_same_columns),
    "takes unknown commits for no change": seen(of_unknown_changes),
    "ignores changes of inputs": seen(of_no_changes),
    "ignores an input": changed(last=without_one_input),
    "ignores sources": without_vanished,
    "ignores views": blind(definitions={}),
    "ignores the date": blind(day=None),
    "ignores chance": blind(unknown=()),
    "ignores other writers": changed(last=lambda last: replace(last, changed_since=None)),
    "takes its last build for empty": changed(last=lambda last: replace(last, changed_data=False)),
    "takes appends for replacements": changed(wanted=lambda build: replace(build, effect=Effect.REPLACES)),
    "takes appends for merges": changed(wanted=lambda build: replace(build, effect=Effect.REPEATS)),
    "takes merges for snapshots": changed(wanted=lambda build: replace(build, effect=Effect.KEEPS)),
    "ignores code": lambda build, last, present: decide(
        build if last is None else replace(build, code=last.facts.code), last, present
    ),
    "ignores the environment": lambda build, last, present: decide(
        build if last is None else replace(build, environment=last.facts.environment), last, present
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_simulation_finds_a_planted_mistake(mistake: str) -> None:
    assert any(played(seed, MISTAKES[mistake]).wrong for seed in range(200))
