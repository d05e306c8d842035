"""A named branch begins with the tables of one moment, and only programs that name it see its changes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.branches import named_documents
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.named_branches import NamedBranches
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import (
    BranchNotFoundError,
    ConcurrentCreateError,
    ConcurrentModificationError,
    InvalidArgumentError,
    InvalidNameError,
    RunInProgressError,
    RunNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.documents import Status
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication_marks import made_by
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import Action, CommitInfo, SetTransaction, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock
from tests.unit.engine.catalog.branches.test_branch_names import (
    AFTER,
    AGAIN,
    BEFORE,
    DROPPED,
    FROM_VIEW,
    KEPT,
    NEW,
    NEW_VIEW,
    STORES,
    VIEW,
    append,
    change_all,
    create,
    filled,
    opened,
    shown,
    view,
)
from tests.unit.engine.kernel.log_builder import add, paths

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture(params=list(STORES.values()), ids=list(STORES))
def store(request: pytest.FixtureRequest) -> Store:
    return filled(request.param)


def branches(catalog: Catalog) -> NamedBranches:
    return catalog.named_branches("silt")


def inside(catalog: Catalog, name: str = "pr_17") -> Catalog:
    """The catalog as a session that has joined the branch sees it."""
    return catalog.on_branch("silt", branches(catalog).join(name))


def test_a_branch_begins_with_all_tables_and_writes_one_document(store: Store) -> None:
    before = {each.path for each in store.files_below("")}
    created = branches(opened(store)).create("PR_17", "ann")
    assert (created.name, created.owner, created.days) == ("pr_17", "ann", 14)
    new = {each.path for each in store.files_below("")} - before
    assert new == {created.path, f"_branches/{created.branch}/begun"}
    assert shown(inside(opened(store, 1))) == BEFORE


def test_several_processes_change_a_branch_and_nobody_else_sees_it(store: Store) -> None:
    branches(opened(store)).create("pr_17", "ann")
    change_all(inside(opened(store, 1)))
    assert shown(inside(opened(store, 2))) == AFTER
    assert shown(opened(store, 3)) == BEFORE
    append(inside(opened(store, 4)).table(KEPT), "more")
    assert paths(inside(opened(store, 5)).table(KEPT)) == {"old", "new", "more"}


def test_a_statement_sees_the_names_that_another_process_has_changed_meanwhile(store: Store) -> None:
    branches(opened(store)).create("pr_17", "ann")
    session, other = inside(opened(store, 1)), inside(opened(store, 2))
    create(other, NEW, "new")
    other.put_view(view(VIEW, "select 2"), replace=True)
    other.drop_table(DROPPED)
    seen = shown(session)
    assert (seen["new"], seen["v"], "dropped" in seen) == ("table ['new']", "view select 2", False)


def test_tables_are_read_as_they_were_when_the_branch_was_created(store: Store) -> None:
    branches(opened(store)).create("pr_17", "ann")
    append(opened(store, 1).table(KEPT), "later")
    create(opened(store, 2), NEW, "later")
    assert shown(inside(opened(store, 3))) == BEFORE
    assert "later" in shown(opened(store, 4))["kept"]


def test_a_table_that_was_created_since_is_missing_and_its_name_is_taken(store: Store) -> None:
    branches(opened(store)).create("pr_17", "ann")
    create(opened(store, 1), NEW, "later")
    session = inside(opened(store, 2))
    assert session.find(NEW) is None
    session.drop_table(NEW, if_exists=True)
    for change in (lambda: session.new_table(NEW), lambda: session.put_view(view(NEW, "select 2"))):
        with pytest.raises(ConcurrentCreateError, match="another program has created it since"):
            change()
    assert opened(store, 3).find(NEW) is not None


def test_a_publication_is_on_the_branch_with_all_of_its_tables_or_with_none(store: Store) -> None:
    """Its commits are put before the branch begins, and it is decided after that."""
    catalog, register = opened(store), Publications(store, FixedClock(seed=7))
    publication = 1_700_000_000_000 << 20
    for name in (KEPT, AGAIN):
        log = register.log_at(register.location_of(catalog.table(name)), str(name))
        _append_marked(log, publication)
    branches(opened(store, 1)).create("pr_17", "ann")
    assert register.close(publication, Status.PUBLISHED)
    branches(opened(store, 2)).create("pr_18", "ann")
    assert [paths(inside(opened(store, 3)).table(name)) for name in (KEPT, AGAIN)] == [{"old"}, {"old"}]
    assert [paths(inside(opened(store, 4), "pr_18").table(name)) for name in (KEPT, AGAIN)] == [{"old", "p"}] * 2


def _append_marked(log: DeltaLog, publication: int) -> None:
    version = log.snapshot().version + 1
    info = CommitInfo(operation="WRITE", extra=made_by(publication))
    actions: list[Action] = [info, SetTransaction("silt.publication", publication), add("p")]
    log.store.put(commit_path(version), serialize(actions))


def test_an_unknown_branch_has_a_remedy_with_near_names(store: Store) -> None:
    catalog = opened(store)
    with pytest.raises(RunNotFoundError, match="neither a branch nor an unpublished run `pr_17`"):
        branches(catalog).join("pr_17")
    branches(catalog).create("pr_17", "ann")
    for look in (branches(catalog).find, branches(catalog).join, branches(catalog).branch):
        with pytest.raises(BranchNotFoundError, match="Did you mean pr_17"):
            look("pr_71")


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\nb", "x" * 300, "a​b"])
def test_a_branch_has_a_name_like_a_schema(store: Store, name: str) -> None:
    with pytest.raises(InvalidNameError):
        branches(opened(store)).create(name, "ann")


def test_a_branch_cannot_be_confused_with_a_run_a_schema_or_another_branch(store: Store) -> None:
    catalog = opened(store)
    catalog.run_branches("silt").open(BranchedRun("shop", "dev", "monday-1"))
    branches(catalog).create("pr_17", "ann")
    for name, reason in (("monday", "the run `monday-1`"), ("main", "the schema `main`"), ("PR_17", "ann has created")):
        with pytest.raises(InvalidArgumentError, match=reason):
            branches(catalog).create(name, "bob")
    for days in (0, -1, 10_000):
        with pytest.raises(InvalidArgumentError, match="cannot expire"):
            branches(catalog).create("pr_18", "ann", days)


def test_the_branch_of_a_run_is_found_as_before(store: Store) -> None:
    catalog = opened(store)
    _, branch = catalog.run_branches("silt").open(BranchedRun("shop", "dev", "monday-1"))
    assert branches(catalog).join("monday").id == branch.id


def test_a_branch_lists_its_changes_and_the_versions_that_it_is_behind(store: Store) -> None:
    catalog = opened(store)
    created = branches(catalog).create("pr_17", "ann")
    session = inside(catalog)
    append(session.table(KEPT), "new")
    session.put_view(view(NEW_VIEW, "select 2"))
    for path in ("x", "y"):
        append(opened(store, 1).table(KEPT), path)
    state = branches(opened(store, 2)).state(created)
    assert (state.changed, state.behind) == (["silt.main.kept", "silt.main.new_view"], {"silt.main.kept": 2})
    assert [each.name for each in branches(catalog).all()] == ["pr_17"]


def test_a_deleted_branch_leaves_nothing_and_its_sessions_are_told(store: Store) -> None:
    before = {each.path for each in store.files_below("")}
    catalog = opened(store)
    created = branches(catalog).create("pr_17", "ann")
    joined = branches(catalog).join("pr_17")
    change_all(catalog.on_branch("silt", joined))
    branches(opened(store, 1)).delete(created)
    assert shown(opened(store, 2)) == BEFORE and not branches(opened(store, 3)).all()
    left = {each.path for each in store.files_below("")} - before
    assert left == {f"_branches/{created.branch}/1.attempt.json", f"_branches/{created.branch}/begun"}
    with pytest.raises(ConcurrentModificationError, match="the branch `pr_17` on which"):
        joined.attempts.check_open()
    with pytest.raises(RunNotFoundError):
        branches(opened(store, 4)).join("pr_17")
    assert branches(opened(store, 5)).create("pr_17", "bob").branch != created.branch


def test_a_branch_expires_when_nothing_has_used_it(store: Store) -> None:
    created = branches(opened(store)).create("pr_17", "ann", days=9)
    append(inside(opened(store, 1)).table(KEPT), "new")
    inside(opened(store, 2, later_ms=8 * DAY_MS))
    late = opened(store, 3, later_ms=16 * DAY_MS)
    assert paths(inside(late).table(KEPT)) == {"old", "new"}
    last = opened(store, 4, later_ms=26 * DAY_MS)
    assert not branches(last).all()
    with pytest.raises(RunNotFoundError):
        inside(last)
    last.new_branch("silt")
    assert not [each.path for each in store.files_below("_branches") if created.branch in each.path]
    assert named_documents.read_named(store, created.path) is None


def test_other_programs_leave_a_branch_that_is_older_than_a_run_may_be(store: Store) -> None:
    branches(opened(store)).create("pr_17", "ann")
    append(inside(opened(store, 1)).table(KEPT), "new")
    opened(store, 2, later_ms=10 * DAY_MS).new_branch("silt")
    late = opened(store, 3, later_ms=10 * DAY_MS)
    late.run_branches("silt").open(BranchedRun("shop", "dev", "run-1"))
    assert paths(inside(late).table(KEPT)) == {"old", "new"}


def test_vacuum_knows_the_files_of_a_branch_that_has_not_read_them_yet(store: Store) -> None:
    catalog = opened(store)
    created = branches(catalog).create("pr_17", "ann")
    log = opened(store, 1).table(KEPT)
    append(log, "later")
    assert opened(store, 2).held_files(log) == {created.branch: {"old"}}
    append(inside(opened(store, 3)).table(KEPT), "new")
    assert opened(store, 4).held_files(log) == {created.branch: {"old", "new"}}
    assert opened(store, 5, later_ms=20 * DAY_MS).held_files(log) == {}


def test_a_clean_up_of_a_log_leaves_the_version_with_which_a_branch_begins(store: Store) -> None:
    """Ten commits later, the log begins with a checkpoint; its files expire at once by the table's property."""
    catalog = opened(store)
    _let_log_expire(catalog.table(KEPT))
    branches(catalog).create("pr_17", "ann")
    late = opened(store, 1, later_ms=10 * DAY_MS)
    for number in range(25):
        append(late.table(KEPT), f"later-{number}")
        late.table(KEPT).after_commit(late.table(KEPT).snapshot().version)
    assert paths(inside(opened(store, 2, later_ms=11 * DAY_MS)).table(KEPT)) == {"old"}


def _let_log_expire(log: DeltaLog) -> None:
    snapshot = log.snapshot()
    metadata = replace(snapshot.metadata, configuration={"delta.logRetentionDuration": "interval 1 day"})
    commit(log, snapshot, Changes(Operation("SET TBLPROPERTIES"), metadata=metadata), ReadSet(), CommitSettings())


def test_a_branch_on_which_a_command_works_is_not_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    created = branches(opened(store)).create("pr_17", "ann")
    monkeypatch.setattr(CommandDocuments, "at_work", lambda _: ("`dbt build`",))
    with pytest.raises(RunInProgressError):
        branches(opened(store, 1)).delete(created)
    assert branches(opened(store, 2)).all()


def test_a_damaged_document_hides_no_other_branch(store: Store) -> None:
    created = branches(opened(store)).create("pr_17", "ann")
    branches(opened(store, 1)).create("pr_18", "ann")
    store.put(created.path, json.dumps({"format": 1, "name": "pr_17", "branch": "../x"}).encode())
    assert [each.name for each in branches(opened(store, 2)).all()] == ["pr_18"]


def test_only_one_of_two_processes_creates_a_branch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = branches(opened(store)), branches(opened(store, 1))
    delete_old = branch_attempts.delete_old_branches

    def meanwhile(*_: object) -> None:
        monkeypatch.setattr(branch_attempts, "delete_old_branches", delete_old)
        second.create("pr_17", "bob")

    monkeypatch.setattr(branch_attempts, "delete_old_branches", meanwhile)
    with pytest.raises(InvalidArgumentError, match="bob has created it"):
        first.create("pr_17", "ann")


def test_a_view_is_replaced_by_a_table_on_the_branch(store: Store) -> None:
    branches(opened(store)).create("pr_17", "ann")
    create(inside(opened(store, 1)), FROM_VIEW, "new", replace_view=True)
    assert shown(inside(opened(store, 2)))["from_view"] == "table ['new']"
    assert isinstance(branches(opened(store, 3)).branch("pr_17"), Branch)
