"""A session works on the branch of a run beside the run: its changes are published with the run, or it is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches.attempts import BranchAttempts
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, RunNotFoundError, SiltError
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.fixed_clock import FixedClock
from tests.publication.test_planted_bugs import fails
from tests.simulation.interleaving import Scheduler, YieldingStore, random_order
from tests.unit.engine.catalog.branches.test_branch_names import (
    KEPT,
    NEW,
    NEW_VIEW,
    STORES,
    append,
    create,
    filled,
    opened,
    view,
)
from tests.unit.engine.kernel.log_builder import paths

RUN = BranchedRun("shop", "dev", "run-1")
SEEDS = range(12)
MakeStore = Callable[[], Store]


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def runs(catalog: Catalog) -> RunBranches:
    return catalog.run_branches("silt")


def test_what_a_session_has_changed_is_published_with_the_run(store: Store) -> None:
    catalog, other = opened(store), opened(store, 1)
    run, branch = runs(catalog).open(RUN)
    append(catalog.on_branch("silt", branch).table(KEPT), "of-the-run")
    joined = runs(other).join("run-")
    beside = other.on_branch("silt", joined)
    append(beside.table(KEPT), "beside")
    create(beside, NEW, "new")
    beside.put_view(view(NEW_VIEW, "select 2"))
    joined.attempts.check_open()
    assert runs(catalog).publish(run, branch) == {"silt.main.kept": 2, "silt.main.new": 0}
    after = opened(store, 2)
    assert paths(after.table(KEPT)) == {"old", "of-the-run", "beside"}
    assert after.view(NEW_VIEW).text == "select 2"
    with pytest.raises(ConcurrentModificationError, match="was published"):
        joined.attempts.check_open()


def test_a_run_that_has_changed_nothing_publishes_what_a_session_has_changed(store: Store) -> None:
    catalog, other = opened(store), opened(store, 1)
    run, branch = runs(catalog).open(RUN)
    append(other.on_branch("silt", runs(other).join("run-1")).table(KEPT), "beside")
    assert runs(catalog).publish(run, branch) == {"silt.main.kept": 2}


def test_a_run_that_was_published_or_dropped_cannot_be_joined(store: Store) -> None:
    catalog = opened(store)
    run, branch = runs(catalog).open(RUN)
    joined = runs(opened(store, 1)).join("run-1")
    runs(catalog).drop(run, branch)
    with pytest.raises(ConcurrentModificationError, match="was published or dropped"):
        joined.attempts.check_open()
    with pytest.raises(RunNotFoundError):
        runs(opened(store, 2)).join("run-1")


def test_a_run_that_is_being_published_cannot_be_joined_before_its_process_continues(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = opened(store)
    run, branch = runs(catalog).open(RUN)
    append(catalog.on_branch("silt", branch).table(KEPT), "of-the-run")
    with monkeypatch.context() as patch:
        patch.setattr(Publications, "complete", _killed)
        patch.setattr(Publications, "settle", _killed)
        with pytest.raises(KeyboardInterrupt):
            runs(catalog).publish(run, branch)
    for attempt in store.files_below(branch_attempts.FOLDER):
        if "attempt" not in attempt.path:
            continue
        publication = store.read(attempt.path, 1_000).decode().split('"')[3]
        store.delete(f"_publications/{publication}.json")
    with pytest.raises(ConcurrentModificationError, match="is being published"):
        runs(opened(store, 1)).join("run-1")


def _killed(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_a_run_that_is_too_old_cannot_be_joined(store: Store) -> None:
    week_ms = 7 * 24 * 60 * 60 * 1000
    _, branch = runs(opened(store)).open(RUN)
    late = Publications(store, FixedClock(1_700_000_000_000 + week_ms + 60_000))
    with pytest.raises(ConcurrentModificationError, match="too old"):
        Branch(late, branch.id).attempts.check_open()


def story(make: MakeStore) -> None:
    """A session appends a file while the run is published: if it succeeds, the file is published."""
    seen = set()
    for seed in SEEDS:
        store = filled(make)
        run, opened_branch = runs(opened(store)).open(RUN)
        append(opened(store).on_branch("silt", opened_branch).table(KEPT), "of-the-run")
        scheduler = Scheduler()
        publisher, session = (opened(YieldingStore(store, scheduler), number) for number in (1, 2))

        def publish(publisher: Catalog = publisher, run: BranchedRun = run) -> object:
            return runs(publisher).publish(run, runs(publisher).existing(run))

        def change(session: Catalog = session) -> bool:
            joined = runs(session).join("run-1")
            log = session.on_branch("silt", joined).table(KEPT)
            append(log, "beside")
            joined.attempts.check_open()
            return True

        published, changed = scheduler.run((publish, change), random_order(seed))
        assert isinstance(published, dict), published
        assert changed is True or isinstance(changed, SiltError), changed
        found = paths(opened(store, 9).table(KEPT))
        assert found - {"beside"} == {"old", "of-the-run"}
        assert changed is not True or "beside" in found, "the change of the session is lost"
        seen.add(changed is True)
    assert seen == {True, False}


@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_no_change_that_succeeded_is_lost_while_the_run_is_published(make: MakeStore) -> None:
    story(make)


def reads_no_document_again(patch: pytest.MonkeyPatch) -> None:
    announce = BranchAttempts.announce

    def announced(branch: BranchAttempts, publication: int | None) -> None:
        branch._is_read_again = True
        announce(branch, publication)

    patch.setattr(BranchAttempts, "announce", announced)


def checks_nothing_afterwards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BranchAttempts, "check_open", lambda _: None)


@pytest.mark.parametrize("plant", [reads_no_document_again, checks_nothing_afterwards])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(fails(partial(story, make)) for make in STORES.values())
