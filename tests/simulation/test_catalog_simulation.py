"""Seeds of the simulated catalog of an object store, and planted bugs that the simulation must find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from dbt.adapters.silt.engine.catalog.names.log_end import EndResult, end_log
from dbt.adapters.silt.engine.catalog.objects.names_document import Mark, Names, TableEntry
from dbt.adapters.silt.engine.catalog.objects.table_ends import TableEnds
from dbt.adapters.silt.engine.kernel.storage.prefix_folders import UniqueFolder
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Tag
from tests.memory_object_store import MemoryObjectStore
from tests.simulation import catalog_simulation, simulation
from tests.simulation.warehouse.linearizability import Operation, order_of
from tests.simulation.warehouse.oracle import Violation

CHUNK = 100
SEEDS = 700


class TestNames:
    @pytest.mark.parametrize("chunk", range(3))
    def test_a_sequential_order_explains_every_answer(self, chunk: int) -> None:
        for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
            catalog_simulation.simulate(seed)

    def test_a_table_may_be_deleted_while_another_process_completes_the_publication_that_drops_it(self) -> None:
        catalog_simulation.simulate(1956)

    def test_a_table_may_become_a_view_while_it_is_renamed(self) -> None:
        catalog_simulation.simulate(1146)

    def test_all_kinds_of_operations_occur_often(self) -> None:
        counts = sum((catalog_simulation.simulate(seed).counts for seed in range(100)), Counter[str]())
        for kind in ("create", "drop", "put", "rename"):
            assert counts[f"{kind}: ok"] > 10, counts
            assert counts[f"{kind}: None"] > 3, counts


@pytest.mark.long
class TestMoreNames:
    @pytest.mark.parametrize("chunk", range(3, 40))
    def test_a_sequential_order_explains_every_answer(self, chunk: int) -> None:
        for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
            catalog_simulation.simulate(seed)


class TestTablesInAnObjectStore:
    def test_all_invariants_hold(self) -> None:
        for seed in range(45):
            simulation.simulate(seed, has_folders=False)


@pytest.mark.long
class TestMoreTablesInAnObjectStore:
    @pytest.mark.parametrize("chunk", range(1, 20))
    def test_all_invariants_hold(self, chunk: int) -> None:
        for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
            simulation.simulate(seed, has_folders=False)


def finds(owner: Any, rule: str, broken: Callable[..., Any], start: int = 0) -> None:
    """Checks that a seed fails while a rule is broken; `start` is just before a seed of a rare failure."""
    with mock.patch.object(owner, rule, broken):
        for seed in range(start, start + SEEDS):
            try:
                catalog_simulation.simulate(seed)
            except Violation:
                return
    pytest.fail(f"{SEEDS} seeds passed")


def plain_swap(self: MemoryObjectStore, path: str, data: bytes, tag: Tag) -> Tag:
    self.put(path, data)
    found = self.read_if_changed(path, None)
    assert found is not None
    return found.tag


def plain_create(self: MemoryObjectStore, path: str, data: bytes) -> PutResult:
    self.put(path, data)
    return PutResult.CREATED


def stop_without_a_commit(self: TableEnds, name: Any, entry: TableEntry) -> TableEntry | None:
    stopped = replace(entry, mark=Mark(self.clock.new_id(), is_ending=False))
    self.register.change(lambda names: names.with_relation(name, stopped) if names.find(name) == entry else names)
    return None if self._has_ended(name, entry) else stopped


def end_without_a_look(self: TableEnds, name: Any, entry: TableEntry, end: Any) -> bool:
    return end_log(self.log(name, entry), self.clock, end) is EndResult.ENDED


class TestBugs:
    def test_a_swap_without_its_condition_is_found(self) -> None:
        finds(MemoryObjectStore, "swap_if_unchanged", plain_swap)

    def test_a_commit_without_its_condition_is_found(self) -> None:
        finds(MemoryObjectStore, "put_if_absent", plain_create, 150)

    def test_a_mark_that_is_not_set_before_a_table_ends_is_found(self) -> None:
        finds(TableEnds, "marked", lambda self, names, name, entry: names, 240)

    def test_a_mark_that_is_not_checked_before_a_table_ends_is_found(self) -> None:
        finds(TableEnds, "end", end_without_a_look)

    def test_a_rename_that_does_not_take_the_version_of_a_drop_in_progress_is_found(self) -> None:
        finds(TableEnds, "stop", stop_without_a_commit, 100)

    def test_a_view_that_is_lost_when_its_statement_is_interrupted_is_found(self) -> None:
        finds(TableEnds, "_successor", lambda self, name, entry: None, 70)

    def test_a_change_that_is_not_recognised_after_a_lost_answer_is_found(self) -> None:
        finds(Names, "with_change", lambda self, id_: self, 40)

    def test_a_late_write_of_a_drop_into_an_emptied_folder_is_found(self) -> None:
        finds(UniqueFolder, "_is_witness_unchanged", lambda self: True)


def _takes(value: str) -> Any:
    return lambda state, outcome: None if "name" in state or outcome != "ok" else {"name": value}


class TestOrders:
    def test_two_creations_of_one_name_cannot_both_succeed(self) -> None:
        both = [Operation(each, _takes(each), 0, 9, "ok") for each in ("a", "b")]
        assert order_of(both) is None
        assert order_of([both[0], replace(both[1], outcome=None, ended=None)]) is not None

    def test_an_operation_takes_effect_after_all_operations_that_ended_before_its_start(self) -> None:
        seen = Operation("look", lambda state, _: state if not state else None, 5, 6, "nothing")
        assert order_of([Operation("a", _takes("a"), 0, 4, "ok"), seen]) is None
        assert order_of([Operation("a", _takes("a"), 0, 6, "ok"), seen]) == [1, 0]
