"""The folder of a table is replaced by a copy, and other commits get the numbers of the commits that were read.

What the base of a run's branch, a rerun, a data test and a clone make of it, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.builds.decision import Built, LastBuild, Reused
from dbt.adapters.silt.engine.builds.origins import Origin, differences, origin_of
from dbt.adapters.silt.engine.builds.passed_tests import PassedTest, PassedTests
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ConcurrentDropError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.runs.logical_run.changed_inputs import changed_inputs
from tests.unit.engine.catalog.branches.test_branches import NAMES, append, opened
from tests.unit.engine.kernel.log_builder import paths

READ, WRITTEN = NAMES
RUN = BranchedRun("shop", "dev", "monday")
BUILD = Build("test.shop.few", "code")
Restore = Callable[[bool], Catalog]


def put_back(log: DeltaLog, copy: Mapping[str, bytes]) -> None:
    """Replaces the log; data files that only a branch names stay."""
    log.store.delete_all([each.path for each in log.store.files_below("") if each.path.startswith("_delta_log/")])
    for path, data in copy.items():
        log.store.put(path, data)


@pytest.fixture(params=NAMES, ids=str)
def name(request: pytest.FixtureRequest) -> RelationName:
    found: RelationName = request.param
    return found


@pytest.fixture
def restore(store: Store, name: RelationName) -> Restore:
    """Restores the table in another process from a copy: of its present version, or of the version before, after which
    another commit gets the number of the present version.
    """
    log = opened(store).table(name)
    earlier = {each.path: log.store.read(each.path) for each in log.store.files_below("")}
    append(opened(store), name, "lost")
    present = {each.path: log.store.read(each.path) for each in log.store.files_below("")}

    def restored(is_other: bool) -> Catalog:
        found = opened(store, 5)
        put_back(found.table(name), earlier if is_other else present)
        found = opened(store, 6)
        if is_other:
            append(found, name, "another")
        return found

    return restored


def begun(store: Store) -> None:
    """Begins a run that reads one table, and changes the other."""
    catalog = opened(store, 1)
    _, branch = catalog.run_branches("silt").open(RUN)
    inside = catalog.on_branch("silt", branch)
    inside.table(READ).snapshot()
    append(inside, WRITTEN, "of-the-run")


def reopened(catalog: Catalog) -> Branch:
    return catalog.run_branches("silt").open(RUN)[1]


def test_a_run_does_not_continue_on_another_version_of_the_number_with_which_it_began(
    store: Store, name: RelationName, restore: Restore
) -> None:
    begun(store)
    catalog = restore(True)
    runs = catalog.run_branches("silt")
    if name == WRITTEN:
        for reopen in (lambda: reopened(catalog), lambda: runs.existing(runs.find("monday"))):
            with pytest.raises(ConcurrentDropError, match="restored from a copy") as refused:
                reopen()  # type: ignore[no-untyped-call]
            assert "silt drop-run" in str(refused.value)
    else:
        inside = catalog.on_branch("silt", reopened(catalog))
        with pytest.raises(VersionNotFoundError, match="restored from a copy"):
            inside.table(READ).snapshot()
    run = runs.find("monday")
    runs.drop(run, runs.existing(run, to_drop=True))
    assert paths(opened(store, 7).table(name)) == {"another"}
    again = catalog.on_branch("silt", reopened(catalog))
    assert paths(again.table(name)) == {"another"}


def test_a_run_continues_on_a_copy_of_the_version_with_which_it_began(
    store: Store, name: RelationName, restore: Restore
) -> None:
    begun(store)
    catalog = restore(False)
    branch = reopened(catalog)
    assert paths(catalog.on_branch("silt", branch).table(name)) >= {"lost"}
    runs = catalog.run_branches("silt")
    runs.publish(runs.find("monday"), branch)
    assert "of-the-run" in paths(opened(store, 7).table(WRITTEN))


def test_a_continued_branch_knows_the_bases_of_the_branch_before(
    store: Store, name: RelationName, restore: Restore
) -> None:
    catalog = opened(store, 1)
    runs = catalog.run_branches("silt")
    other = runs.open(RUN)[1].without(frozenset())
    append(catalog.on_branch("silt", other), name, "of-the-run")
    with pytest.raises(ConcurrentDropError, match="restored from a copy"):
        restore(True).branch("silt", other.id)


def test_a_rerun_takes_a_table_for_replaced_whose_version_is_another(
    store: Store, name: RelationName, restore: Restore
) -> None:
    version = opened(store).table(name).snapshot().version
    reader = CommitInfo(1_700_000_004_000, read_versions={str(name): [version]})
    assert changed_inputs(opened(store, 4), "", reader, "") == []
    assert [each.text for each in changed_inputs(restore(True), "", reader, "")] == [f"{name} was replaced"]


def state(catalog: Catalog, name: RelationName) -> TableState:
    snapshot = catalog.table(name).snapshot()
    return TableState.of(snapshot.metadata, snapshot.version, snapshot.content)


@pytest.mark.parametrize("is_other", [True, False])
def test_a_data_test_runs_again_on_another_version_of_the_number_on_which_it_passed(
    store: Store, name: RelationName, restore: Restore, is_other: bool
) -> None:
    read = {str(name): state(opened(store), name)}
    PassedTests(opened(store), "silt").note(PassedTest(BuildFacts(BUILD.owner, BUILD.code, tables=read)))
    known = PassedTests(restore(is_other), "silt")
    found = known.decide(BUILD, known.find(BUILD.owner), "")
    if is_other:
        assert isinstance(found, Built) and "was restored from a copy" in found.reasons[0]
    else:
        assert isinstance(found, Reused)


@pytest.mark.parametrize("is_other", [True, False])
def test_the_build_of_another_target_is_not_cloned_if_it_has_read_another_version(
    store: Store, name: RelationName, restore: Restore, is_other: bool
) -> None:
    catalog = opened(store)
    theirs = BuildFacts("model.shop.m", "code", tables={str(name): state(catalog, name)}, portable="same")
    after = restore(is_other)
    mine = replace(theirs, tables={str(name): state(after, name)})
    found = list(differences(after, mine, LastBuild("silt.prod.m", 4, theirs)))
    assert bool(found) == is_other, found


def test_a_clone_of_a_version_has_other_rows_than_another_version_of_its_number(
    store: Store, name: RelationName, restore: Restore
) -> None:
    before = state(opened(store), name)
    after = restore(True)
    now = state(after, name)
    assert (now.table_id, now.version) == (before.table_id, before.version)
    own = origin_of(after.table(name), now.table_id, now.version, now.content)
    assert own != Origin(before.table_id, before.version, before.content)
