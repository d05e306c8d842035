"""Documents of publications and branches that another program has written: each is an error of its own object."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.builds.passed_tests import PassedTest, PassedTests
from dbt.adapters.silt.engine.catalog.branches.attempts import FOLDER
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    CorruptLogError,
    UnsupportedFeatureError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.builds import BuildFacts
from dbt.adapters.silt.engine.kernel.publication.documents import Begun, Part
from dbt.adapters.silt.engine.kernel.publication_marks import MARK
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import serialize
from tests.memory_store import MemoryStore
from tests.security import attacks
from tests.unit.engine.catalog.branches import test_branches
from tests.unit.engine.catalog.branches.test_branches import NAMES, append, opened

store = test_branches.store
LONG = 1_500
RUN = BranchedRun("shop", "dev", "night")


def commit(publication: int) -> str:
    """Returns the text of a commit of a publication."""
    given = {
        "operation": "WRITE",
        "timestamp": 1,
        "isolationLevel": "WriteSerializable",
        "txnId": f"t{publication}",
        "publication": str(publication),
    }
    info = {"commitInfo": given}
    added = {"path": f"x{publication}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1}
    file = {"add": {**added, "dataChange": True}}
    return "".join(f"{json.dumps(each)}\n" for each in (info, file, {"txn": {"appId": MARK, "version": publication}}))


def chain(store: Store) -> Catalog:
    """Lets each publication wait for the next one: its table has a commit of that one at its version."""
    catalog = opened(store)
    documents = catalog._registers["silt"].documents
    first = store.read("main/a/_delta_log/00000000000000000000.json")
    table_id = catalog.table(NAMES[0]).snapshot().metadata.id
    store.make_folder("_publications")
    for number in range(1, LONG + 1):
        folder = f"main/t{number}"
        store.make_folder(f"{folder}/_delta_log")
        store.put(f"{folder}/_delta_log/{0:020d}.json", first)
        store.put(f"{folder}/_delta_log/{1:020d}.json", commit(number + 1).encode())
        part = Part(f"silt.main.t{number}", folder, table_id, 0, commit(number), whole_table=True)
        documents.begin(Begun(number, 1, (part,)))
    return opened(store, 1)


def test_a_chain_of_very_many_publications_is_an_error_of_its_tables_alone() -> None:
    store = MemoryStore()
    catalog = opened(store)
    catalog.create_schema("silt", "main")
    for name in NAMES:
        log = catalog.new_table(name)
        test_branches.commit(log, None, test_branches.CREATE, test_branches.ReadSet(), test_branches.CommitSettings())  # type: ignore[attr-defined]
    catalog = chain(store)
    with attacks.limited():
        with pytest.raises(CorruptLogError, match="more than 50 publications wait for each other"):
            catalog._registers["silt"].settle(1)
        assert catalog.table(RelationName("silt", "main", "t1")).snapshot().version == 0
        append(catalog, NAMES[0], "x.parquet")
        assert catalog.table(NAMES[0]).snapshot().version == 1
        assert len(list(catalog.all_relations("silt"))) == LONG + len(NAMES)


def work(catalog: Catalog) -> None:
    """Begins a run that changes a table, a view and a schema."""
    catalog.create_schema("silt", "old")
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    inside = catalog.on_branch("silt", branch)
    append(inside, NAMES[0], "x.parquet")
    inside.put_view(View(RelationName("silt", "main", "v"), "select 1 as id", current_database="silt"))
    inside.drop_schema("silt", "old")
    runs.note_nodes(run, RunNodes({"model.shop.a": "hash"}))
    PassedTests(catalog, "silt").note(PassedTest(BuildFacts("test.shop.t", "code")))


def continued(catalog: Catalog) -> None:
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    runs.nodes(run)
    catalog.on_branch("silt", branch).table(NAMES[0]).snapshot()


@pytest.mark.parametrize("ending", [".name.json", ".schema.json", "/base.json", "run.nodes.json"])
def test_a_document_of_a_later_version_of_the_package_is_not_damage(store: Store, ending: str) -> None:
    work(opened(store))
    (path,) = [each.path for each in store.files_below(FOLDER) if each.path.endswith(ending)]
    body = json.loads(store.read(path))
    assert body["format"] == 1
    continued(opened(store, 1))
    store.put(path, json.dumps({**body, "format": 2, "more": {}}).encode())
    with pytest.raises(UnsupportedFeatureError, match=r"written by a later version of dbt-silt, in format 2"):
        continued(opened(store, 2))
    assert len(opened(store, 3).table(NAMES[1]).snapshot().files) == 0


def test_a_test_whose_document_a_later_version_has_written_runs_again(store: Store) -> None:
    work(opened(store))
    (document,) = store.files_below("_tests")
    body = json.loads(store.read(document.path))
    known = PassedTests(opened(store, 1), "silt")
    assert body["format"] == 1 and known.find("test.shop.t") is not None
    store.put(document.path, json.dumps({**body, "format": 2}).encode())
    assert known.find("test.shop.t") is None


def test_a_view_that_is_no_text_is_an_error_of_the_run_that_replaces_it() -> None:
    store = test_branches.MemoryStore()  # type: ignore[attr-defined]
    catalog, name = opened(store), RelationName("silt", "main", "v")
    catalog.create_schema("silt", "main")
    catalog.put_view(View(name, "select 1 as id", current_database="silt"))
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    catalog.on_branch("silt", branch).put_view(View(name, "select 2 as id", current_database="silt"), replace=True)
    store.put("main/v.view.json", b'{"text": "\xff"}')
    with pytest.raises(CorruptLogError, match=r"silt\.main\.v.*cannot be read"):
        runs.publish(run, branch)


@pytest.mark.parametrize("table", ["%zz", "main.a", "", "silt.main", "a", 5, None, "silt.ma`in.a", "silt..a"])
def test_a_base_of_another_table_is_an_error_of_its_run(store: Store, table: object) -> None:
    work(opened(store))
    (path,) = [each.path for each in store.files_below(FOLDER) if each.path.endswith("/base.json")]
    store.put(path, json.dumps({"version": 0, "table": table}).encode())
    with pytest.raises(CorruptLogError, match=r"base\.json cannot be read"):
        continued(opened(store, 1))


def test_a_commit_of_another_table_is_an_error_of_its_run(store: Store) -> None:
    work(opened(store))
    path = next(each.path for each in store.files_below(FOLDER) if each.path.endswith(f"{1:020d}.json"))
    metadata = replace(test_branches.METADATA, id="of another table")  # type: ignore[attr-defined]
    store.put(path, store.read(path) + serialize([metadata]))
    runs = opened(store, 1).run_branches("silt")
    run, branch = runs.open(RUN)
    with pytest.raises(CorruptLogError, match=r"do not continue it: the table's id would change.*drop-run"):
        runs.publish(run, branch)
    assert opened(store, 2).table(NAMES[0]).snapshot().version == 0


READS: list[dict[str, list[int]]] = [{}, {"x": [1]}, {"main.a": [1], "": [2], ".": [1]}, {"a" * 9_999: [0]}]


@pytest.mark.parametrize("reads", READS)
def test_names_of_any_form_in_the_reads_of_a_commit_are_compared(store: Store, reads: dict[str, list[int]]) -> None:
    work(opened(store))
    path = next(each.path for each in store.files_below(FOLDER) if each.path.endswith(f"{1:020d}.json"))
    lines = [json.loads(line) for line in store.read(path).splitlines()]
    for each in lines:
        each.get("commitInfo", {})["readVersions"] = reads
    store.put(path, "".join(f"{json.dumps(each)}\n" for each in lines).encode())
    catalog = opened(store, 1)
    _, branch = catalog.run_branches("silt").open(RUN)
    assert len(branch.changes("silt")) == 2 and branch.outdated() == {}


def test_a_table_whose_name_has_a_dot_changes_in_a_run(store: Store) -> None:
    catalog, name = opened(store), RelationName("silt", "main", "a.b")
    log = catalog.new_table(name)
    test_branches.commit(log, None, test_branches.CREATE, test_branches.ReadSet(), test_branches.CommitSettings())  # type: ignore[attr-defined]
    catalog.publish_table(name, log)
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    append(catalog.on_branch("silt", branch), name, "x.parquet")
    again = opened(store, 1).run_branches("silt")
    run, branch = again.open(RUN)
    assert branch.outdated() == {}
    again.publish(run, branch)
    assert opened(store, 2).table(name).snapshot().version == 1


def test_a_table_of_a_schema_with_a_dot_is_refused_in_a_run_which_could_confuse_it_with_another(store: Store) -> None:
    catalog, name = opened(store), RelationName("silt", "main.a", "b")
    catalog.create_schema("silt", "main.a")
    log = catalog.new_table(name)
    test_branches.commit(log, None, test_branches.CREATE, test_branches.ReadSet(), test_branches.CommitSettings())  # type: ignore[attr-defined]
    catalog.publish_table(name, log)
    assert str(name) == str(RelationName("silt", "main", "a.b"))
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    inside = catalog.on_branch("silt", branch)
    for refused in (inside.table, inside.new_table, inside.drop_table):
        with pytest.raises(UnsupportedStatementError, match=r"silt\.main\.a\.b: .* contains a dot .* in a transaction"):
            refused(name)
    assert name in {entry.name for entry in inside.all_relations("silt")}
    append(inside, NAMES[0], "x.parquet")
    runs.publish(run, branch)
    assert opened(store, 1).table(name).snapshot().version == 0
