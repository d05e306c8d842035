"""Writes the graph of models into the page's data: nodes, their parents, columns, tests and freshness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.silt.report.artifacts import Artifacts, milliseconds, text
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.nodes import Node, freshness_of, tests_of
from dbt.adapters.silt.report.tables import Keys

_LONGEST = 400
"""The number of characters of a description that the page shows."""


def keys_of(nodes: Sequence[Node]) -> Keys:
    """Returns the columns that are declared unique, by table."""
    return {node.table: node.keys for node in nodes if node.table is not None and node.keys}


def graph_json(artifacts: Artifacts, nodes: Sequence[Node], texts: Texts) -> list[dict[str, Any]]:
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
