"""The origin of a clone's rows, and the comparison of builds in two schemas, without Spark."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.builds.decision import LastBuild
from dbt.adapters.silt.engine.builds.origins import Origin, differences, origin_of
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.builds import BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.memory_store import MemoryStore
from tests.unit.engine.catalog.branches.test_branches import append, opened
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, paths

SOURCE, CLONE = (RelationName("silt", "main", name) for name in ("source", "copy"))
TABLES = (SOURCE, CLONE)
OTHER_COLUMNS = '{"type":"struct","fields":[]}'


def put(catalog: Catalog, at: int, path: str | None, info: Mapping[str, Any], **changes: Any) -> None:
    """Commits a file, or nothing, to one of the tables."""
    log = catalog.table(TABLES[at])
    if path is not None:
        log.store.put(path, b"data")
    adds = () if path is None else (AddFile(path, {}, 4, 0, stats='{"numRecords": 1}'),)
    made = Changes(Operation("CLONE"), adds, **changes)
    commit(log, log.snapshot(), made, ReadSet(), CommitSettings(commit_info=dict(info)))


def create(catalog: Catalog, at: int, table_id: str) -> None:
    log = catalog.new_table(TABLES[at])
    made = Changes(Operation("CREATE TABLE"), protocol=PROTOCOL, metadata=replace(METADATA, id=table_id))
    commit(log, None, made, ReadSet(), CommitSettings())
    catalog.publish_table(TABLES[at], log)


def origin(catalog: Catalog, at: int) -> Origin:
    log = catalog.table(TABLES[at])
    snapshot = log.snapshot()
    return origin_of(log, snapshot.metadata.id, snapshot.version)


def facts(catalog: Catalog, at: int, **others: Any) -> BuildFacts:
    snapshot = catalog.table(TABLES[at]).snapshot()
    read = {str(TABLES[at]): TableState.of(snapshot.metadata, snapshot.version)}
    return BuildFacts("model.shop.orders", f"code of {at}", tables=read, portable="same", **others)


@pytest.fixture
def catalog(store: Store) -> Catalog:
    """A catalog with a table and an unchanged clone of it."""
    found = opened(store)
    create(found, 0, "source")
    create(found, 1, "clone")
    append(found, SOURCE, "first")
    put(found, 1, "copied", origin(found, 0).commit_info())
    return found


def test_a_table_is_its_own_origin_and_a_clone_is_its_source(catalog: Catalog) -> None:
    assert origin(catalog, 0) == Origin("source", 1)
    assert origin(catalog, 1) == Origin("source", 1)
    assert Origin("source", 1).commit_info() == {"clonedFrom": {"id": "source", "version": 1}}


def test_a_clone_that_was_changed_is_its_own_origin(catalog: Catalog) -> None:
    append(catalog, CLONE, "more")
    assert origin(catalog, 1) == Origin("clone", 2)


def test_a_clone_with_other_columns_is_its_own_origin(catalog: Catalog) -> None:
    put(catalog, 1, None, {}, metadata=Metadata("clone", OTHER_COLUMNS))
    assert origin(catalog, 1) == Origin("clone", 2)


def test_an_empty_commit_leaves_the_origin(catalog: Catalog) -> None:
    put(catalog, 1, None, {})
    assert origin(catalog, 1) == Origin("source", 1)


@pytest.mark.parametrize("written", [{"clonedFrom": "source"}, {"clonedFrom": {"id": 1, "version": 2}}, {}])
def test_an_origin_in_another_form_does_not_count(catalog: Catalog, written: dict[str, Any]) -> None:
    put(catalog, 1, "again", written)
    assert origin(catalog, 1) == Origin("clone", 2)


def compared(catalog: Catalog, mine: BuildFacts, theirs: BuildFacts, since: str | None = None) -> list[str]:
    return list(differences(catalog, mine, LastBuild("silt.prod.orders", 4, theirs, changed_since=since)))


def test_a_build_from_a_clone_equals_the_build_from_its_source(catalog: Catalog) -> None:
    assert compared(catalog, facts(catalog, 1), facts(catalog, 0)) == []
    assert compared(catalog, facts(catalog, 0), facts(catalog, 1)) == []


def test_commits_without_rows_do_not_count(catalog: Catalog) -> None:
    theirs = facts(catalog, 0)
    put(catalog, 0, None, {})
    assert compared(catalog, facts(catalog, 0), theirs) == []
    assert compared(catalog, facts(catalog, 1), facts(catalog, 0)) == []


def test_other_rows_of_the_source_are_a_difference(catalog: Catalog) -> None:
    clone = facts(catalog, 1)
    append(catalog, SOURCE, "second")
    assert compared(catalog, clone, facts(catalog, 0)) == ["silt.main.copy has other rows than silt.main.source@v2"]


def test_rows_that_the_log_no_longer_tells_about_are_a_difference(catalog: Catalog) -> None:
    theirs = facts(catalog, 0)
    for _ in range(12):
        put(catalog, 0, None, {})
    mine = facts(catalog, 0)
    store = catalog.table(SOURCE).store
    for version in range(5):
        store.delete(f"_delta_log/{version:020}.json")
    (found,) = compared(opened_again(catalog), mine, theirs)
    assert found.startswith("silt.main.source ")


def opened_again(catalog: Catalog) -> Catalog:
    return opened(catalog.store("silt"), 2)


def test_each_other_fact_is_a_difference(catalog: Catalog) -> None:
    mine, theirs = facts(catalog, 1), facts(catalog, 0)
    assert compared(catalog, mine, replace(theirs, portable="other"))[0].startswith("the code, the configs")
    assert compared(catalog, mine, replace(theirs, portable=None)) == ["its query cannot be compared"]
    assert compared(catalog, replace(mine, unknown=("it uses rand()",)), theirs) == ["it uses rand()"]
    assert compared(catalog, mine, replace(theirs, day="2026-01-01")) == ["it depends on the date"]
    assert compared(catalog, replace(mine, files={"/x": "1"}), replace(theirs, files={"/x": "1"})) == []
    assert compared(catalog, replace(mine, files={"/x": "1"}), theirs) == ["it reads other files"]
    assert compared(catalog, mine, replace(theirs, tables={})) == ["silt.main.copy is another table"]
    assert compared(catalog, replace(mine, tables={}), theirs) == ["silt.main.source is not read"]
    assert compared(catalog, mine, theirs, since="it was changed by v7") == ["it was changed by v7"]
    gone = {"silt.main.gone": TableState("x", 0, "y")}
    assert "silt.main.gone may have changed" in compared(catalog, mine, replace(theirs, tables=gone))


def clone(catalog: Catalog) -> None:
    """Replaces the copy by a clone of the source, whose files keep their names."""
    log, base = catalog.table(CLONE), catalog.table(CLONE).snapshot()
    wanted = {each.path: each for each in catalog.table(SOURCE).snapshot().add_files()}
    held = {each.path: each for each in base.add_files()}
    adds = tuple(each for path, each in wanted.items() if path not in held)
    for each in adds:
        log.store.put(each.path, b"data")
    removes = tuple(each.remove(0) for path, each in held.items() if path not in wanted)
    info = CommitSettings(commit_info=dict(origin(catalog, 0).commit_info()))
    commit(log, base, Changes(Operation("CLONE"), adds, removes), ReadSet(whole_table=True), info)


@pytest.mark.parametrize("seed", range(20))
def test_equal_facts_mean_equal_rows_in_random_histories(seed: int) -> None:
    catalog, drawn = opened(MemoryStore()), random.Random(seed)
    catalog.create_schema("silt", "main")
    create(catalog, 0, "source")
    create(catalog, 1, "clone")
    seen: list[tuple[BuildFacts, frozenset[str]]] = []
    found = 0
    for step in range(14):
        match drawn.randrange(5):
            case 0:
                append(catalog, SOURCE, f"s{step}")
            case 1:
                append(catalog, CLONE, f"c{step}")
            case 2:
                put(catalog, drawn.randrange(2), None, {})
            case _:
                clone(catalog)
        rows = [frozenset(paths(catalog.table(name))) for name in TABLES]
        seen += [(facts(catalog, at), rows[at]) for at in (0, 1)]
        mine = facts(catalog, 1)
        for theirs, then in seen:
            is_equal = compared(catalog, mine, theirs) == []
            found += is_equal
            assert not is_equal or then == rows[1], f"step {step}: a build from other rows counts as equal"
    assert found > 0, "no history is without an equal build: the newest facts of the copy equal themselves"
