"""dbt-tests-adapter: catalog, and the documentation tests of basic."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.util import AnyInteger
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata


class AnyOf:
    """Equals any value of a type; statistics of a table depend on the machine and the moment."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.kind)

    __hash__ = None  # type: ignore[assignment]


STATS: dict[str, tuple[str, object, str]] = {
    "rows": ("Rows", 1, "Number of rows"),
    "bytes": ("Size", AnyInteger(), "Bytes of the data files"),
    "files": ("Files", 1, "Number of data files"),
    "version": ("Version", AnyInteger(), "Version of the table's log"),
    "last_modified": ("Last modified", AnyOf(str), "Time of the last commit"),
    "has_stats": ("Has Stats?", True, "Indicates whether there are statistics for this table"),
}
TABLE_STATS = {
    id: {"id": id, "label": label, "value": value, "description": text, "include": id != "has_stats"}
    for id, (label, value, text) in STATS.items()
}
# The types that Spark infers for a seed's columns; a catalog of an engine without principals has no owner.
TYPES: dict[str, Any] = {
    "role": None,
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
    "model_stats": expected_catalog.no_stats(),
    "seed_stats": TABLE_STATS,
}


@pytest.mark.manifest
@pytest.mark.kept
class TestDocsGenerate(BaseDocsGenerate):
    """With Spark's type names, and statistics of tables."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> dict[str, Any]:
        return expected_catalog.base_expected_catalog(project, **TYPES)


@pytest.mark.manifest
class TestDocsGenReferences(BaseDocsGenReferences):
    """With Spark's type names, and statistics of tables; a view has none."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> dict[str, Any]:
        types = {**TYPES, "model_stats": TABLE_STATS, "bigint_type": "bigint"}
        return expected_catalog.expected_references_catalog(
            project, **types, view_summary_stats=expected_catalog.no_stats()
        )


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    """The suite leaves the expected value to the adapter."""

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> CatalogTable:
        return self._expected(project, "my_seed", "table", TABLE_STATS)

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> CatalogTable:
        return self._expected(project, "my_view_model", "view", expected_catalog.no_stats())

    @staticmethod
    def _expected(project: Any, name: str, kind: str, stats: dict[str, Any]) -> CatalogTable:
        types = {
            "id": "bigint",
            "first_name": "string",
            "email": "string",
            "ip_address": "string",
            "updated_at": "timestamp",
        }
        return CatalogTable(
            metadata=TableMetadata(
                type=kind, schema=project.test_schema, name=name, database=project.database, comment=None
            ),
            columns={
                column: ColumnMetadata(type=type_name, index=index, name=column)
                for index, (column, type_name) in enumerate(types.items(), start=1)
            },
            stats={id: StatsItem(**stat) for id, stat in stats.items()},
        )


class TestCatalogRelationTypes(CatalogRelationTypes):
    """Names of relation types, which the base class asks an adapter to define; there are no materialized views."""

    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs: CatalogArtifact, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
