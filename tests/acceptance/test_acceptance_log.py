"""The logs of the acceptance data, in every version, compared with a naive reader and with the published facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_name, decode_path
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from tests.acceptance.cases import Case, cases, is_large, name_of, needs_acceptance_data, tables
from tests.acceptance.outcomes import FILES, REFUSED_LOGS, TRANSACTIONS
from tests.corpus import naive_reader, states

pytestmark = [needs_acceptance_data, pytest.mark.long]

READ = [table for table in tables() if name_of(table) not in REFUSED_LOGS]
REFUSED = [table for table in tables() if name_of(table) in REFUSED_LOGS]
STATED = [table for table in READ if name_of(table) in {*FILES, *TRANSACTIONS}]
WITH_FACTS = [case for case in cases() if case.facts and name_of(case.table) not in REFUSED_LOGS]


def log_of(table: Path) -> DeltaLog:
    return DeltaLog(LocalStore(table), str(table))


@pytest.mark.parametrize("table", READ, ids=str)
def test_every_version_has_the_state_that_the_naive_reader_finds(table: Path) -> None:
    log, folder = log_of(table), table / LOG_FOLDER
    newest = log.snapshot().version
    files = states.files_of(folder)
    for version in (newest,) if is_large(table) else range(newest + 1):
        possible = list(naive_reader.states(files, version))
        try:
            snapshot = log.snapshot_at(version)
        except SiltError:
            assert not possible, version
        else:
            assert any(_is_same(snapshot, state) for state in possible), version
            domains = {name: domain.configuration for name, domain in snapshot.domains.items()}
            assert _domains(files, version) in (domains, None), version


def _is_same(snapshot: Snapshot, state: naive_reader.State) -> bool:
    if TableProperties(snapshot.metadata.configuration).set_transaction_retention_ms is not None:
        state.transactions = {name: each.version for name, each in snapshot.transactions.items()}
    return (
        states.of_snapshot(snapshot) == states.comparable(state)
        and protocol(snapshot.protocol.to_json()) == protocol(state.protocol)
        and dict(snapshot.metadata.configuration) == dict(state.metadata.get("configuration") or {})
    )


def _domains(files: Mapping[str, bytes], version: int) -> dict[str, str] | None:
    """Returns each domain's configuration according to the commits; None if a commit is missing."""
    found: dict[str, str] = {}
    for number in range(version + 1):
        commit = files.get(commit_name(number))
        if commit is None:
            return None
        for line in filter(None, commit.decode().split("\n")):
            domain = json.loads(line).get("domainMetadata")
            if domain is not None and domain["removed"]:
                found.pop(domain["domain"], None)
            elif domain is not None:
                found[domain["domain"]] = domain["configuration"]
    return found


def protocol(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a protocol without an order of its features."""
    return {
        key: sorted(value) if isinstance(value, list) else value for key, value in stated.items() if value is not None
    }


@pytest.mark.parametrize("table", REFUSED, ids=str)
def test_a_log_is_refused_with_the_missing_feature_or_the_damage(table: Path) -> None:
    expected = REFUSED_LOGS[name_of(table)]
    with pytest.raises(expected.error, match=expected.names):
        log_of(table).snapshot()


@pytest.mark.parametrize("table", STATED, ids=str)
def test_files_and_transactions_are_those_of_the_tests_of_the_kernels(table: Path) -> None:
    snapshot = log_of(table).snapshot()
    if name_of(table) in FILES:
        names = tuple(sorted(Path(decode_path(add.path)).name for add in snapshot.add_files()))
        assert (snapshot.version, names) == FILES[name_of(table)]
    if name_of(table) in TRANSACTIONS:
        app_id, version = TRANSACTIONS[name_of(table)]
        assert snapshot.transaction_version(app_id) == version
        assert snapshot.transaction_version("an application that wrote nothing") is None


@pytest.mark.parametrize("case", WITH_FACTS, ids=[case.name for case in WITH_FACTS])
def test_a_snapshot_has_the_published_protocol_and_metadata(case: Case) -> None:
    log = log_of(case.table)
    snapshot = log.snapshot() if case.version is None else log.snapshot_at(case.version)
    stated = protocol(snapshot.protocol.to_json())
    assert {key: stated.get(key) for key in case.facts["protocol"]} == protocol(case.facts["protocol"])
    if "version" in case.facts:
        assert snapshot.version == case.facts["version"]
    metadata = case.facts.get("metadata") or {"configuration": case.facts.get("properties", {})}
    assert dict(snapshot.metadata.configuration) == metadata["configuration"]
    if "schemaString" in metadata:
        assert json.loads(snapshot.metadata.schema_string) == json.loads(metadata["schemaString"])
        assert snapshot.metadata.id == metadata["id"]
        assert list(snapshot.partition_columns) == metadata["partitionColumns"]
