"""Statements that a run leaves to the time after its publication run then, at least once, and in no other case."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.catalog.branches.later_statements import SUFFIX, LaterStatement, LaterStatements
from dbt.adapters.silt.engine.catalog.branches.run_branches import RunBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches.test_branch_names import AFTER, BEFORE, STORES, Dying, filled, opened, shown
from tests.unit.engine.catalog.branches.test_run_branches import DAY_MS, RUN, begun, left, work

A, B, C = (LaterStatement(f"vacuum {name}", f"silt/{name}") for name in "abc")
_MOST_WRITES = 100


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def worked(catalog: Catalog) -> tuple[RunBranches, Callable[[], dict[str, int]], LaterStatements]:
    runs, run, branch, inside = begun(catalog)
    work(inside)
    return runs, lambda: runs.publish(run, branch), runs.later(run)


def waiting(catalog: Catalog) -> list[LaterStatement]:
    """Runs the statements of a published run, as its next process does; returns them."""
    runs = catalog.run_branches("silt")
    done: list[LaterStatement] = []
    run = runs.waiting(RUN)
    if run is not None:
        runs.run_later(run, done.append)
    return done


def test_they_run_once_after_the_publication_in_the_order_in_which_they_were_added(store: Store) -> None:
    runs, publish, later = worked(opened(store))
    later.add("model.b", [B])
    later.add("model.a", [A, C])
    later.add("model.a", [A])
    assert waiting(opened(store, 1)) == []
    publish()
    (run,) = runs.all()
    done: list[LaterStatement] = []
    assert runs.run_later(run, done.append) == 3
    assert done == [B, A, C]
    assert waiting(opened(store, 2)) == [] and not left(store)


def test_the_next_process_of_the_run_drops_those_of_owners_that_are_gone(store: Store) -> None:
    _, _, later = worked(opened(store))
    for owner, statement in (("model.a", A), ("model.b", B), ("operation.c", C)):
        later.add(owner, [statement])
    runs, run, branch, _ = begun(opened(store, 1))
    runs.later(run).forget_others({"model.a", "model.d"})
    runs.publish(run, branch)
    assert waiting(opened(store, 2)) == [A]


def test_a_statement_that_fails_is_run_again_with_those_after_it(store: Store) -> None:
    runs, publish, later = worked(opened(store))
    later.add("model.a", [A, B, C])
    publish()

    def carry_out(statement: LaterStatement) -> None:
        if statement == B:
            raise ValueError("no right to do that")

    with pytest.raises(ValueError, match="no right"):
        runs.run_later(runs.all()[0], carry_out)
    assert waiting(opened(store, 1)) == [B, C]
    assert waiting(opened(store, 2)) == [] and not left(store)


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)], ids=["a few writes", "each write"])
@pytest.mark.parametrize("make", STORES.values(), ids=list(STORES))
def test_a_run_killed_at_any_write_runs_each_statement_at_least_once(
    make: Callable[[], Store], every: int, fate: str
) -> None:
    """At most twice: a process is killed once, after the statement and before the record of it."""
    doubled = 0
    for writes in range(0, _MOST_WRITES, every):
        store = filled(make)
        dying = Dying(store, writes, fate)
        done: list[LaterStatement] = []
        with contextlib.suppress(Killed):
            _end(opened(dying, 1), done)
            break
        seen = shown(opened(store, 2))
        assert seen in (BEFORE, AFTER) and (not done or seen == AFTER)
        dying.arrive()
        done += waiting(opened(store, 3, later_ms=60_000))
        if shown(opened(store, 4)) == BEFORE:
            _end(opened(store, 5, later_ms=60_000), done)
        times = Counter(done)
        assert set(times) == {A, B} and max(times.values()) <= 2 and sum(times.values()) <= 3
        doubled += sum(times.values()) == 3
    else:
        raise AssertionError("the run does not end")
    assert doubled or every > 1 or fate != "lost"


def _end(catalog: Catalog, done: list[LaterStatement]) -> None:
    runs, publish, later = worked(catalog)
    later.add("model.a", [A])
    later.add("model.b", [B])
    publish()
    (run,) = runs.all()
    runs.run_later(run, done.append)


def test_the_statements_of_a_dropped_run_never_run(store: Store) -> None:
    runs, _, later = worked(opened(store))
    later.add("model.a", [A])
    (run,) = runs.all()
    runs.drop(run, runs.existing(run, to_drop=True))
    assert waiting(opened(store, 1)) == [] and not left(store)


def test_the_rest_of_a_published_run_can_be_dropped(store: Store) -> None:
    runs, publish, later = worked(opened(store))
    later.add("model.a", [A, B])
    publish()
    assert runs.drop_later(runs.all()[0]) == 2
    assert waiting(opened(store, 1)) == [] and not left(store)


def test_a_node_that_runs_again_replaces_what_an_earlier_process_has_added(store: Store) -> None:
    _, _, later = worked(opened(store))
    later.add("model.a", [A])
    later.add("model.b", [B])
    runs, run, branch, _ = begun(opened(store, 1))
    again = runs.later(run)
    again.begin("model.a")
    again.add("model.b", [C])
    again.begin("model.b")
    assert len(again) == 1
    runs.publish(run, branch)
    assert waiting(opened(store, 2)) == [C]


def test_statements_of_a_run_that_is_too_old_are_deleted_with_its_branch(store: Store) -> None:
    _, publish, later = worked(opened(store))
    later.add("model.a", [A])
    publish()
    begun(opened(store, 1, later_ms=8 * DAY_MS))
    assert not [path for path in left(store) if path.endswith(SUFFIX)]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"owner": "m", "number": 1, "statements": [1]}', b'{"number": "x"}'])
def test_a_document_that_cannot_be_read_is_refused_by_name(store: Store, body: bytes) -> None:
    runs, publish, later = worked(opened(store))
    later.add("model.a", [A])
    (path,) = [path for path in left(store) if path.endswith(SUFFIX)]
    store.put(path, body)
    with pytest.raises(CorruptLogError, match=r"later\.json cannot be read"):
        runs.waiting(RUN)
    with pytest.raises(CorruptLogError, match=r"later\.json cannot be read"):
        publish()
    assert shown(opened(store, 1)) == BEFORE
