"""A warehouse for tests, written by the kernel and pyarrow: real logs and real Parquet files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, statistics, stats_json
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.features import needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.schema import DecimalType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import commit, restore
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from dbt.adapters.silt.records.commit_facts import CommitFacts

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long"), nullable=False, metadata={"comment": "the key"}),
        StructField("name", PrimitiveType("string")),
        StructField("price", DecimalType(12, 2)),
        StructField("sold", PrimitiveType("timestamp")),
    )
)
ARROW = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(12, 2)), ("sold", pa.timestamp("us", "UTC"))]
)
_2024 = 1_704_067_200_000_000


def rows(start: int, count: int) -> list[dict[str, Any]]:
    """Returns so many rows, whose keys start at `start`; each was sold a second after the one before."""
    numbers = range(start, start + count)
    return [{"id": n, "name": f"name {n}", "price": None, "sold": _2024 + n * 1_000_000} for n in numbers]


@dataclass
class House:
    """A warehouse in a folder.

    Attributes:
        facts: of the dbt command that commits; None to commit as another writer.
    """

    folder: Path
    facts: CommitFacts | None = None
    database: str = "silt"
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        self.catalog = Catalog({self.database: LocalStore(self.folder)})

    def running(self, run_id: str, node_id: str = "model.shop.orders", invocation_id: str | None = None) -> House:
        """Opens the warehouse as a node of a run."""
        facts = CommitFacts(invocation_id or f"invocation-of-{run_id}", "dev", run_id, node_id)
        other = replace(self, facts=facts)
        other.catalog = self.catalog
        return other

    def create(
        self,
        name: str = "main.orders",
        content: Sequence[Mapping[str, Any]] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> DeltaLog:
        """Creates a table with these rows."""
        relation = self.name(name)
        self.catalog.create_schema(self.database, relation.schema, if_not_exists=True)
        log = self.catalog.new_table(relation)
        metadata = Metadata(log.clock.new_id(), SCHEMA.to_json(), (), dict(configuration or {}), created_time=1)
        protocol = upgraded(Protocol(1, 2), needed_features(SCHEMA, metadata.configuration))
        adds = self._written(log, metadata, content)
        operation = Operation("CREATE TABLE AS SELECT", metrics=_output(content))
        self._commit(log, Changes(operation, adds, metadata=metadata, protocol=protocol), new=True)
        return log

    def append(self, log: DeltaLog, content: Sequence[Mapping[str, Any]], txn: tuple[str, int] | None = None) -> int:
        """Appends these rows as one file; returns the version."""
        adds = self._written(log, log.snapshot().metadata, content)
        transactions = () if txn is None else (SetTransaction(*txn),)
        return self._commit(log, Changes(Operation("WRITE", metrics=_output(content)), adds, transactions=transactions))

    def mark(self, log: DeltaLog, positions: Sequence[int]) -> int:
        """Deletes rows of the table's first file by a deletion vector; returns the version."""
        snapshot = log.snapshot()
        (add,) = snapshot.add_files(snapshot.files.slice(0, 1))
        (vector,) = deletion_vectors.write(log.store, log.clock, [BitMap64(positions)])
        marked = replace(add, data_change=True, deletion_vector=vector, stats=stats_json.widened(add.stats or "{}"))
        operation = Operation("DELETE", metrics={"numDeletedRows": str(len(positions))})
        return self._commit(log, Changes(operation, (marked,), (add.remove(log.clock.now_ms()),)))

    def restore(self, log: DeltaLog, version: int) -> int:
        """Restores the table to a version; returns the new version."""
        prepared = restore.prepare(log, log.snapshot(), RestorePoint(version))
        return restore.commit(log, prepared, self._settings()).version

    def name(self, text: str) -> RelationName:
        schema, identifier = text.split(".")
        return RelationName(self.database, schema, identifier)

    def _written(self, log: DeltaLog, metadata: Metadata, content: Sequence[Mapping[str, Any]]) -> tuple[AddFile, ...]:
        if not content:
            return ()
        path = f"part-{log.clock.new_id()}.parquet"
        target = log.store.local_path(path)
        assert target is not None
        pq.write_table(pa.Table.from_pylist([dict(row) for row in content], schema=ARROW), target)
        properties = log.snapshot().properties if log.exists() else commit.TableProperties(metadata.configuration)  # type: ignore[attr-defined]
        found = statistics.from_footers(log.store, [path], SCHEMA, properties)[path]
        status = log.store.status(path)
        assert status is not None
        return (AddFile(path, {}, status.size, status.modified_ms, stats=found.json, tags=TRUSTED),)

    def _commit(self, log: DeltaLog, changes: Changes, new: bool = False) -> int:
        base = None if new else log.snapshot()
        return commit.commit(log, base, changes, ReadSet(), self._settings()).version

    def _settings(self) -> CommitSettings:
        return CommitSettings(commit_info={} if self.facts is None else self.facts.commit_info())


def _output(content: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {"numOutputRows": str(len(content))}
