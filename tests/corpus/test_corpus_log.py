"""The logs of tables that other engines wrote (`../shared/corpus` next to the checkout), compared with
their manifest.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType
from tests.corpus.corpus import REFUSED, entries, log_of, needs_corpus, readable

READ = readable()
pytestmark = needs_corpus


def test_every_table_of_the_corpus_is_either_read_or_refused() -> None:
    known = {entry["path"] for entry in entries()}
    assert set(REFUSED) <= known
    assert {entry["path"] for entry in entries() if entry["oracle"] == "refused"} <= set(REFUSED)
    assert len(READ) + len(REFUSED) == len(known)


@pytest.mark.parametrize("entry", READ, ids=[entry["path"] for entry in READ])
def test_a_log_of_another_engine_is_read_as_the_manifest_states(entry: Any) -> None:
    snapshot = log_of(entry["path"]).snapshot()
    assert (snapshot.version, snapshot.num_files) == (entry["version"], entry["active_files"])
    assert list(snapshot.partition_columns) == entry["partition_columns"]
    assert snapshot.metadata.configuration == entry["configuration"]
    assert snapshot.protocol.to_json() == entry["protocol"]
    assert [(member.name, _type_name(member.type)) for member in snapshot.schema] == [
        (column["name"], column["type"]) for column in entry["schema"]
    ]
    if entry.get("rows_by_statistics") is not None:
        assert _rows_by_statistics(snapshot) == entry["rows_by_statistics"]


@pytest.mark.parametrize("entry", READ, ids=[entry["path"] for entry in READ])
def test_every_version_that_the_log_can_reconstruct_is_read(entry: Any) -> None:
    log = log_of(entry["path"])
    for version in entry.get("versions") or ():
        assert log.snapshot_at(version["version"]).num_files == version["active_files"], version["version"]


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_an_unsupported_table_is_refused_with_the_reason(path: str) -> None:
    kind, names = REFUSED[path]
    with pytest.raises(kind, match=names) as refused:
        log_of(path).snapshot()
    assert path in str(refused.value)


def test_statistics_that_exist_only_as_columns_of_a_checkpoint_are_read() -> None:
    snapshot = log_of("delta-rs/delta-1.2.1-only-struct-stats").snapshot()
    assert snapshot.files["stats"].null_count == 0
    assert _rows_by_statistics(snapshot) == snapshot.num_files


def _rows_by_statistics(snapshot: Snapshot) -> int:
    return sum(json.loads(text)["numRecords"] for text in snapshot.files["stats"].to_pylist())


def _type_name(data_type: DataType) -> str:
    """Returns the type as the manifest spells it: the protocol's names, composed as in SQL."""
    match data_type:
        case StructType():
            return "struct<" + ",".join(f"{member.name}:{_type_name(member.type)}" for member in data_type) + ">"
        case ArrayType():
            return f"array<{_type_name(data_type.element_type)}>"
        case MapType():
            return f"map<{_type_name(data_type.key_type)},{_type_name(data_type.value_type)}>"
        case _:
            return data_type.name
