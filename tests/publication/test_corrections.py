"""A held run that is corrected, and perhaps killed, publishes what a run publishes that began after the corrections."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.catalog.branches import branch as branches
from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.runs.logical_run import affected
from tests.publication import corrections
from tests.publication.corrections import Project
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import STORES, Dying

SEEDS = 60
_MOST_WRITES = 200


def held_and_corrected(seed: int, make: Callable[[], Store]) -> Project:
    """A run that is held, corrected and published; each second time, only a part of the nodes is selected then."""
    shape = corrections.project(seed, make)
    shape.create()
    shape.command()
    corrections.correct(shape, corrections.corrections(seed, shape))
    shape.command(selected=list(shape.nodes)[:1] if seed % 2 else None)
    shape.publish()
    return shape


def fresh(seed: int, make: Callable[[], Store]) -> Project:
    """The run that begins after the corrections."""
    shape = corrections.project(seed, make)
    shape.create()
    corrections.correct(shape, corrections.corrections(seed, shape))
    shape.command()
    shape.publish()
    return shape


def differences(seeds: int, make: Callable[[], Store] = STORES["folders"]) -> list[int]:
    return [seed for seed in range(seeds) if held_and_corrected(seed, make).shown() != fresh(seed, make).shown()]


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_it_is_equal_to_a_run_that_begins_after_the_corrections(make: Callable[[], Store]) -> None:
    assert not differences(SEEDS, make)


def test_what_no_correction_reaches_is_not_built_again() -> None:
    kept = 0
    for seed in range(SEEDS):
        shape = held_and_corrected(seed, STORES["folders"])
        tables = [each for each in shape.nodes.values() if each.kind != "view"]
        twice = {each.name for each in tables if shape.ran.count(each.name) > 1}
        if not corrections.corrections(seed, shape):
            assert not twice
        kept += len(tables) - len(twice)
    assert kept > SEEDS


def test_a_test_that_failed_lets_the_tested_node_be_built_again() -> None:
    shape = corrections.project(3, STORES["folders"])
    shape.create()
    shape.command()
    tested = next(each for each in shape.nodes.values() if each.kind != "view")
    shape.ran.clear()
    shape.command(failures=[f"test.shop.{tested.name}"])
    assert tested.name in shape.ran


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_correction_that_is_killed_is_finished_by_the_next_command(make: Callable[[], Store], fate: str) -> None:
    seed, expected = 7, fresh(7, make).shown()
    for writes in range(0, _MOST_WRITES, 4):
        shape = corrections.project(seed, make)
        shape.create()
        published = shape.shown()
        shape.command()
        corrections.correct(shape, corrections.corrections(seed, shape))
        store, over = shape.store, False
        shape.store = dying = Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            shape.command()
            over = True
        dying.arrive()
        shape.store = store
        assert shape.shown() == published
        shape.command()
        shape.publish()
        assert shape.shown() == expected
        if over:
            return
    raise AssertionError("it does not end")


def without_hidden_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(affected, "_reads", lambda change: frozenset())


def with_outdated_pins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(branches, "outdated", lambda register, logs: {})


def without_views(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(branches, "definitions_of", lambda meanings, names: [])


def with_other_writers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(affected, "_writers", lambda change: frozenset())


def without_nodes_of_other_commands(patch: pytest.MonkeyPatch) -> None:
    whole = RunNodes.begun_again
    patch.setattr(
        RunNodes, "begun_again", lambda self, nodes, present: RunNodes(whole(self, nodes, present).definitions)
    )


@pytest.mark.parametrize(
    "plant",
    [
        without_hidden_reads,
        with_outdated_pins,
        without_views,
        with_other_writers,
        without_nodes_of_other_commands,
    ],
)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert differences(SEEDS)
