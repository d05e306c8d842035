"""Tables created and read by the real commands, on Spark and a folder or an object store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.sql.ast import CreateMode
from tests.unit.engine.place import Place, data_files

PLAIN = WriteSettings()
VECTORS = {"delta.enableDeletionVectors": "true"}
BOTH_KINDS = pytest.mark.parametrize("tables", [{}, VECTORS], ids=["rewritten", "marked"], indirect=True)
"""Properties for tests of the results of DELETE, UPDATE and MERGE, with and without deletion vectors."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Tables:
    """Tables in one location."""

    spark: SparkSession
    place: Place
    properties: Mapping[str, str] = field(default_factory=dict)

    def log(self, name: str = "orders") -> DeltaLog:
        """Returns the log of a table that does not exist yet."""
        store = self.place.store(name)
        store.make_folder(LOG_FOLDER)
        return DeltaLog(store, f"main.{name}")

    def made(self, query: str, name: str = "orders", **definition: Any) -> DeltaLog:
        """Creates a table with the rows of a query."""
        log = self.log(name)
        whole = Definition(**{"properties": self.properties, **definition})
        create.create(self.spark, TableLocation(log, None), whole, self.spark.sql(query), CreateMode.CREATE, PLAIN)
        return log

    def append(self, log: DeltaLog, query: str, settings: WriteSettings = PLAIN, **placement: Any) -> Outcome:
        return insertion.append(self.target(log), self.spark.sql(query), Placement(**placement), settings)

    def others(self, name: str) -> Place:
        """Returns a path for a table of another writer; delta-rs does not write into folders with unusual names."""
        return self.place.beside(name)

    def made_by_delta_rs(self, name: str, data: pa.Table, *partition_by: str) -> DeltaLog:
        """Creates a table as another writer."""
        place = self.others(name)
        deltalake.write_deltalake(place.location, data, partition_by=list(partition_by), storage_options=place.options)
        return DeltaLog(place.store(""), f"main.{name}")

    def target(self, log: DeltaLog) -> Target:
        """Returns the table pinned at its newest version."""
        return Target(log.name, log, log.snapshot())

    def read(self, log: DeltaLog) -> DataFrame:
        return scan.read(self.spark, log, log.snapshot())

    def read_at(self, log: DeltaLog, snapshot: Snapshot) -> DataFrame:
        return scan.read(self.spark, log, snapshot)

    def rows(self, log: DeltaLog) -> list[Row]:
        """Returns all rows in a fixed order, after checking that another reader finds them too."""
        with errors.mapped():
            ours = in_order([tuple(row.values()) for row in self.read(log).toArrow().to_pylist()])
        assert in_order(self.as_others_read(log)) == ours
        return ours

    def last_commit(self, log: DeltaLog) -> CommitInfo:
        (commit,) = log.commits(log.snapshot().version)
        (info,) = [action for action in commit.actions if isinstance(action, CommitInfo)]
        return info

    def data_files(self, log: DeltaLog) -> set[str]:
        """Returns all files in the table's folder except its log, as paths below it."""
        return data_files(log)

    def as_others_read(self, log: DeltaLog) -> list[Row]:
        """Returns the table's rows as delta-rs reads them, with columns in the table's order."""
        found = self.place.delta_rs(log.store.root)
        if "deletionVectors" not in (found.protocol().reader_features or ()):
            table = found.to_pyarrow_table()
        else:
            with self.place.copied(log) as copy:  # only its query engine supports them
                rows = deltalake.QueryBuilder().register("t", copy).execute("select * from t").read_all()
                table = pa.table(rows)
        return [tuple(row.values()) for row in table.select(list(log.snapshot().schema.names)).to_pylist()]


def file_in(log: DeltaLog, path: str) -> pa.BufferReader:
    """Opens a data file with pyarrow."""
    return pa.BufferReader(log.store.read(path))


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=repr)
