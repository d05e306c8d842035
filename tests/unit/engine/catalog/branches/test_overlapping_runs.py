"""Two runs that overlap, and run only what conflicts again, leave the tables as if one had run after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.conflicts import Relation
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.catalog.branches.test_branch_names import DROPPED, KEPT, STORES, filled, opened
from tests.unit.engine.kernel.log_builder import add, paths

PAIRS = 20
TABLES = (KEPT, DROPPED)
_MOST_TURNS = 20


def count(inside: Catalog, table: RelationName, run: str) -> None:
    """Adds a row that depends on all rows of the table: a file that is named after their number."""
    log = inside.table(table)
    snapshot = log.snapshot()
    path = f"{run} after {snapshot.files.num_rows}"
    log.store.put(path, b"data")
    changes = Changes(Operation("WRITE"), (add(path),))
    commit(log, snapshot, changes, ReadSet(whole_table=True), CommitSettings())


class Run:
    """A run that counts the rows of each table.

    Attributes:
        counted: how often it has counted the rows of a table.
    """

    def __init__(self, catalog: Catalog, name: str) -> None:
        self._catalog, self._name = catalog, name
        self.counted = 0

    def __call__(self) -> dict[str, int]:
        runs = self._catalog.run_branches("silt")
        for _ in range(_MOST_TURNS):
            run, branch = runs.open(BranchedRun("shop", "dev", self._name))
            self._count(branch, {("main", each.identifier) for each in TABLES})
            run, branch = self._again(runs, run, branch)
            try:
                return runs.publish(run, branch)
            except ConcurrentModificationError:
                runs.drop(run, branch)
        raise AssertionError("the run is never published")

    def _again(self, runs: RunBranches, run: BranchedRun, branch: Branch) -> tuple[BranchedRun, Branch]:
        while lost := branch.conflicts("silt"):
            run, branch, _ = runs.begin_again(run, branch, lost, runs.later(run))
            self._count(branch, set(lost))
        return run, branch

    def _count(self, branch: Branch, relations: set[Relation]) -> None:
        inside = self._catalog.on_branch("silt", branch)
        for each in TABLES:
            if ("main", each.identifier) in relations:
                count(inside, each, self._name)
                self.counted += 1


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_pairs_of_runs_are_equal_to_a_serial_order(make: Callable[[], Store]) -> None:
    counted = []
    for seed in range(PAIRS):
        store = filled(make)
        scheduler = Scheduler()
        both = [Run(opened(YieldingStore(store, scheduler), number), f"run {number}") for number in (1, 2)]
        for published in scheduler.run(tuple(both), random_order(seed)):
            assert isinstance(published, dict), published
        found = [paths(opened(store, 9).table(each)) - {"old"} for each in TABLES]
        orders = ({"run 1 after 1", "run 2 after 2"}, {"run 2 after 1", "run 1 after 2"})
        assert found[0] == found[1] and found[0] in orders, found
        counted.append(sum(each.counted for each in both))
    assert min(counted) >= 2 * len(TABLES) and max(counted) > 2 * len(TABLES), "no pair has overlapped"
