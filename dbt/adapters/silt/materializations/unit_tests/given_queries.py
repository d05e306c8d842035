"""Finds the inputs of a unit test that are given as queries, for which dbt calls no macro."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SQL = "sql"


@dataclass(frozen=True)
class GivenQuery:
    """An input given as a query.

    Attributes:
        original: the node or source of the project that it replaces.
        query: the compiled query.
    """

    original: Any
    query: str


def given_queries(test: Mapping[str, Any], manifest: Any) -> Iterator[GivenQuery]:
    """Yields all inputs of a unit test, if any of them has `format: sql`.

    Args:
        test: the node of the unit test, compiled; each of its inputs is an ephemeral model.
        manifest: the project's manifest.
    """
    definition = manifest.unit_tests.get(test["unique_id"])
    if definition is None or all(str(given.format.value) != _SQL for given in definition.given):
        return
    for cte in test["extra_ctes"]:
        found = list(_originals(cte["id"], manifest))
        if len(found) == 1:  # dbt's name of an input does not distinguish the versions of a model
            yield GivenQuery(found[0], _query(cte["sql"]))


def _originals(input_id: str, manifest: Any) -> Iterator[Any]:
    _, package, name = input_id.split(".", 2)
    for node in manifest.nodes.values():
        if node.is_refable and (node.package_name, node.name) == (package, name):
            yield node
    for source in manifest.sources.values():
        if (source.package_name, f"{source.source_name}__{source.name}") == (package, name):
            yield source


def _query(cte: str) -> str:
    """Returns the query within `name as (...)`, in dbt's layout."""
    return cte.partition(" as (\n")[2].removesuffix("\n)")
