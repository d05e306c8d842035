"""Writes the graph of the page's data: models, seeds, snapshots, functions, sources and exposures, with their tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dbt.adapters.silt.report.artifacts import Artifacts, items, mapping, members, milliseconds, number, text
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.tables import Keys

_LONGEST: Final = 400
"""The number of characters of a description that the page shows."""

_SHOWN: Final = ("model", "seed", "snapshot", "source", "function", "exposure")
_PARTS: Final = ("nodes", "sources", "functions", "exposures")
_TESTS: Final = ("test", "unit_test")
_SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86_400}


def keys_of(nodes: Sequence[Node]) -> Keys:
    """Returns the columns that are declared unique, by table."""
    return {node.table: node.keys for node in nodes if node.table is not None and node.keys}


def graph_json(
    artifacts: Artifacts, nodes: Sequence[Node], views: Collection[str], texts: Texts
) -> list[dict[str, Any]]:
    """Returns the nodes of the graph.

    Args:
        views: the full names of the views that exist.
    """
    numbers = {node.unique_id: number for number, node in enumerate(nodes)}
    tests = _tests(artifacts.manifest, texts)
    freshness = _freshness_of(artifacts.sources)
    return [
        {
            "id": texts.number(node.unique_id),
            **present(
                kind=texts.number(node.kind),
                name=node.name,
                table=texts.number(node.table),
                how=texts.number(node.materialized or None),
                view=1 if node.table in views else None,
                path=node.path,
                about=node.description[:_LONGEST],
                parents=[numbers[parent] for parent in node.parents],
                columns=[[texts.number(name), texts.number(about)] for name, about in node.columns if about],
                tests=tests.get(node.unique_id),
                after=node.rebuilt_after_ms,
                fresh=_fresh(freshness.get(node.unique_id)),
            ),
        }
        for node in nodes
    ]


def _tests(manifest: Mapping[str, Any], texts: Texts) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for test in _tests_of(manifest):
        found[test.node].append(row(texts.number(test.unique_id), texts.number(test.kind), texts.number(test.column)))
    return found


def _fresh(result: Mapping[str, Any] | None) -> list[Any] | None:
    """Returns a source's freshness from dbt's result: the status, and the times of its newest row and of the check."""
    if result is None:
        return None
    return [text(result, "status"), *(milliseconds(result.get(name)) for name in ("max_loaded_at", "snapshotted_at"))]


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
    """A model, seed, snapshot, function, source or exposure.

    Attributes:
        kind: dbt's resource type.
        table: the full name of its relation, if it has a relation.
        materialized: as configured; empty for a source; of an exposure its type, such as `dashboard`.
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
    found = {name: body for part in _PARTS for name, body in members(manifest, part).items()}
    shown = {name: body for name, body in found.items() if body.get("resource_type") in _SHOWN}
    unique = defaultdict(list)
    for test in _tests_of(manifest):
        if test.kind == "unique" and test.column is not None:
            unique[test.node].append(test.column)
    return [_node(name, body, shown, unique[name]) for name, body in shown.items()]


def _tests_of(manifest: Mapping[str, Any]) -> list[NodeTest]:
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
        text(config, "materialized") or (text(body, "type") or "" if body["resource_type"] == "exposure" else ""),
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
    """Returns the full name of a node's relation, unless it is an exposure or an ephemeral model."""
    if mapping(body, "config").get("materialized") == "ephemeral":
        return None
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


def _freshness_of(sources: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the results of `dbt source freshness`, by the unique id of the source."""
    return {str(each["unique_id"]): each for each in items(sources, "results") if "unique_id" in each}
