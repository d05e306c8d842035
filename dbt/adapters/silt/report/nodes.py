"""Reads the nodes of a manifest that the graph shows, with their parents, columns and tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dbt.adapters.silt.report.artifacts import items, mapping, members, number, text

_SHOWN: Final = ("model", "seed", "snapshot", "source", "function")
_TESTS: Final = ("test", "unit_test")
_SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86_400}


@dataclass(frozen=True)
class NodeTest:
    """A test of a node.

    Attributes:
        node: the unique id of the tested node.
        column: the tested column, if the test has a single column.
        kind: such as `unique`, or the name of a singular test.
    """

    unique_id: str
    node: str
    column: str | None
    kind: str


@dataclass(frozen=True)
class Node:
    """A model, seed, snapshot, function or source.

    Attributes:
        kind: dbt's resource type.
        table: the full name of its relation, if it has a relation.
        materialized: as configured; empty for a source.
        parents: unique ids of other nodes of the graph.
        columns: the descriptions of the columns that the project documents, by name.
        keys: the columns that are declared unique.
        rebuilt_after_ms: the maximum age of its table by `freshness.build_after`, if configured.
    """

    unique_id: str
    kind: str
    name: str
    table: str | None
    materialized: str = ""
    path: str = ""
    description: str = ""
    parents: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    rebuilt_after_ms: int | None = None


def nodes_of(manifest: Mapping[str, Any]) -> list[Node]:
    """Returns the nodes of the graph, in the manifest's order."""
    found = {**members(manifest, "nodes"), **members(manifest, "sources"), **members(manifest, "functions")}
    shown = {name: body for name, body in found.items() if body.get("resource_type") in _SHOWN}
    unique = defaultdict(list)
    for test in tests_of(manifest):
        if test.kind == "unique" and test.column is not None:
            unique[test.node].append(test.column)
    return [_node(name, body, shown, unique[name]) for name, body in shown.items()]


def tests_of(manifest: Mapping[str, Any]) -> list[NodeTest]:
    """Returns the data tests and unit tests."""
    found = {**members(manifest, "nodes"), **members(manifest, "unit_tests")}
    tests = (_test(name, body) for name, body in found.items() if body.get("resource_type") in _TESTS)
    return [test for test in tests if test is not None]


def _node(name: str, body: Mapping[str, Any], shown: Mapping[str, Any], unique: list[str]) -> Node:
    config = mapping(body, "config")
    return Node(
        name,
        str(body["resource_type"]),
        _name(body) or name,
        _table(body),
        text(config, "materialized") or "",
        text(body, "original_file_path") or "",
        text(body, "description") or text(body, "source_description") or "",
        tuple(parent for parent in _parents(body) if parent in shown),
        tuple((each, text(column, "description") or "") for each, column in members(body, "columns").items()),
        tuple(dict.fromkeys((*_names(config.get("unique_key")), *unique))),
        _build_after(config),
    )


def _name(body: Mapping[str, Any]) -> str | None:
    name, source = text(body, "name"), text(body, "source_name")
    version = body.get("version")
    full = f"{source}.{name}" if source else name
    return f"{full}.v{version}" if version is not None and full else full


def _table(body: Mapping[str, Any]) -> str | None:
    last = text(body, "alias") or text(body, "identifier") or text(body, "name")
    parts = (text(body, "database"), text(body, "schema"), last)
    known = [part.lower() for part in parts if part]
    return ".".join(known) if len(known) == len(parts) else None


def _parents(body: Mapping[str, Any]) -> list[str]:
    return _names(mapping(body, "depends_on").get("nodes"))


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(each) for each in value] if isinstance(value, list) else []


def _build_after(config: Mapping[str, Any]) -> int | None:
    after = mapping(mapping(config, "freshness"), "build_after")
    count, seconds = number(after, "count"), _SECONDS.get(str(after.get("period")))
    return None if count is None or seconds is None else count * seconds * 1000


def _test(name: str, body: Mapping[str, Any]) -> NodeTest | None:
    tested = text(body, "attached_node") or next(_tested(body), None)
    if tested is None:
        return None
    metadata = mapping(body, "test_metadata")
    column = text(body, "column_name") or text(mapping(metadata, "kwargs"), "column_name")
    return NodeTest(name, tested, column, text(metadata, "name") or text(body, "name") or name)


def _tested(body: Mapping[str, Any]) -> Iterator[str]:
    """Yields the inputs of a singular test or a unit test; the first input is the node that shows the test."""
    yield from _parents(body)


def freshness_of(sources: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the results of `dbt source freshness`, by the unique id of the source."""
    return {str(each["unique_id"]): each for each in items(sources, "results") if "unique_id" in each}
