"""The version checksum of a snapshot."""

from __future__ import annotations

import json
from dataclasses import replace

from dbt.adapters.silt.engine.kernel.log.checksum import write_checksum
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
