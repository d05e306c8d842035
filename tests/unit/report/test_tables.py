"""The tables of the page: versions with totals, files by size and partition, clustering, and due maintenance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import commit
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.records.run_history import log_history
from dbt.adapters.silt.report import log_reading, tables
from dbt.adapters.silt.report.table_content import content_of
from dbt.adapters.silt.report.tables import table_json
from tests.unit.cli.house import House, rows

VERSION, MS, OPERATION, INSERTED, UPDATED, DELETED, ADDED, REMOVED, BYTES_ADDED, BYTES_REMOVED, ROWS, FILES, BYTES = (
    range(13)
)
DEFINITION, UNDONE = 16, 17


def shown(log: DeltaLog, keys: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the table's part of the data."""
    found: dict[str, Any] = json.loads(tables.to_json(table_json(log.name, content_of(log, keys))))
    return found


def cells(table: dict[str, Any], at: int) -> list[Any]:
    return [commit[at] if at < len(commit) else None for commit in table["commits"]]


def test_each_version_has_the_rows_files_and_bytes_of_its_snapshot(house: House) -> None:
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 5))
    house.mark(log, [0, 1, 2])
    house.restore(log, 1)
    table = shown(log)
    assert cells(table, ROWS) == [10, 15, 12, 15]
    snapshots = [log.snapshot_at(version) for version in range(4)]
    assert cells(table, FILES) == [each.num_files for each in snapshots]
    assert cells(table, BYTES) == [each.size_in_bytes for each in snapshots]
    assert cells(table, MS) == [each.timestamp_ms for each in log_history(log)]
    assert cells(table, UNDONE) == [None, None, 3, None]


def test_totals_are_right_after_a_log_cleanup(house: House) -> None:
    log = house.create("main.orders", rows(0, 10))
    for start in range(10, 40, 10):
        house.append(log, rows(start, 10))
    log.checkpoint(log.snapshot())
    for version in range(2):
        log.store.delete(f"_delta_log/{version:020}.json")
    table = shown(DeltaLog(log.store, log.name))
    assert cells(table, VERSION) == [2, 3]
    assert (cells(table, ROWS), cells(table, FILES)) == ([30, 40], [3, 4])
    assert cells(table, DEFINITION) == [0, 0]


def test_a_commit_that_is_too_large_to_read_has_no_file_counts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 5))
    monkeypatch.setattr(log_reading, "_LARGE", 10)
    table = shown(log)
    assert cells(table, ADDED) == [None, None]
    assert (cells(table, ROWS), cells(table, INSERTED)) == ([None, 15], [10, 5])


def test_only_the_newest_versions_of_a_long_log_are_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    log = house.create("main.orders", rows(0, 10))
    for start in range(10, 60, 10):
        house.append(log, rows(start, 10))
    monkeypatch.setattr(log_reading, "MOST_VERSIONS", 2)
    table = shown(log)
    assert (cells(table, VERSION), cells(table, ROWS), table["leftOut"]) == ([4, 5], [50, 60], 4)


def test_each_version_has_the_definition_that_it_was_committed_with(house: House) -> None:
    log = house.create("main.orders", rows(0, 2))
    base = log.snapshot()
    schema = base.schema.add(StructField("more", PrimitiveType("string"), metadata={"comment": "new"}))
    metadata = Metadata(base.metadata.id, schema.to_json(), configuration={"owner": "me"})
    commit.commit(log, base, Changes(Operation("ADD COLUMNS"), metadata=metadata), ReadSet(), CommitSettings())
    table = shown(log)
    assert cells(table, DEFINITION) == [0, 1]
    before, after = table["schemas"]
    assert len(after["columns"]) == len(before["columns"]) + 1
    assert table["texts"][after["columns"][-1][3]] == "new" and after["properties"] == {"owner": "me"}


def test_small_files_are_counted_if_optimize_would_compact_them(house: House) -> None:
    log = house.create("main.orders", rows(0, 10))
    assert "small" not in shown(log)
    house.append(log, rows(10, 5))
    assert shown(log)["small"][:2] == [2, 1]


def test_a_removed_file_is_dead_and_a_file_with_a_new_deletion_vector_is_not(house: House) -> None:
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 5))
    house.mark(log, [0])
    assert "dead" not in shown(log)
    size = log.snapshot_at(1).size_in_bytes - log.snapshot_at(0).size_in_bytes
    house.restore(log, 0)
    assert shown(log)["dead"] == [1, size, 0, 0]


def test_dead_files_are_due_after_the_retention_and_not_listed_after_a_vacuum(house: House) -> None:
    log = house.create("main.orders", rows(0, 10), {"delta.deletedFileRetentionDuration": "interval 0 hours"})
    house.append(log, rows(10, 5))
    house.restore(log, 0)
    dead = shown(log)["dead"]
    assert dead[:2] == dead[2:]
    commit.commit(log, log.snapshot(), Changes(Operation("VACUUM END")), ReadSet(), CommitSettings())
    assert "dead" not in shown(log)


def test_clustering_is_measured_by_the_projects_key_and_shows_only_ranks(house: House) -> None:
    log = house.create("main.orders", rows(0, 10))
    for start in (5, 100, 1_000):
        house.append(log, rows(start, 10))
    [[column, files, mean, most, ranges]] = shown(log, ["ID", "unknown"])["overlaps"]
    assert (column, files, mean, most) == ("ID", 4, 1.5, 2)
    assert ranges[0][0] == 0 and ranges[-1][1] == 1


def test_partitions_are_counted_with_their_rows(house: House) -> None:
    house.catalog.create_schema("silt", "main", if_not_exists=True)
    log = house.catalog.new_table(house.name("main.visits"))
    schema = StructType((StructField("day", PrimitiveType("date")), StructField("id", PrimitiveType("long"))))
    adds = [
        AddFile(f"{day}-{part}.parquet", {"day": day}, 100, 1, stats='{"numRecords":7}')
        for day in ("2026-01-01", None)
        for part in range(2)
    ]
    for add in adds:
        log.store.put(add.path, b"rows")
    metadata = Metadata("an-id", schema.to_json(), ("day",))
    changes = Changes(Operation("WRITE"), tuple(adds), metadata=metadata, protocol=Protocol(1, 2))
    commit.commit(log, None, changes, ReadSet(), CommitSettings())
    table = shown(log)
    assert table["partitionCount"] == 2
    assert sorted(table["partitions"], key=str) == [[["2026-01-01"], 2, 200, 14], [[None], 2, 200, 14]]


def test_forks_and_threads_read_the_same_as_one_process(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        house.create(f"main.t{number}", rows(0, number))
    names = list(house.catalog.all_tables())
    alone = tables.read_tables(house.catalog, names, {}, is_local=True)
    by_threads = tables.read_tables(house.catalog, names, {}, is_local=False)
    monkeypatch.setattr(tables, "_WORTH_FORKS", 2)
    with mock.patch.object(tables, "_may_fork", return_value=True):
        forked = tables.read_tables(house.catalog, names, {}, is_local=True)
    assert forked == alone == by_threads and len(alone) == 6


def test_a_table_that_was_dropped_meanwhile_is_omitted(house: House, tmp_path: Path) -> None:
    house.create("main.orders", rows(0, 1))
    assert tables.read_table(house.catalog, {}, house.name("main.gone")) is None
