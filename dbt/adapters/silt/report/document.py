"""Combines the data of the page, with the graph of models, in a JSON document, which `static/data.js` reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.report.artifacts import Artifacts, mapping, milliseconds, text
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.file_layout import BOUNDS
from dbt.adapters.silt.report.nodes import Node, freshness_of, nodes_of, tests_of
from dbt.adapters.silt.report.results import results_of
from dbt.adapters.silt.report.runs import results_json, runs_json
from dbt.adapters.silt.report.tables import Keys, read_tables, to_json

RUNS: Final = 100
"""The default number of runs on the page."""
_LONGEST = 400
"""The number of characters of a description that the page shows."""


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
    nodes, texts = nodes_of(artifacts.manifest), Texts()
    tables = read_tables(source.catalog, keys_of(nodes), source.is_local)
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


def keys_of(nodes: Sequence[Node]) -> Keys:
    """Returns the columns that are declared unique, by table."""
    return {node.table: node.keys for node in nodes if node.table is not None and node.keys}


def _graph_json(artifacts: Artifacts, nodes: Sequence[Node], texts: Texts) -> list[dict[str, Any]]:
    """Returns the nodes of the graph."""
    numbers = {node.unique_id: number for number, node in enumerate(nodes)}
    tests = _tests(artifacts.manifest, texts)
    freshness = freshness_of(artifacts.sources)
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
    for test in tests_of(manifest):
        found[test.node].append(row(texts.number(test.unique_id), texts.number(test.kind), texts.number(test.column)))
    return found


def _fresh(result: Mapping[str, Any] | None) -> list[Any] | None:
    """Returns a source's freshness from dbt's result: the status, and the times of its newest row and of the check."""
    if result is None:
        return None
    return [text(result, "status"), *(milliseconds(result.get(name)) for name in ("max_loaded_at", "snapshotted_at"))]
