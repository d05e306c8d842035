"""The requests of a dbt run of many incremental models to an object store, without Spark's: names, logs and commits.

Each model does the work of its statement without Spark: the names are read once, the table is opened, and a file is
appended with the unit's transaction identifier. The engine's own request for the footer of the file is added, as
`docs/running/object-store-requests.md` counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.scale.meter import Cost, Meter, metered
from benchmarks.scale.tables import SCHEMA, new_file
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.objects.names_document import Names, SchemaNames, TableEntry, serialize_names
from dbt.adapters.silt.engine.catalog.objects.names_register import DOCUMENT
from dbt.adapters.silt.engine.catalog.objects.table_ends import new_location
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

_DATABASE, _SCHEMA = "silt", "shop"


@dataclass(frozen=True)
class Run:
    """A run of many models.

    Attributes:
        models: the number of tables.
        document: the size of `_catalog.json`, bytes.
        creation: of all tables, in the first run.
        listing: of the schema, once for a dbt command.
        look: for a statement's names, if nothing has changed.
        models_cost: of all models of a run in a new process.
    """

    models: int
    document: int
    creation: Cost
    listing: Cost
    look: Cost
    models_cost: Cost

    def seconds(self, latency: float, threads: int) -> float:
        """Returns the time of the models' requests in a number of threads, without processor and Spark time."""
        return self.models_cost.depth * latency / min(threads, self.models)


def measure(models: int) -> Run:
    """Creates a number of tables, and appends to each in a process that has not opened them."""
    store = ObjectStore("memory:///").child("shop")
    names = [RelationName(_DATABASE, _SCHEMA, f"incremental_model_{number:05}") for number in range(models)]
    with metered() as meter:
        catalog = Catalog({_DATABASE: store})
        catalog.create_schema(_DATABASE, _SCHEMA)
        creation = _cost(meter, lambda: _create_all(catalog, names))
        catalog = Catalog({_DATABASE: store})
        listing = _cost(meter, lambda: len(catalog.relations(_DATABASE, _SCHEMA)) == models)
        look = _cost(meter, lambda: catalog.for_statement().find(names[0]))
        cost = _cost(meter, lambda: _append_to_all(catalog, names))
    return Run(models, len(store.read(DOCUMENT)), creation, listing, look, cost)


def _cost(meter: Meter, work: Callable[[], object]) -> Cost:
    meter.reset()
    work()
    return meter.cost()


def document_bytes(relations: int) -> int:
    """Returns the size of a document with the names of a number of tables."""
    entries = {
        f"incremental_model_{number:05}": TableEntry(
            new_location(RelationName(_DATABASE, _SCHEMA, f"incremental_model_{number:05}"), SystemClock())
        )
        for number in range(relations)
    }
    return len(serialize_names(Names({_SCHEMA: SchemaNames(0, entries)})))


def _create_all(catalog: Catalog, names: Sequence[RelationName]) -> None:
    for name in names:
        log = catalog.new_table(name)
        changes = Changes(Operation("CREATE TABLE"), protocol=Protocol(1, 2), metadata=Metadata("id", SCHEMA.to_json()))
        commit(log, None, changes, ReadSet(), CommitSettings())
        catalog.publish_table(name, log)


def _append_to_all(catalog: Catalog, names: Sequence[RelationName]) -> None:
    for name in names:
        _append(catalog.for_statement().table(name), name)


def _append(log: DeltaLog, name: RelationName) -> None:
    unit = SetTransaction(f"silt/shop/model.shop.{name.identifier}/20260101T000000/main", 1)
    changes = Changes(Operation("WRITE"), (new_file(1),), transactions=(unit,))
    commit(log, log.snapshot(), changes, ReadSet(), CommitSettings())
