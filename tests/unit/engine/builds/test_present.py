"""The last build of a table and the changes since, from a real log in memory."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.builds.decision import Built, Reused
from dbt.adapters.silt.engine.builds.present import decide_now, last_build
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, TableState, content_schema, local_day
from dbt.adapters.silt.engine.kernel.log.commit_search import last_change
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.memory_store import MemoryStore
from tests.unit.engine.catalog.branches.test_branches import NAMES, append, opened

OWNER = "model.shop.orders"
FACTS = BuildFacts(OWNER, "code", "here", tables={"silt.main.raw": TableState("id", 3, "columns")})


def make_table() -> DeltaLog:
    store = MemoryStore()
    store.make_folder("_delta_log")
    log = DeltaLog(store, "silt.main.orders")
    changes = Changes(Operation("CREATE TABLE"), metadata=Metadata("t", schema("id")), protocol=Protocol())
    commit(log, None, changes, ReadSet(), CommitSettings())
    return log


def schema(*names: str) -> str:
    return StructType(tuple(StructField(name, PrimitiveType("long")) for name in names)).to_json()


def put(
    log: DeltaLog,
    *files: AddFile,
    facts: BuildFacts | None = None,
    metadata: Metadata | None = None,
    base: Snapshot | None = None,
) -> int:
    for each in files:
        log.store.put(each.path, b"rows")
    settings = CommitSettings(commit_info={} if facts is None else facts.commit_info())
    changes = Changes(Operation("WRITE"), adds=files, metadata=metadata)
    return commit(log, base or log.snapshot(), changes, ReadSet(), settings).version


def file(name: str, data_change: bool = True) -> AddFile:
    return AddFile(name, {}, 10, 0, data_change, stats='{"numRecords": 1}')


def test_facts_are_read_back_as_written() -> None:
    log = make_table()
    facts = replace(FACTS, unknown=("it uses rand()",), day="2026-03-01", zone="UTC")
    put(log, file("a"), facts=facts)
    found = last_build(log, OWNER)
    assert found is not None and found.facts == facts
    assert found.version == 1 and found.changed_data and found.changed_since is None
    assert last_build(log, "model.shop.other") is None


def test_facts_in_another_format_are_ignored() -> None:
    state = {"id": "a", "version": "1", "schema": "s"}
    good = {"owner": "t", "code": "c", "environment": "", "definitions": {}, "files": {}}
    assert BuildFacts.of_info(CommitInfo(extra={"build": good})) is not None
    for body in (
        "text",
        {},
        {"owner": "t"},
        {name: each for name, each in good.items() if name != "definitions"},
        {**good, "tables": {"a": state}},
        {**good, "tables": 1},
        {**good, "day": 1},
    ):
        assert BuildFacts.of_info(CommitInfo(extra={"build": body})) is None


def test_later_rows_of_another_writer_are_a_change_and_rewritten_rows_are_not() -> None:
    log = make_table()
    put(log, file("a"), facts=FACTS)
    put(log, file("b", data_change=False))
    put(log)
    found = last_build(log, OWNER)
    assert found is not None and found.changed_since is None
    put(log, file("c"))
    found = last_build(log, OWNER)
    assert found is not None and found.changed_since == "silt.main.orders was changed by v4 (WRITE)"


def test_later_columns_are_a_change_and_later_properties_are_not() -> None:
    log = make_table()
    put(log, file("a"), facts=FACTS)
    metadata = log.snapshot().metadata
    put(log, metadata=replace(metadata, configuration={"a": "b"}))
    found = last_build(log, OWNER)
    assert found is not None and found.changed_since is None
    put(log, metadata=replace(metadata, schema_string=schema("id", "name")))
    found = last_build(log, OWNER)
    assert found is not None and found.changed_since == "silt.main.orders was changed by v3 (WRITE)"


def test_rows_that_another_writer_adds_while_a_build_runs_are_a_change_and_moved_rows_are_not() -> None:
    log = make_table()
    base = log.snapshot()
    put(log, file("a", data_change=False))
    put(log, file("b"), facts=FACTS, base=base)
    found = last_build(log, OWNER)
    assert found is not None and found.version == 2 and found.changed_since is None
    base = log.snapshot()
    put(log, file("c"))
    put(log)
    put(log, file("d"), facts=FACTS, base=base)
    found = last_build(log, OWNER)
    assert found is not None and found.version == 5
    assert found.changed_since == "silt.main.orders was changed by v3 (WRITE)"


def test_a_log_that_was_cleaned_up_before_a_build_does_not_say_what_the_build_has_missed() -> None:
    log = make_table()
    base = log.snapshot()
    put(log)
    put(log)
    put(log, facts=FACTS, base=base)
    log.checkpoint(log.snapshot_at(2))
    found = last_build(log, OWNER)
    assert found is not None and found.changed_since is None
    for version in (0, 1):
        log.store.delete(f"_delta_log/{version:020d}.json")
    found = last_build(DeltaLog(log.store, log.name), OWNER)
    assert found is not None and found.changed_since == "silt.main.orders may have been changed while it was built"


def test_a_build_that_changed_no_rows_counts_as_no_change() -> None:
    log = make_table()
    put(log, file("a"), facts=FACTS)
    put(log, facts=FACTS)
    found = last_build(log, OWNER)
    assert found is not None and found.version == 2 and not found.changed_data


def test_only_changes_of_data_count_as_the_last_change() -> None:
    log = make_table()
    put(log, file("a"))
    put(log, file("b", data_change=False))
    put(log)
    assert last_change(log, log.snapshot().version, 0) == 1
    assert last_change(log, log.snapshot().version, 1) == 1
    assert last_change(log, log.snapshot().version, 3) == 3
    assert last_change(log, log.snapshot().version, 4) is None


def test_a_cleaned_up_log_gives_no_answer_about_its_beginning() -> None:
    log = make_table()
    put(log, file("a"))
    put(log, file("b", data_change=False))
    log.checkpoint(log.snapshot())
    for version in (0, 1):
        log.store.delete(f"_delta_log/{version:020d}.json")
    again = DeltaLog(log.store, log.name)
    assert last_change(again, again.snapshot().version, 0) is None
    assert last_change(again, again.snapshot().version, 1) == 1


def test_the_columns_of_a_table_are_equal_despite_other_comments_and_defaults() -> None:
    body = json.loads(schema("id", "name"))
    body["fields"][0]["metadata"] = {"comment": "key", "CURRENT_DEFAULT": "1", "delta.identity.highWaterMark": 7}
    assert content_schema(json.dumps(body)) == content_schema(schema("id", "name"))
    body["fields"][0]["metadata"] = {"delta.columnMapping.physicalName": "col-1"}
    assert content_schema(json.dumps(body)) != content_schema(schema("id", "name"))
    assert content_schema(schema("name", "id")) != content_schema(schema("id", "name"))


@pytest.mark.parametrize(
    ("zone", "day"), [("UTC", "2026-03-01"), ("Asia/Tokyo", "2026-03-02"), ("nowhere", None), (None, None)]
)
def test_a_day_begins_in_the_sessions_time_zone(zone: str | None, day: str | None) -> None:
    assert local_day(zone, 1_772_395_200_000) == day  # 20:00 UTC on the first of March


def test_a_build_from_a_published_version_is_not_taken_for_one_from_the_branch(store: Store) -> None:
    catalog = opened(store)
    inside = catalog.on_branch("silt", catalog.new_branch("silt"))
    append(inside, NAMES[0], "of-the-branch")
    append(catalog, NAMES[0], "published")
    snapshot = catalog.table(NAMES[0]).snapshot()
    read = {str(NAMES[0]): TableState.of(snapshot.metadata, snapshot.version)}
    facts = BuildFacts(OWNER, "code", tables=read)
    put(catalog.table(NAMES[1]), file("built"), facts=facts)
    build = Build(OWNER, "code")
    assert isinstance(decide_now(catalog, catalog.table(NAMES[1]), build, ""), Reused)
    assert isinstance(decide_now(inside, inside.table(NAMES[1]), build, ""), Built), "both are version 1"

    put(inside.table(NAMES[1]), file("built-inside"), facts=facts)
    assert isinstance(decide_now(inside, inside.table(NAMES[1]), build, ""), Reused)
