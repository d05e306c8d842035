"""Tables made and read by the real verbs, on Spark and a local folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.insert import insert
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.tables.table_location import TableLocation
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.sql.ast import CreateMode

PLAIN = WriteSettings()
VECTORS = {"delta.enableDeletionVectors": "true"}
BOTH_KINDS = pytest.mark.parametrize("tables", [{}, VECTORS], ids=["rewritten", "marked"], indirect=True)
"""For tests of what DELETE, UPDATE and MERGE mean, however they do it."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Tables:
    """A folder of tables."""

    spark: SparkSession
    folder: Path
    properties: Mapping[str, str] = field(default_factory=dict)

    def log(self, name: str = "orders") -> DeltaLog:
        """The log of a table that is not there yet."""
        store = LocalStore(self.folder / name)
        store.make_folder(LOG_FOLDER)
        return DeltaLog(store, f"main.{name}")

    def made(self, query: str, name: str = "orders", **definition: Any) -> DeltaLog:
        """A new table with the rows of a query."""
        log = self.log(name)
        whole = Definition(**{"properties": self.properties, **definition})
        create.create(self.spark, TableLocation(log, None), whole, self.spark.sql(query), CreateMode.CREATE, PLAIN)
        return log

    def append(self, log: DeltaLog, query: str, settings: WriteSettings = PLAIN, **placement: Any) -> Outcome:
        return insert.append(self.target(log), self.spark.sql(query), Placement(**placement), settings)

    def others(self, name: str) -> Path:
        """Where another writer may make a table; delta-rs does not write into folders with odd names."""
        return self.folder.parent / name

    def target(self, log: DeltaLog) -> Target:
        """The table pinned at its newest version."""
        return Target(log.name, log, log.snapshot())

    def read(self, log: DeltaLog) -> DataFrame:
        return scan.read(self.spark, log, log.snapshot())

    def read_at(self, log: DeltaLog, snapshot: Snapshot) -> DataFrame:
        return scan.read(self.spark, log, snapshot)

    def rows(self, log: DeltaLog) -> list[Row]:
        """All rows, in some fixed order, which another reader must find as well."""
        ours = in_order([tuple(row.values()) for row in self.read(log).toArrow().to_pylist()])
        assert in_order(other_reader(log)) == ours
        return ours

    def last_commit(self, log: DeltaLog) -> CommitInfo:
        (commit,) = log.commits(log.snapshot().version)
        (info,) = [action for action in commit.actions if isinstance(action, CommitInfo)]
        return info

    def data_files(self, log: DeltaLog) -> set[str]:
        """All files in the table's folder besides its log, as names below it."""
        root = Path(log.store.root)
        found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        return {str(path) for path in found if path.parts[0] != LOG_FOLDER}


def other_reader(log: DeltaLog) -> list[Row]:
    """The table's rows as delta-rs reads them, columns in the table's order."""
    found = deltalake.DeltaTable(log.store.root)
    if "deletionVectors" in (found.protocol().reader_features or ()):
        # Only its query engine knows them.
        rows = deltalake.QueryBuilder().register("t", found).execute("select * from t").read_all()
        table = pa.table(rows)
    else:
        table = found.to_pyarrow_table()
    return [tuple(row.values()) for row in table.select(list(log.snapshot().schema.names)).to_pylist()]


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=repr)
