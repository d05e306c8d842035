"""The version checksum of a snapshot."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.log.checksum import differences, write_checksum
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.log.replay import TableState, replay
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from dbt.adapters.silt.engine.kernel.table.actions import DeletionVector, DomainMetadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.paths import checksum_path
from tests.unit.engine.kernel.log_builder import METADATA, add, new_log, put


def test_a_checksum_summarises_the_table() -> None:
    log = new_log()
    put(log, 1, add("a", size=10), add("b", size=32), SetTransaction("app", 1, 5), DomainMetadata("d", "{}"))
    log.after_commit(1)
    assert json.loads(log.store.read(checksum_path(1))) == {
        "tableSizeBytes": 42,
        "numFiles": 2,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": METADATA.to_json(),
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "setTransactions": [{"appId": "app", "version": 1, "lastUpdated": 5}],
        "domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}],
    }


def test_a_checksum_is_never_overwritten() -> None:
    log = new_log()
    log.store.put(checksum_path(0), b"of another writer")
    assert write_checksum(log.store, log.snapshot()) is PutResult.EXISTS
    assert log.store.read(checksum_path(0)) == b"of another writer"


def test_a_checksum_describes_the_version_in_its_name() -> None:
    log = new_log()
    put(log, 1, add("a"))
    put(log, 2, add("b"))
    log.after_commit(1)
    assert log.store.status(checksum_path(1)) is None
    assert log.store.status(checksum_path(2)) is None


def test_a_checksum_counts_deleted_rows_if_the_table_has_deletion_vectors() -> None:
    log = new_log(protocol=Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)))
    first, second = (DeletionVector("u", name, 40, rows, 1) for name, rows in (("v1", 3), ("v2", 4)))
    stats = '{"numRecords":9}'
    put(
        log,
        1,
        *(replace(add(n, stats=stats), deletion_vector=v) for n, v in (("a", first), ("b", second), ("c", None))),
    )
    log.after_commit(1)
    found = json.loads(log.store.read(checksum_path(1)))
    assert (found["numDeletedRecordsOpt"], found["numDeletionVectorsOpt"]) == (7, 2)
    put(log, 2, *(add.remove(1) for add in log.snapshot().add_files()))
    log.after_commit(2)
    found = json.loads(log.store.read(checksum_path(2)))
    assert (found["numDeletedRecordsOpt"], found["numDeletionVectorsOpt"]) == (0, 0)


def state_of(log: DeltaLog) -> TableState:
    listing = list_log(log.store, log.name)
    return replay(log.store, next(listing.segments(max(listing.commits))), log.name)


FEATURES = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["b", "a"], "writerFeatures": ["a", "b"]}
SCHEMA = '{"type":"struct","fields":[{"name":"other","type":"long","nullable":true,"metadata":{}}]}'
UNCHANGED: dict[str, Any] = {"domain": "d", "configuration": "{}", "removed": False}


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({}, []),
        ({"numFiles": 3}, ["numFiles 3, but the log has 2"]),
        ({"tableSizeBytes": 41}, ["tableSizeBytes 41, but the log has 42"]),
        ({"numFiles": "many", "metadata": None, "protocol": None, "domainMetadata": None}, []),
        ({"metadata": {**METADATA.to_json(), "id": "other"}}, ["metadata that differs from the log"]),
        ({"metadata": {**METADATA.to_json(), "schemaString": SCHEMA}}, ["metadata that differs from the log"]),
        ({"metadata": {**METADATA.to_json(), "name": "other", "createdTime": 5}}, []),
        ({"metadata": {}}, []),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}, ["a protocol that differs from the log"]),
        ({"protocol": FEATURES}, ["a protocol that differs from the log"]),
        (
            {"setTransactions": [{"appId": "app", "version": 2}]},
            ["version 2 of the transaction identifier app, but the log has version 1"],
        ),
        (
            {"setTransactions": [{"appId": "app", "version": 1}, {"appId": "lost", "version": 7}]},
            ["version 7 of the transaction identifier lost, which the log lacks"],
        ),
        ({"domainMetadata": []}, ["domains of metadata that differ from the log"]),
        ({"domainMetadata": [{**UNCHANGED, "configuration": "[]"}]}, ["domains of metadata that differ from the log"]),
        ({"domainMetadata": [UNCHANGED, {**UNCHANGED, "domain": "gone", "removed": True}]}, []),
    ],
)
def test_a_checksum_is_compared_with_the_log(stated: dict[str, Any], found: list[str]) -> None:
    log = new_log()
    put(log, 1, add("a", size=10), add("b", size=32), SetTransaction("app", 1, 5), DomainMetadata("d", "{}"))
    log.after_commit(1)
    body = json.loads(log.store.read(checksum_path(1)))
    state = state_of(log)
    assert list(differences({**body, **stated}, state)) == found


def test_the_order_of_features_is_no_difference() -> None:
    log = new_log(protocol=Protocol(3, 7, ("deletionVectors", "columnMapping"), ("deletionVectors", "columnMapping")))
    state = state_of(log)
    features = ["columnMapping", "deletionVectors"]
    named = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    assert list(differences({"protocol": named}, state)) == []
    assert list(differences({"protocol": {**named, "readerFeatures": features[:1]}}, state)) == [
        "a protocol that differs from the log"
    ]


def test_a_transaction_identifier_that_may_have_expired_is_no_difference() -> None:
    log = new_log(configuration={"delta.setTransactionRetentionDuration": "interval 1 day"})
    state = state_of(log)
    assert list(differences({"setTransactions": [{"appId": "old", "version": 1}]}, state)) == []


def test_content_that_is_no_checksum_is_ignored() -> None:
    log = new_log()
    state = state_of(log)
    for body in (None, [], "text", 5):  # type: ignore[var-annotated]
        assert list(differences(body, state)) == []
