"""Macro API of tests: renders the fixtures of unit tests, and skips data tests that have passed on the same input."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.runs.tests_not_run import KnownResult

if TYPE_CHECKING:
    import agate

    from dbt.adapters.silt.column import SiltColumn
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.builds import decision, passed_tests
    from dbt.adapters.silt.engine.kernel.log.builds import Build
    from dbt.adapters.silt.materializations import reuse, row_comparison
    from dbt.adapters.silt.materializations.unit_tests import fixtures
    from dbt.adapters.silt.relation import SiltRelation
    from dbt.adapters.silt.runs import agate_tables, cut_relations
    from dbt.adapters.silt.runs import response as responses
    from dbt.adapters.silt.runs.response import SiltResponse
else:
    row_comparison = lazy_module("dbt.adapters.silt.materializations.row_comparison")
    fixtures = lazy_module("dbt.adapters.silt.materializations.unit_tests.fixtures")
    cut_relations = lazy_module("dbt.adapters.silt.runs.cut_relations")
    decision = lazy_module("dbt.adapters.silt.engine.builds.decision")
    passed_tests = lazy_module("dbt.adapters.silt.engine.builds.passed_tests")
    reuse = lazy_module("dbt.adapters.silt.materializations.reuse")
    agate_tables = lazy_module("dbt.adapters.silt.runs.agate_tables")
    responses = lazy_module("dbt.adapters.silt.runs.response")

logger = AdapterLogger("Silt")
_WHOLE = "use an expression that gives a whole number, such as `count(*)` or `sum(n)`"
_ENDS = ("should_warn", "should_error")
"""The columns of a test's result for warnings and failures."""

_SIDE = "actual_or_expected"
_SIDES = ("actual", "expected")
"""The column of a unit test's result that tells the rows of the model from those of the test, and its values."""


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

    @available.parse(lambda *_, **__: "")
    def missing_input(self, given: Mapping[str, Any]) -> str:
        """Returns the reason why an input of a unit test has no columns in the warehouse, with the remedy."""
        return fixtures.missing_input(given, self._macro_resolver)

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


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "void")
"""The types of `fail_calc`; a null is of the type `void`."""


class ReusedTestMethods(metaclass=AdapterMeta):
    """The part of the adapter that does not run a test again on the input on which it has passed."""

    config: Any
    connections: SiltConnectionManager
    Relation: type[SiltRelation]
    _macro_resolver: Any

    @abstractmethod
    def get_columns_in_relation(self, relation: SiltRelation) -> list[SiltColumn]:
        """Returns the columns of a table or a view; empty if it does not exist."""

    @abstractmethod
    def get_column_schema_from_query(self, sql: str) -> list[SiltColumn]:
        """Returns the columns of a query, which is not run."""

    @abstractmethod
    def _project_facts(self) -> reuse.ProjectFacts:
        """Returns the facts of the project that determine rows."""

    @available.parse(lambda *_, **__: "failures")
    def whole_number(self, fail_calc: str, failing: str, test: Mapping[str, Any]) -> str:
        """Returns SQL for the number of failures in the column `failures`: null counts as 0.

        Args:
            failing: the rows that fail, as SQL.
            test: the test, whose result is an error if the number is not whole.

        Raises:
            CompilationError: if `fail_calc` is not a number.
        """
        [found] = self.get_column_schema_from_query(f"select {fail_calc} as failures from {failing}")
        named = f"`fail_calc` of the test {test['name']} is `{fail_calc}`"
        if found.dtype.partition("(")[0] not in _NUMBERS:
            raise CompilationError(f"{named}, of the type {found.dtype}: {_WHOLE}")
        error = f"concat({string_literal(f'{named}, and its value is ')}, failures, {string_literal(f': {_WHOLE}')})"
        return (
            "case when failures is null then 0L when failures = floor(failures) then cast(failures as bigint) "
            f"else raise_error({error}) end"
        )

    @available.parse_none
    def test_build(self, test: Mapping[str, Any], query: str) -> Build | None:
        """Returns the description of a data test with `reuse: unchanged`; None for any other test."""
        return self._test_build(test, test, [query])

    @available.parse_none
    def unit_test_build(self, test: Mapping[str, Any], query: str) -> Build | None:
        """Returns the description of a unit test that may be reused; None for any other.

        Args:
            test: the node of the unit test, compiled.
            query: the model's query, which contains the rows of its inputs.
        """
        with self.connections.exception_handler(f"look for the last result of {test['name']}"):
            definition = self._macro_resolver.unit_tests.get(test["unique_id"])
            if definition is None:
                return None
            given = {"resource_type": "test", "config": definition.config.to_dict()}
            types = [
                [str(each.original.unique_id), self._types(each.original)]
                for each in fixtures.given_queries(test, self._macro_resolver)
            ]
            expected = [test["config"].get(name) for name in ("expected_rows", "expected_sql", "sql_header")]
            return self._test_build(test, given, [query, *map(str, (expected, types, reuse.dbt_version()))])

    def _types(self, original: Any) -> list[tuple[str, str]]:
        columns = self.get_columns_in_relation(self.Relation.create_from(self.config, original))
        return [(column.name, str(column.declared_type)) for column in columns]

    def _test_build(self, test: Mapping[str, Any], configured: Mapping[str, Any], texts: Sequence[str]) -> Build | None:
        context = self.connections.invocation.context
        if context.empty or context.sample or not reuse.is_reusable(configured, self.config.credentials.reuse):
            return None
        return reuse.build_of_test(test, texts, self._project_facts(), time.time_ns() // 1_000_000)

    @available.parse_none
    def passed_test(self, build: Build, test: Mapping[str, Any], query: str) -> KnownResult | None:
        """Returns the result of a test that has passed on the same input; None if the test must run."""
        self.connections.node.context.test, self.connections.node.context.facts = build, None
        invocation = self.connections.invocation
        if invocation.full_refresh or reuse.is_switched_off(invocation.variables):
            return None
        with self.connections.exception_handler(f"look for the last result of {test['name']}"):
            known = self._passed_tests()
            passed = known.find(build.owner)
            found = known.decide(build, passed, query, self.connections.sessions.listed_files)
        if passed is None or not isinstance(found, decision.Reused):
            self.connections.node.context.built_because = str(found)
            return None
        response = responses.SiltResponse.of_passed_test(passed)
        self.connections.reused_tests.note(test["name"], passed)
        is_unit = str(test["resource_type"]) == "unit_test"
        row = {"failures": 0, **dict.fromkeys(_ENDS, False)}
        return KnownResult(
            response, agate_tables.of_rows([{"rows": "equal", _SIDE: each} for each in _SIDES] if is_unit else [row])
        )

    @available.parse_none
    def note_test(self, response: SiltResponse, result: agate.Table) -> None:
        """Records a test that has run and passed, if the whole input is known."""
        context = self.connections.node.context
        facts, context.test = context.facts, None
        if facts is None:
            return
        response.reason = ", ".join(facts.unknown) or context.built_because
        if not _has_passed(result):
            return
        try:
            self._passed_tests().note(passed_tests.PassedTest(facts, self.connections.invocation.run_id))
        except SiltError as error:
            logger.debug(f"The result of the test is not recorded, so the test will run again: {error}")

    def _passed_tests(self) -> passed_tests.PassedTests:
        return passed_tests.PassedTests(self.connections.catalog, self.config.credentials.database)


def _has_passed(result: agate.Table) -> bool:
    """Returns whether a test has passed: a unit test by its rows, a data test without a failure and a warning."""
    names = [name.lower() for name in result.column_names]
    if _SIDE in names:
        return _is_as_expected(result, names.index(_SIDE))
    if len(result.rows) != 1:
        return False
    values = dict(zip(map(str.lower, result.column_names), result.rows[0], strict=True))
    return all(values.get(name) is False for name in _ENDS)


def _is_as_expected(result: agate.Table, side: int) -> bool:
    """Returns whether both sides of a unit test's result have the same rows, which dbt prints alike."""
    found: dict[str, Counter[str]] = {each: Counter() for each in _SIDES}
    for row in result.rows:
        values = list(row.values())
        found[str(values.pop(side))][repr(values)] += 1
    return found[_SIDES[0]] == found[_SIDES[1]]
