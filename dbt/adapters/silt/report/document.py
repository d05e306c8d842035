"""Combines the data of the page in a JSON document with the graph of models, which `static/data.js` reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.report.artifacts import (
    Artifacts,
    items,
    mapping,
    members,
    milliseconds,
    number,
    results_of,
    text,
)
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.runs import results_json, runs_json
from dbt.adapters.silt.report.table_content import BOUNDS
from dbt.adapters.silt.report.tables import Keys, read_tables, to_json

RUNS: Final = 100
"""The default number of runs on the page."""
_LONGEST = 400
"""The number of characters of a description that the page shows."""

_SHOWN: Final = ("model", "seed", "snapshot", "source", "function")
_TESTS: Final = ("test", "unit_test")
_SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86_400}


@dataclass(frozen=True)
class Source:
    """The sources of a page.

    Attributes:
        catalog: the warehouse.
        target_path: dbt's target folder, if there is a project.
        runs: the number of runs to show, newest first.
        is_local: whether all logs are on a local disk.
    """

    catalog: Catalog
    target_path: Path | None
    runs: int = RUNS
    is_local: bool = True


@dataclass(frozen=True)
class Document:
    """The content of a page.

    Attributes:
        json: all data, as JSON that is also safe as text in HTML.
        runs, tables: the number of runs and tables in it.
        notes: the missing data, as sentences for users.
        problems: the names of the tables that could not be read.
    """

    json: str
    runs: int
    tables: int
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def document(source: Source, now_ms: int) -> Document:
    """Reads all data of the page.

    Raises:
        StorageError: if the storage cannot list the tables.
    """
    artifacts = Artifacts.of(source.target_path)
    nodes, texts = _nodes_of(artifacts.manifest), Texts()
    tables = read_tables(source.catalog, _keys_of(nodes), source.is_local)
    results = results_of(artifacts)
    runs = runs_json(tables, artifacts, results, source.runs, texts)
    body = {
        "made": now_ms,
        "by": version,
        "project": text(mapping(artifacts.manifest, "metadata"), "project_name"),
        "databases": source.catalog.databases(),
        "manifestMade": milliseconds(mapping(artifacts.manifest, "metadata").get("generated_at")),
        "bounds": list(BOUNDS),
        "notes": list(artifacts.notes),
        "runs": runs,
        "results": results_json(results, texts),
        "nodes": _graph_json(artifacts, nodes, texts),
    }
    written = to_json({**body, "texts": texts.all()})
    whole = f'{written[:-1]},"tables":[{",".join(table.json for table in tables)}]}}'
    problems = tuple(table.name for table in tables if table.is_damaged)
    return Document(whole, len(runs), len(tables), artifacts.notes, problems)


def _keys_of(nodes: Sequence[Node]) -> Keys:
    """Returns the columns that are declared unique, by table."""
    return {node.table: node.keys for node in nodes if node.table is not None and node.keys}


def _graph_json(artifacts: Artifacts, nodes: Sequence[Node], texts: Texts) -> list[dict[str, Any]]:
    """Returns the nodes of the graph."""
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


def _nodes_of(manifest: Mapping[str, Any]) -> list[Node]:
    """Returns the nodes of the graph, in the manifest's order."""
    found = {**members(manifest, "nodes"), **members(manifest, "sources"), **members(manifest, "functions")}
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


def _freshness_of(sources: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the results of `dbt source freshness`, by the unique id of the source."""
    return {str(each["unique_id"]): each for each in items(sources, "results") if "unique_id" in each}
