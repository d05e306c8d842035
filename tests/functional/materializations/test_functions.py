"""dbt's test classes for functions, and further behaviour of functions in a project."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.events.types import JinjaLogWarning, RunResultError
from dbt.tests.adapter.functions import test_udafs as aggregates
from dbt.tests.adapter.functions import test_udfs as scalars
from dbt.tests.util import get_connection, run_dbt, write_file
from dbt_common.events.event_catcher import EventCatcher


def refusal(expected: str) -> None:
    """Asserts that a build fails with the text in its error, and creates nothing."""
    errors = EventCatcher(RunResultError)
    results = run_dbt(["build"], expect_pass=False, callbacks=[errors.catch])
    assert "error" in [str(result.status) for result in results]
    assert expected in errors.caught_events[0].data.msg


@pytest.mark.kept
class TestUDFsBasic(scalars.UDFsBasic):
    def check_function_volatility(self, sql: str) -> None:
        super().check_function_volatility(sql)
        assert "DETERMINISTIC" not in sql


class TestDeterministicUDF(scalars.DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        """Spark's word for IMMUTABLE."""
        assert "DETERMINISTIC" in sql
        assert "NOT DETERMINISTIC" not in sql


class TestStableUDF(scalars.StableUDF):
    def check_function_volatility(self, sql: str) -> None:
        """Spark has no word for STABLE: nothing is declared."""
        assert "DETERMINISTIC" not in sql


class TestNonDeterministicUDF(scalars.NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        """Spark's words for VOLATILE."""
        assert "NOT DETERMINISTIC" in sql


class TestErrorForUnsupportedType(scalars.ErrorForUnsupportedType):
    pass


class TestPythonUDFNotSupported(scalars.PythonUDFNotSupported):
    def test_udfs(self, project: Any) -> None:  # type: ignore[override]
        """Refused unless the profile allows it, with the remedy."""
        refusal("price_for_xlarge: Python functions are disabled. Set `python_functions: true` in the profile to allow")


class _Trusting:
    """A profile that allows Python functions."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "python_functions": True}


@pytest.mark.kept
class TestPythonUDFSupported(_Trusting, scalars.PythonUDFSupported):
    pass


class TestPythonUDFVolatilitySupport(_Trusting, scalars.PythonUDFVolatilitySupport):
    def check_function_volatility(self, sql: str) -> None:
        """Spark's words for VOLATILE."""
        assert "NOT DETERMINISTIC" in sql


class TestPythonUDFDefaultArgSupport(_Trusting, scalars.PythonUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFWithPackagesSupported(_Trusting, scalars.PythonUDFWithPackagesSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(scalars.PythonUDFRuntimeVersionRequired):
    pass


class TestPythonUDFEntryPointRequired(scalars.PythonUDFEntryPointRequired):
    pass


class TestSqlUDFDefaultArgSupport(scalars.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestCanFindScalarFunctionRelation(scalars.CanFindScalarFunctionRelation):
    pass


SUM_OF_SQUARES = "the function `sum_squared` is an aggregate, which Spark cannot create"


class TestBasicSQLUDAF(aggregates.BasicSQLUDAF):
    def test_udaf(self, project: Any) -> None:  # type: ignore[override]
        refusal(SUM_OF_SQUARES)


class TestBasicPythonUDAF(aggregates.BasicPythonUDAF):
    def test_udaf(self, project: Any) -> None:  # type: ignore[override]
        refusal(SUM_OF_SQUARES)


class TestPythonUDAFDefaultArgSupport(aggregates.PythonUDAFDefaultArgSupport):
    def test_udaf(self, project: Any) -> None:  # type: ignore[override]
        refusal(SUM_OF_SQUARES)


TAXED = "{{ function('rounded') }}(price * (1 + rate)) -- with tax\n;"
RANKED = "select count(*) + 1 from {{ ref('prices') }} as others where others.price > ranked.price"
FUNCTIONS_YML = """
functions:
  - name: rounded
    arguments: [{name: x, data_type: double}]
    returns: {data_type: "decimal(12, 2)"}
  - name: taxed
    description: The price, it's said, with tax
    config: {volatility: stable, persist_docs: {relation: true, columns: true}}
    arguments:
      - {name: price, data_type: double, description: without tax}
      - {name: rate, data_type: double, default_value: 0.25}
    returns: {data_type: "decimal(12, 2)"}
  - name: ranked
    config: {alias: price_rank}
    arguments: [{name: price, data_type: double}]
    returns: {data_type: bigint}
"""
PRICED = """
{{ config(materialized='incremental', unique_key='id', incremental_predicates=['true'],
          pre_hook="select {{ function('taxed') }}(1)") }}
select id, {{ function('taxed') }}(price) as taxed, {{ function('ranked') }}(price) as place from {{ ref('prices') }}
"""
UNIT_TESTS_YML = """
unit_tests:
  - name: taxes_are_added
    model: over
    given: [{input: ref('prices'), rows: [{id: 1, price: 100.0}]}]
    expect: {rows: [{id: 1, taxed: 125.0}]}
"""


class TestFunctionsInAProject:
    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {
            "rounded.sql": "cast(x as decimal(12, 2))",
            "taxed.sql": TAXED,
            "ranked.sql": RANKED.replace("ranked.", "price_rank."),
            "functions.yml": FUNCTIONS_YML,
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "prices.sql": "{{ config(materialized='table') }} select id, id * 10.0D as price from range(1, 4)",
            "priced.sql": PRICED,
            "over.sql": "select id, {{ function('taxed') }}(price) as taxed from {{ ref('prices') }}",
            "models.yml": UNIT_TESTS_YML,
            # A table with a function's name is not that function, and does not conflict with it.
            "same_name.sql": "{{ config(materialized='table', alias='rounded') }} select 1 as x",
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            "prices_are_taxed.sql": "select * from {{ ref('priced') }} where taxed <> {{ function('taxed') }}(id * 10)"
        }

    def test_functions_can_be_used_in_every_kind_of_node(self, project: Any) -> None:
        warnings = EventCatcher(JinjaLogWarning)
        results = run_dbt(["build"], callbacks=[warnings.catch])
        assert {str(result.status) for result in results} == {"success", "pass"}
        assert "Found `stable` volatility specified on function `taxed`" in warnings.caught_events[0].data.msg

        rows = project.run_sql("select * from {schema}.priced order by id", fetch="all")
        assert [(row[0], float(row[1]), row[2]) for row in rows] == [(1, 12.5, 3), (2, 25.0, 2), (3, 37.5, 1)]
        assert float(project.run_sql("select taxed from {schema}.over where id = 2", fetch="one")[0]) == 25.0
        described = project.run_sql("describe function extended {schema}.taxed", fetch="all")
        text = "\n".join(row[0] for row in described)
        assert "it's said" in text
        assert "without tax" in text

        run_dbt(["build", "--full-refresh"])
        self._check_what_is_listed(project)
        self._check_that_a_changed_function_is_called_next(project)

    def _check_what_is_listed(self, project: Any) -> None:
        assert len(run_dbt(["list", "--resource-type", "function"])) == 3
        catalog = run_dbt(["docs", "generate"])
        assert "model.test.priced" in catalog.nodes
        adapter = project.adapter
        with get_connection(adapter):
            schema = adapter.Relation.create(project.database, project.test_schema)
            found = {each.identifier: each.type for each in adapter.list_relations_without_caching(schema)}
            assert adapter.get_relation(project.database, project.test_schema, "taxed") is None
        assert (found["taxed"], found["rounded"], found["price_rank"]) == ("function", "table", "function")

    def _check_that_a_changed_function_is_called_next(self, project: Any) -> None:
        write_file("price", project.project_root, "functions", "taxed.sql")
        run_dbt(["build", "--resource-type", "function", "--select", "taxed"])
        assert float(project.run_sql("select taxed from {schema}.over where id = 2", fetch="one")[0]) == 20.0
        write_file("nothing(price)", project.project_root, "functions", "taxed.sql")
        run_dbt(["build", "--resource-type", "function", "--select", "taxed"], expect_pass=False)
        assert float(project.run_sql("select taxed from {schema}.over where id = 2", fetch="one")[0]) == 20.0
