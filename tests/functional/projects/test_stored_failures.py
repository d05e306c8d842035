"""Failures that tests store: in tables and views, replaced by each run."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

LONG = "a_test_with_a_name_" + "that_goes_on_" * 12
FAILING = "select * from {{ ref('numbers') }} where n > {{ var('above', 1) }}"


class TestStoredFailures:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        properties = """
        models:
          - name: numbers
            columns:
              - name: n
                data_tests:
                  - accepted_values: {arguments: {values: [1]}, config: {store_failures_as: table, limit: 1}}
        """
        return {"numbers.sql": "select explode(array(1, 2, 3)) as n, 'x' as `a b`", "numbers.yml": properties}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            f"{LONG}.sql": FAILING,
            "as_view.sql": "{{ config(store_failures_as=var('kind', 'view')) }}" + FAILING,
        }

    def stored(self, project: Any, name: str) -> tuple[str | None, int]:
        """Returns the kind of relation that a test's failures are stored in, and their number."""
        schema = f"{project.test_schema}_dbt_test__audit"
        place = project.adapter.Relation.create(project.database, schema)
        with project.adapter.connection_named("look"):
            stored = project.adapter.list_relations_without_caching(place)
        [found] = [each for each in stored if each.identifier == name]
        count = project.run_sql(f"select count(*) from {found}", fetch="one")[0]
        return found.type, count

    def test_failures_are_stored_as_configured_and_replaced_by_each_run(self, project: Any) -> None:
        run_dbt(["run"])
        store = ["test", "--store-failures"]
        accepted = "accepted_values_numbers_n__1"
        for _ in range(2):
            results = run_dbt(store, expect_pass=False)
            assert {(each.node.name, each.failures) for each in results} == {(LONG, 2), ("as_view", 2), (accepted, 1)}
            assert self.stored(project, LONG) == ("table", 2)
            assert self.stored(project, "as_view") == ("view", 2)
            assert self.stored(project, accepted) == ("table", 1)

        results = run_dbt([*store, "--vars", "{above: 3, kind: table}", "--exclude", accepted])
        assert {(each.node.name, each.status) for each in results} == {(LONG, "pass"), ("as_view", "pass")}
        assert self.stored(project, LONG) == ("table", 0)
        assert self.stored(project, "as_view") == ("table", 0)
