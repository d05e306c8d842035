"""The documents of tests that passed, in folders and in an object store, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.builds.decision import Built, Reused
from dbt.adapters.silt.engine.builds.passed_tests import PassedTest, PassedTests
from dbt.adapters.silt.engine.builds.present import present
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import ReadOnlyStorageError
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.unit.engine.catalog.branches.test_branches import NAMES, append, opened

TABLE = NAMES[0]
BUILD = Build("test.shop.few in main", "code")


def facts(catalog: Catalog) -> BuildFacts:
    """Returns the facts of a test that reads the newest version of the table."""
    snapshot = catalog.table(TABLE).snapshot()
    return BuildFacts(BUILD.owner, BUILD.code, tables={str(TABLE): TableState.of(snapshot.metadata, snapshot.version)})


def decided(catalog: Catalog) -> Reused | Built:
    known = PassedTests(catalog, "silt")
    return known.decide(BUILD, known.find(BUILD.owner), "")


def test_a_test_that_passed_is_known_in_another_process_until_rows_change(store: Store) -> None:
    catalog = opened(store)
    assert decided(catalog) == Built(("it has not passed before",))
    passed = PassedTest(facts(catalog), "monday")
    assert PassedTests(catalog, "silt").note(passed)
    other = opened(store, 1)
    assert PassedTests(other, "silt").find(BUILD.owner) == passed
    assert str(passed) == "passed on silt.main.a@v0 (run monday)"
    assert isinstance(decided(other), Reused)
    append(other, TABLE, "more")
    assert decided(other) == Built(("silt.main.a changed (v0 -> v1)",))
    assert PassedTests(other, "silt").find("test.shop.few in another_schema") is None


def test_the_document_of_a_later_result_replaces_the_earlier(store: Store) -> None:
    catalog = opened(store)
    known = PassedTests(catalog, "silt")
    known.note(PassedTest(facts(catalog)))
    append(catalog, TABLE, "more")
    known.note(PassedTest(facts(catalog)))
    assert isinstance(decided(catalog), Reused)
    assert str(known.find(BUILD.owner)) == "passed on silt.main.a@v1"


@pytest.mark.parametrize("change", [{"unknown": ("it uses rand()",)}, {"files": {"/data/x.csv": None}}])
def test_an_unknown_input_is_not_recorded(store: Store, change: dict[str, Any]) -> None:
    catalog = opened(store)
    assert not PassedTests(catalog, "silt").note(PassedTest(replace(facts(catalog), **change)))
    assert decided(catalog) == Built(("it has not passed before",))


def test_a_test_without_inputs_has_passed_on_the_same_input(store: Store) -> None:
    catalog = opened(store)
    PassedTests(catalog, "silt").note(PassedTest(replace(facts(catalog), tables={})))
    assert isinstance(decided(catalog), Reused)
    assert str(PassedTests(catalog, "silt").find(BUILD.owner)) == "passed on the same input"


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"build": 1}', b'{"build": {"owner": "other", "code": "c"}}'])
def test_a_document_that_cannot_be_read_is_no_result(store: Store, text: bytes) -> None:
    catalog = opened(store)
    PassedTests(catalog, "silt").note(PassedTest(facts(catalog)))
    (document,) = store.files_below("_tests")
    store.put(document.path, text)
    assert decided(catalog) == Built(("it has not passed before",))


def test_the_folder_is_no_schema(store: Store) -> None:
    catalog = opened(store)
    PassedTests(catalog, "silt").note(PassedTest(facts(catalog)))
    assert opened(store, 1).schemas("silt") == ["main"]


def test_a_version_of_a_branch_is_not_recorded(store: Store) -> None:
    catalog = opened(store)
    inside = catalog.on_branch("silt", catalog.new_branch("silt"))
    assert PassedTests(inside, "silt").note(PassedTest(facts(inside)))
    assert isinstance(decided(inside), Reused)
    append(inside, TABLE, "of-the-branch")
    assert not PassedTests(inside, "silt").note(PassedTest(facts(inside)))
    assert decided(inside) == Built(("silt.main.a changed (v0 -> v1)",))


def test_a_version_of_a_branch_is_not_taken_for_the_published_version_of_that_number(store: Store) -> None:
    catalog = opened(store)
    inside = catalog.on_branch("silt", catalog.new_branch("silt"))
    append(inside, TABLE, "of-the-branch")
    append(catalog, TABLE, "published")
    published = facts(catalog)
    assert PassedTests(catalog, "silt").note(PassedTest(published))
    found = decided(inside)
    assert isinstance(found, Built) and "may have changed" in found.reasons[0]
    own = present(inside, published, "", "", is_published=False).tables[str(TABLE)]
    assert own is not None and own.last_change == 1, "facts of the branch name its own versions"


def test_a_read_only_warehouse_keeps_no_result(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ReadOnlyStorageError("the warehouse is read-only")

    catalog = opened(store)
    monkeypatch.setattr(type(store), "put", refuse)
    with pytest.raises(ReadOnlyStorageError):
        PassedTests(catalog, "silt").note(PassedTest(facts(catalog)))
