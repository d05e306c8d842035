"""The rollback of a run alternates with other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog import rollback
from dbt.adapters.silt.engine.catalog.rollback import Rollback
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, RollbackRefusedError
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.catalog.units_of_work import Works, settings_of, work_of

BEFORE = {"orders": {1: 10}, "payments": {1: 1}}
AFTER = {"orders": {1: 10, 2: 20}, "payments": {1: 1, 3: 30}}
BY_C = {9: 90}
Undo = Callable[[Works], Callable[[], Rollback]]


def _setup(memory: MemoryStore) -> None:
    works = Works(memory)
    for identifier, rows in BEFORE.items():
        works.create(identifier, "A", rows)
    _run_b(works)


def _run_b(works: Works) -> None:
    works.append("orders", "B", {2: 20})
    works.append("payments", "B", {3: 30})


def _together(seed: int, *tasks: Callable[[Works], Callable[[], Any]]) -> tuple[Works, list[Any]]:
    """Runs each task in its own process, in a random order of turns; returns the final warehouse and the results."""
    memory, scheduler = MemoryStore(), Scheduler()
    _setup(memory)
    processes = [Works(YieldingStore(memory, scheduler), number) for number, _ in enumerate(tasks, 2)]
    results = scheduler.run([task(works) for task, works in zip(tasks, processes, strict=True)], random_order(seed))
    return Works(memory, 99), results


def _roll_back(works: Works) -> Callable[[], Rollback]:
    return lambda: works.roll_back("B")


def _roll_back_what_was_found(works: Works) -> Callable[[], Rollback]:
    """Rolls back work that was found earlier, so that the other writer may commit after the check."""
    found = works.find("B")
    return lambda: rollback.roll_back(works.catalog, found, work_of("B"), settings_of("B"))


def _rerun(works: Works) -> Callable[[], None]:
    return lambda: _run_b(works)


def _append(works: Works) -> Callable[[], None]:
    return lambda: works.append("payments", "C", BY_C)


each_way = pytest.mark.parametrize("undo", [_roll_back, _roll_back_what_was_found])
each_order = pytest.mark.parametrize("seed", range(15))


def _is_conflict(result: object) -> bool:
    return isinstance(result, ConcurrentModificationError)


@each_way
@each_order
def test_no_row_of_another_writer_is_lost(seed: int, undo: Undo) -> None:
    works, (rolled_back, appended) = _together(seed, undo, _append)
    assert appended is None
    assert 9 in works.rows()["payments"]
    if isinstance(rolled_back, Rollback):
        assert works.rows() == BEFORE | {"payments": BEFORE["payments"] | BY_C}
        return
    assert isinstance(rolled_back, ConcurrentModificationError | RollbackRefusedError)
    assert works.rows()["payments"] == AFTER["payments"] | BY_C
    with pytest.raises(RollbackRefusedError, match=r"silt\.main\.payments@v2: WRITE by C"):
        works.roll_back("B")
    works.roll_back("B", discard_later_commits=True)
    assert works.rows() == BEFORE


@each_way
@each_order
def test_two_rollbacks_of_the_same_work_restore_each_table_once(seed: int, undo: Undo) -> None:
    works, results = _together(seed, undo, undo)
    assert all(isinstance(each, Rollback) or _is_conflict(each) for each in results), results
    works.roll_back("B")
    assert works.rows() == BEFORE
    for identifier in BEFORE:
        operations = [commit.info.operation for commit in works.log(identifier).commits()]
        assert operations == ["CREATE TABLE", "WRITE", "RESTORE"]


@each_way
@each_order
def test_a_rerun_of_work_during_its_rollback_neither_loses_nor_duplicates_a_row(seed: int, undo: Undo) -> None:
    works, (rolled_back, rerun) = _together(seed, undo, _rerun)
    assert isinstance(rolled_back, Rollback) or _is_conflict(rolled_back), rolled_back
    assert rerun is None or _is_conflict(rerun), rerun
    _run_b(works)
    assert works.rows() == AFTER
    works.roll_back("B")
    assert works.rows() == BEFORE
