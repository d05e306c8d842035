"""Writes a warehouse of many tables after nightly runs, with logs only, because the command reads no rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import ENGINE_INFO
from dbt.adapters.silt.records.commit_facts import CommitFacts

DATABASE, SCHEMA = "silt", "main"
_TABLE = StructType(tuple(StructField(f"column_{n}", PrimitiveType("long")) for n in range(20)))
_STATS = (
    '{"numRecords":1000,"minValues":{"column_0":0},"maxValues":{"column_0":999},"nullCount":{'
    + ",".join(f'"column_{n}":0' for n in range(20))
    + "}}"
)


@dataclass(frozen=True)
class Size:
    """The number of tables, and of nightly runs that committed to each table."""

    tables: int
    runs: int


def make(folder: Path, size: Size) -> None:
    """Writes the warehouse into a new folder."""
    folder.mkdir(parents=True)
    catalog = Catalog({DATABASE: LocalStore(folder)})
    catalog.create_schema(DATABASE, SCHEMA)
    for number in range(size.tables):
        name = f"table_{number:05d}"
        root = Path(catalog.new_table(RelationName(DATABASE, SCHEMA, name)).store.root)
        for version in range(size.runs):
            (root / commit_path(version)).write_bytes(serialize(_actions(name, version)))


def run_id(version: int) -> str:
    """Returns the id of the run that committed a version of every table."""
    return f"nightly-{version:04d}"


def _actions(name: str, version: int) -> Iterator[Action]:
    node = f"model.shop.{name}"
    unit = f"silt/shop/{node}/{run_id(version)}/main"
    facts = CommitFacts(f"invocation-{version}", "prod", run_id(version), node, app_id=unit)
    operation = "WRITE" if version else "CREATE TABLE AS SELECT"
    metrics = {"numFiles": "1", "numOutputRows": "1000", "numOutputBytes": "10000"}
    yield CommitInfo(
        timestamp=version,
        operation=operation,
        operation_metrics=metrics,
        engine_info=ENGINE_INFO,
        extra=facts.commit_info(),
    )
    if version == 0:
        yield Metadata(name, _TABLE.to_json(), created_time=0)
        yield Protocol(1, 2)
    yield SetTransaction(unit, 1, version)
    yield AddFile(f"part-{version:05d}.parquet", {}, 10_000, version, stats=_STATS)
