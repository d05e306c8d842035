"""A catalog over a folder, and tables created by hand: one commit each, without data files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from dbt.adapters.silt.engine.kernel.table.actions import Action, AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.features import upgraded
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore

_FUTURE_MS = 4_000_000_000_000
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


in_folders = pytest.mark.parametrize("catalog", ["folders"], indirect=True)
"""Marks a test of behaviour that only folders have."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a catalog test over a folder and over an object store, unless it is marked as a test of folders."""
    said = any(mark.args[0] == "catalog" for mark in metafunc.definition.iter_markers("parametrize"))
    if "catalog" in metafunc.fixturenames and not said:
        only_folders = {"warehouse", "tmp_path"} & set(inspect.signature(metafunc.function).parameters)
        metafunc.parametrize("catalog", ["folders"] if only_folders else ["folders", "objects"], indirect=True)


@pytest.fixture
def catalog(request: pytest.FixtureRequest, warehouse: Path) -> Catalog:
    """A catalog with the schema `silt.main`."""
    store = LocalStore(warehouse) if request.param == "folders" else MemoryObjectStore()
    made = Catalog({"silt": store}, FixedClock())
    made.create_schema("silt", "main")
    return made


@pytest.fixture
def create(catalog: Catalog) -> Callable[..., DeltaLog]:
    """Returns a function that creates a table with one file."""

    def create_table(name: RelationName, table_id: str = "first") -> DeltaLog:
        return make_table(catalog, name, table_id)

    return create_table


def make_table(
    catalog: Catalog,
    name: RelationName,
    table_id: str = "first",
    replace_view: bool = False,
    with_in_commit_timestamps: bool = False,
) -> DeltaLog:
    """Creates a table with one file in the steps of a statement: a handle, version 0, the name."""
    log = catalog.new_table(name, replace_view)
    assert commit_first(log, table_id, with_in_commit_timestamps) is PutResult.CREATED
    catalog.publish_table(name, log, replace_view)
    return log


def commit_first(log: DeltaLog, table_id: str = "first", with_in_commit_timestamps: bool = False) -> PutResult:
    """Writes version 0; its in-commit timestamp is far in the future."""
    configuration = {"delta.enableInCommitTimestamps": "true"} if with_in_commit_timestamps else {}
    actions: list[Action] = [
        CommitInfo(1, "CREATE TABLE", in_commit_timestamp=_FUTURE_MS if with_in_commit_timestamps else None),
        upgraded(Protocol(), ["inCommitTimestamp"]) if with_in_commit_timestamps else Protocol(),
        Metadata(id=table_id, schema_string=SCHEMA, configuration=configuration),
        AddFile("part-0.parquet", {}, size=1, modification_time=1),
    ]
    return log.store.put_if_absent(commit_path(0), serialize(actions))


def named(identifier: str, schema: str = "main") -> RelationName:
    return RelationName("silt", schema, identifier)
