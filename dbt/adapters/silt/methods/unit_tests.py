"""Macro API of unit tests: renders their fixtures, and converts compared values to a comparable form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.materializations import row_comparison
    from dbt.adapters.silt.materializations.unit_tests import fixtures
    from dbt.adapters.silt.relation import SiltRelation
    from dbt.adapters.silt.runs import cut_relations
else:
    row_comparison = lazy_module("dbt.adapters.silt.materializations.row_comparison")
    fixtures = lazy_module("dbt.adapters.silt.materializations.unit_tests.fixtures")
    cut_relations = lazy_module("dbt.adapters.silt.runs.cut_relations")


class UnitTestMethods(metaclass=AdapterMeta):
    """The part of the adapter that reads fixtures."""

    config: Any
    connections: SiltConnectionManager
    Relation: type[SiltRelation]
    _macro_resolver: Any

    @abstractmethod
    def get_columns_in_relation(self, relation: SiltRelation) -> list[SiltColumn]:
        """Returns the columns of a table or a view; empty if it does not exist."""

    @available.parse_list
    def fixture_rows(
        self, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], fixture: str
    ) -> list[dict[str, str]]:
        """Returns the rows of a fixture, each as columns -> SQL expressions; `types` are the relation's column types.

        Raises:
            DbtDatabaseError: if a value is not of its column's type.
        """
        with self.connections.exception_handler(f"read {fixture}"):
            warehouse = self.connections.handle.warehouse
            return fixtures.fixture(fixture, types, warehouse, self.config.credentials.quotes).rendered(rows)

    @available.parse_list
    def expected_rows(self, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> list[dict[str, str]]:
        """Returns the expected rows as `fixture_rows` does, with the columns of each row in the order of the first.

        Raises:
            DbtDatabaseError: if a value is not of its column's type, or a row has other columns than the first.
        """
        with self.connections.exception_handler("read the expected output"):
            return fixtures.in_one_order(self.fixture_rows(rows, types, "the expected output"))

    @available.parse_none
    def check_fixture_query(self, query: str, types: Mapping[str, str], fixture: str) -> None:
        """Checks that the columns of the relation can hold the rows of a fixture that is a query.

        Raises:
            DbtDatabaseError: if a value is not of its column's type.
        """
        with self.connections.exception_handler(query):
            warehouse = self.connections.handle.warehouse
            fixtures.fixture(fixture, types, warehouse, self.config.credentials.quotes).check_query(query)

    @available.parse_none
    def check_given_queries(self, test: Mapping[str, Any]) -> None:
        """Checks the inputs of a unit test that are queries: their rows must fit the relations that they replace.

        Raises:
            DbtDatabaseError: if a value is not of its column's type.
        """
        for each in fixtures.given_queries(test, self._macro_resolver):
            relation = self.Relation.create_from(self.config, each.original)
            types = {column.name: str(column.declared_type) for column in self.get_columns_in_relation(relation)}
            self.check_fixture_query(each.query, types, f"the fixture for `{each.original.name}`")

    @available.parse_list
    def comparable_columns(self, query: str, names: Sequence[str]) -> list[str]:
        """Converts columns of a query, as SQL, to a form in which equal values look equal."""
        with self.connections.exception_handler(query):
            schema = self.connections.handle.warehouse.schema_of(cut_relations.current_text(query))
            kinds = {quote(each.name).lower(): each for each in schema}
        found = [kinds.get(name.lower()) for name in names]
        return [
            name if field is None else row_comparison.with_sorted_maps(name, field.dataType)
            for name, field in zip(names, found, strict=True)
        ]
