"""Combines the data of the page in a JSON document with the graph of models, which `static/data.js` reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbt.adapters.silt.__version__ import version
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind
from dbt.adapters.silt.records.known_runs import Unpublished, known_runs, unpublished_runs
from dbt.adapters.silt.report.artifacts import Artifacts, mapping, milliseconds, text
from dbt.adapters.silt.report.encoding import Texts
from dbt.adapters.silt.report.graph import graph_json, keys_of, nodes_of
from dbt.adapters.silt.report.runs import runs_json, unpublished_json
from dbt.adapters.silt.report.table_content import BOUNDS
from dbt.adapters.silt.report.tables import read_tables, to_json

RUNS: Final = 100
"""The default number of runs on the page."""


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
    relations = _relations(source.catalog)
    names = [each.name for each in relations if each.kind is RelationKind.TABLE]
    tables = read_tables(source.catalog, names, keys_of(nodes), source.is_local)
    unpublished = _unpublished(source.catalog)
    known = known_runs((), artifacts.records, unpublished=unpublished)
    runs = runs_json(tables, artifacts, known, source.runs, texts)
    body = {
        "made": now_ms,
        "by": version,
        "project": text(mapping(artifacts.manifest, "metadata"), "project_name"),
        "databases": source.catalog.databases(),
        "manifestMade": milliseconds(mapping(artifacts.manifest, "metadata").get("generated_at")),
        "bounds": list(BOUNDS),
        "notes": list(artifacts.notes),
        "runs": runs,
        "unpublished": unpublished_json(unpublished, texts),
        "nodes": graph_json(artifacts, nodes, _views(relations), texts),
    }
    written = to_json({**body, "texts": texts.all()})
    whole = f'{written[:-1]},"tables":[{",".join(table.json for table in tables)}]}}'
    problems = tuple(table.name for table in tables if table.is_damaged)
    return Document(whole, len(runs), len(tables), artifacts.notes, problems)


def _relations(catalog: Catalog) -> list[RelationEntry]:
    return [each for database in catalog.databases() for each in catalog.all_relations(database)]


def _views(relations: Collection[RelationEntry]) -> frozenset[str]:
    return frozenset(str(each.name) for each in relations if each.kind is RelationKind.VIEW)


def _unpublished(catalog: Catalog) -> list[Unpublished]:
    return [each for database in catalog.databases() for each in unpublished_runs(catalog.run_branches(database))]
