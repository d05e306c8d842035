"""Describes relations for `dbt docs generate`, and dates their last change for `dbt source freshness`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import FilesNotFoundError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.external.sources import read_files
from dbt.adapters.silt.runs.response import SiltResponse

if TYPE_CHECKING:
    import agate
    from dbt.adapters.base.impl import FreshnessResponse
    from dbt.adapters.contracts.connection import AdapterResponse
    from dbt_common.contracts.metadata import CatalogTable

    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationName
    from dbt.adapters.silt.engine.kernel.log import commit_search
    from dbt.adapters.silt.materializations import docs_catalog
    from dbt.adapters.silt.relation import SiltRelation
else:
    commit_search = lazy_module("dbt.adapters.silt.engine.kernel.log.commit_search")
    docs_catalog = lazy_module("dbt.adapters.silt.materializations.docs_catalog")

logger = AdapterLogger("Silt")


class DocumentationMethods(metaclass=AdapterMeta):
    """The part of the adapter that describes relations, and dates their last change."""

    config: Any
    connections: SiltConnectionManager
    Relation: type[SiltRelation]
    _create_freshness_response: Callable[[datetime | None, datetime | None], FreshnessResponse]

    @abstractmethod
    def _full_name(self, relation: SiltRelation) -> RelationName:
        """Returns the name of a relation for the catalog."""

    @abstractmethod
    def _find(self, relation: SiltRelation) -> RelationEntry | None:
        """Returns the table or view of that name."""

    @abstractmethod
    def _columns(self, entry: RelationEntry) -> list[SiltColumn]:
        """Returns the columns of a table or view."""

    @abstractmethod
    def _columns_of_query(self, sql: str) -> list[SiltColumn]:
        """Returns the columns of a query."""

    def get_catalog(
        self, relation_configs: Iterable[Any], used_schemas: frozenset[tuple[str, str]]
    ) -> tuple[agate.Table, list[Exception]]:
        """Returns the catalog's rows for the project's relations; omits other relations of their schemas."""
        relations = {self.Relation.create_from(self.config, each) for each in relation_configs}
        return self.get_catalog_by_relations(used_schemas, relations)

    def get_catalog_by_relations(
        self,
        used_schemas: frozenset[tuple[str, str]],  # noqa: ARG002 - dbt's signature
        relations: Iterable[SiltRelation],
    ) -> tuple[agate.Table, list[Exception]]:
        """Returns the catalog's rows for relations, and an error for each relation that cannot be described."""
        found: list[docs_catalog.RelationDocs | None] = []
        errors: list[Exception] = []
        for relation in sorted(relations, key=str):
            try:
                found.append(self._described(relation))
            except DbtRuntimeError as error:
                logger.warning(f"{relation} is left out of the catalog: {error}")
                errors.append(error)
        return docs_catalog.catalog_rows([each for each in found if each is not None]), errors

    def get_catalog_for_single_relation(self, relation: SiltRelation) -> CatalogTable | None:
        described = self._described(relation)
        return None if described is None else described.catalog_table()

    def calculate_freshness_from_metadata_batch(
        self,
        sources: list[SiltRelation],
        macro_resolver: Any = None,  # noqa: ARG002 - dbt's signature
    ) -> tuple[list[AdapterResponse | None], dict[SiltRelation, FreshnessResponse]]:
        """Reads the time of the last row change of each source table from its log; omits sources without an answer."""
        found = {}
        for source in sources:
            try:
                found[source] = self._freshness(source)
            except DbtRuntimeError as error:
                logger.debug(f"{source} is left out: {error}")  # dbt then requests it separately
        return [SiltResponse("OK", code="OK")], found

    def calculate_freshness_from_metadata(
        self,
        source: SiltRelation,
        macro_resolver: Any = None,  # noqa: ARG002 - dbt's signature
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """Returns the time when rows of a source table last changed.

        Raises:
            DbtRuntimeError: if the table does not exist, or is a view.
        """
        return SiltResponse("OK", code="OK"), self._freshness(source)

    def _described(self, relation: SiltRelation) -> docs_catalog.RelationDocs | None:
        with self.connections.exception_handler(f"describe {relation}"):
            if relation.external:
                return self._described_files(relation)
            entry = self._find(relation)
            if entry is None:
                return None
            described = docs_catalog.describe(self.connections.catalog, entry, self._columns(entry))
            # dbt finds the rows of a source by the source's own database.
            return replace(described, name=relation.relation_name(entry.name.database))

    def _described_files(self, source: SiltRelation) -> docs_catalog.RelationDocs | None:
        try:
            columns = self._columns_of_query(f"select * from {source.render()}")
        except FilesNotFoundError:
            return None  # as for a missing table
        return docs_catalog.RelationDocs(self._full_name(source), "external", None, columns)

    def _freshness(self, source: SiltRelation) -> FreshnessResponse:
        with self.connections.exception_handler(f"get the freshness of {source}"):
            changed = self._changed_at(source)
        return self._create_freshness_response(changed, datetime.now(timezone.utc))

    def _changed_at(self, source: SiltRelation) -> datetime:
        """Returns the time when rows of a source last changed; for files, when the newest file was written."""
        if source.external_location is None:
            return docs_catalog.changed_at(self.connections.catalog, self._full_name(source))
        if source.external_format == "delta":
            changed_ms = commit_search.last_data_change(self.connections.catalog.table_at(source.external_location))
        else:
            files = read_files(source.external_location, {"format": "binaryFile"}, f"freshness of {source.identifier}")
            rows = self.connections.handle.warehouse.sql(f"select unix_millis(max(modificationTime)) from {files}")
            changed_ms = int(rows.collect()[0][0])
        return docs_catalog.time_of_change(changed_ms)
