"""Writes a warehouse in which nothing has changed since the last build of each table, with logs only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import warehouse
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, TableState
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path

_EARLIER_COMMITS = 9


@dataclass(frozen=True)
class Node:
    """A node of the project, and the table that it builds."""

    table: RelationName
    build: Build


def make(folder: Path, tables: int, inputs: int) -> list[Node]:
    """Writes the warehouse into a new folder, and returns its nodes.

    Args:
        inputs: the number of tables that each node reads; the first nodes read fewer.
    """
    warehouse.make(folder, warehouse.Size(tables, _EARLIER_COMMITS))
    catalog = opened(folder)
    nodes = [_node(number) for number in range(tables)]
    states: dict[str, TableState] = {}
    for number, node in enumerate(nodes):
        log = catalog.table(node.table)
        read = {name: states[name] for name in (str(nodes[each].table) for each in _read_by(number, inputs))}
        facts = BuildFacts(node.build.owner, node.build.code, tables=read)
        info = CommitInfo(operation="CREATE OR REPLACE TABLE AS SELECT", extra=facts.commit_info())
        file = AddFile("built.parquet", {}, 10_000, 0, stats='{"numRecords":1000}')
        log.store.put(commit_path(_EARLIER_COMMITS), serialize([info, file]))
        snapshot = log.snapshot()
        states[str(node.table)] = TableState.of(snapshot.metadata, snapshot.version, snapshot.content)
    return nodes


def opened(folder: Path) -> Catalog:
    """Returns the catalog of the warehouse, which has read nothing yet."""
    return Catalog({warehouse.DATABASE: LocalStore(folder)})


def _node(number: int) -> Node:
    name = f"table_{number:05d}"
    table = RelationName(warehouse.DATABASE, warehouse.SCHEMA, name)
    return Node(table, Build(f"model.shop.{name}", f"code of {name}"))


def _read_by(number: int, inputs: int) -> Iterator[int]:
    """Yields the numbers of earlier nodes, which are spread over the whole project."""
    yield from sorted({(number * step) // (step + 1) for step in range(1, inputs + 1)} - {number})
