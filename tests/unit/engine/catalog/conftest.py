"""A catalog over a folder, and tables made by hand: one commit each, without data files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.clock import FixedClock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "not made yet" / "warehouse"


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    """A catalog with the schema `silt.main`."""
    made = Catalog({"silt": LocalStore(warehouse)}, FixedClock())
    made.create_schema("silt", "main")
    return made


@pytest.fixture
def create(catalog: Catalog) -> Callable[..., DeltaLog]:
    """Makes a table with one file."""

    def create_table(name: RelationName, table_id: str = "first") -> DeltaLog:
        log = catalog.new_table(name)
        assert commit_first(log, table_id) is PutResult.CREATED
        return log

    return create_table


def commit_first(log: DeltaLog, table_id: str = "first") -> PutResult:
    actions = [
        CommitInfo(timestamp=1, operation="CREATE TABLE"),
        Protocol(),
        Metadata(id=table_id, schema_string=SCHEMA),
        AddFile("part-0.parquet", {}, size=1, modification_time=1),
    ]
    return log.store.put_if_absent(commit_path(0), serialize(actions))


def named(identifier: str, schema: str = "main") -> RelationName:
    return RelationName("silt", schema, identifier)
