"""Reads dbt's artifacts for branches: nodes with their tables and keys, and the work of the last command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.report.artifacts import Artifacts, mapping, members, node_results, text

_TESTS: Final = ("test", "unit_test")
_BUILT: Final = ("model", "seed", "snapshot")


@dataclass(frozen=True)
class LastWork:
    """The work of the last dbt command of a project.

    Attributes:
        states: how many nodes, and how many tests, have each state of a `NodeResult`.
        reused: the names of the nodes that it has reused, sorted.
        seconds: its wall time, if known.
    """

    states: Mapping[str, int]
    reused: Sequence[str]
    seconds: float | None

    @classmethod
    def of(cls, target_path: Path | None) -> LastWork | None:
        """Returns the work according to `run_results.json`; None without it."""
        results = Artifacts.of(target_path).results
        found = node_results(results)
        states = Counter(each.state for each in sorted(found, key=lambda each: _kind(each.node) in _TESTS))
        reused = sorted(
            each.node.split(".")[2] for each in found if each.state == "reused" and _kind(each.node) in _BUILT
        )
        elapsed = results.get("elapsed_time")
        return cls(states, reused, float(elapsed) if isinstance(elapsed, (int, float)) else None) if found else None

    def __str__(self) -> str:
        time = "" if self.seconds is None else f", in {self.seconds:.1f} s"
        return f"{', '.join(f'{number} {state}' for state, number in self.states.items())}{time}"


def _kind(unique_id: str) -> str:
    return unique_id.partition(".")[0]


def nodes_by_table(target_path: Path | None) -> Mapping[str, str]:
    """Returns the unique id of the node of each table, view and seed, by the full names of their relations."""
    return {name: unique_id for name, unique_id, _ in _relations(members(Artifacts.of(target_path).manifest, "nodes"))}


def unique_keys(target_path: Path | None) -> Mapping[str, Sequence[str]]:
    """Returns the columns that identify a row of each node in dbt's manifest, by the full names of their tables: the
    node's `unique_key`, or else the column of a `unique` test of all its rows.
    """
    nodes = members(Artifacts.of(target_path).manifest, "nodes")
    tested = {text(each, "attached_node"): key for each in nodes.values() if (key := _tested_key(each)) is not None}
    found: dict[str, Sequence[str]] = {}
    for name, unique_id, node in _relations(nodes):
        key = mapping(node, "config").get("unique_key") or tested.get(unique_id)
        columns = [key] if isinstance(key, str) else key
        if (
            isinstance(columns, list)
            and columns
            and all(isinstance(each, str) and each.isidentifier() for each in columns)
        ):
            found[name] = columns
    return found


def _relations(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yields the full name of the relation of each node, its unique id and the node; not of tests."""
    for unique_id, node in nodes.items():
        database, schema, name = (text(node, each) for each in ("database", "schema", "name"))
        if database and schema and name and _kind(unique_id) in _BUILT:
            yield str(RelationName(database, schema, text(node, "alias") or name)), unique_id, node


def _tested_key(node: Mapping[str, Any]) -> str | None:
    """Returns the column of a `unique` test of all rows; None for any other node."""
    test = mapping(node, "test_metadata")
    is_whole = mapping(node, "config").get("where") is None
    return text(mapping(test, "kwargs"), "column_name") if text(test, "name") == "unique" and is_whole else None
