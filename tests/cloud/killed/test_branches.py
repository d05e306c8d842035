"""Named branches in an object store on a server: what is killed at a write is whole or absent, and is completed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import BranchNotFoundError
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.cloud.servers import ObjectServer
from tests.publication.tables import Killed
from tests.unit.engine.catalog.branches import test_branch_names as names

MOST_WRITES = 120
PATIENCE_MS = 60_000


class Later(SystemClock):
    """The machine's clock, later: the server has the times of its files from the same clock."""

    def __init__(self, later_ms: int) -> None:
        self.later_ms = later_ms

    def now_ms(self) -> int:
        return super().now_ms() + self.later_ms


def opened(store: Store, seed: int = 0, later_ms: int = 0) -> Catalog:
    """The catalog as another process opens it."""
    del seed
    return Catalog({"silt": store}, Later(later_ms))


def branches(store: Store, later_ms: int = 0) -> NamedBranches:
    return opened(store, later_ms=later_ms).named_branches("silt")


def create(store: Store) -> None:
    branches(store).create("pr_17", "ann")


def write(store: Store) -> None:
    catalog = opened(store)
    names.append(catalog.on_branch("silt", branches(store).join("pr_17")).table(names.KEPT), "new")


def merge(store: Store) -> None:
    with contextlib.suppress(BranchNotFoundError):  # the last write was the end of the branch
        branches(store, PATIENCE_MS).merge("pr_17")


def delete(store: Store) -> None:
    known = branches(store)
    with contextlib.suppress(BranchNotFoundError):
        known.delete(known.find("pr_17"))


STEPS: dict[str, Callable[[Store], None]] = {each.__name__: each for each in (create, write, merge, delete)}
BEFORE_STEP = {"create": (), "write": (create,), "merge": (create, write), "delete": (create, write)}
MERGED = "table ['new', 'old']"


def filled(server: ObjectServer) -> Store:
    """Returns a database with a table."""
    store = server.store()
    catalog = opened(store)
    catalog.create_schema("silt", "main")
    names.create(catalog, names.KEPT, "old")
    return store


def rows(store: Store) -> str:
    return names.shown(opened(store, later_ms=PATIENCE_MS))["kept"]


@pytest.mark.parametrize("fate", ["lost", "done", "late"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_is_killed_at_any_write_is_completed(server: ObjectServer, step: str, fate: str) -> None:
    for writes in range(MOST_WRITES):
        store = filled(server)
        for each in BEFORE_STEP[step]:
            each(store)
        dying = names.Dying(store, writes, fate)
        with contextlib.suppress(Killed):
            STEPS[step](dying)
            return
        assert rows(store) in ("table ['old']", MERGED if step == "merge" else "table ['old']")
        dying.arrive()
        if step == "create" and any(each.name == "pr_17" for each in branches(store).all()):
            continue
        STEPS[step](store)
        assert rows(store) == (MERGED if step == "merge" else "table ['old']")
        exists = any(each.name == "pr_17" for each in branches(store).all())
        assert exists == (step in ("create", "write"))
    raise AssertionError("the step does not end")


def test_a_branch_is_created_changed_and_merged(server: ObjectServer) -> None:
    store = filled(server)
    create(store)
    write(store)
    assert branches(store).branch("pr_17").changed("silt") == ["silt.main.kept"]
    assert rows(store) == "table ['old']"
    merge(store)
    assert rows(store) == MERGED and not branches(store).all()
