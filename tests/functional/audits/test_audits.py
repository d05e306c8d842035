"""`audit: before_commit`: the data tests of a node judge its rows before they are committed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

GOOD, BAD = "id,name\n1,one\n2,two\n", "id,name\n1,one\n2,\n"
ORDERS = "{{ config(materialized='incremental', unique_key='id') }} select id, name from {{ ref('raw') }}"
MODELS = """
models:
  - name: orders
    config: {audit: before_commit}
    columns:
      - name: id
        data_tests:
          - unique
          - relationships: {arguments: {to: "ref('raw')", field: id}}
      - name: name
        data_tests:
          - not_null
          - accepted_values: {arguments: {values: [one, two, three]}, config: {severity: warn}}
  - name: below
    columns: [{name: id, data_tests: [not_null]}]
"""


def files_of(project: Any, table: str) -> dict[str, bytes]:
    """Returns the log of a table, by the names of its files."""
    warehouse = Path(project.adapter.config.credentials.warehouse)
    folder = warehouse / project.test_schema / table / "_delta_log"
    return {each.name: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def build(*arguments: str, success: bool = True, **variables: Any) -> dict[str, Any]:
    """Builds the project, and returns the result of each node by its name."""
    given = ["build", "--vars", json.dumps(variables), *arguments]
    return {each.node.name: each for each in run_dbt(given, expect_pass=success).results}


def audited(results: Mapping[str, Any]) -> set[str]:
    """Returns the tests that were not run again, because they had judged the rows before the commit."""
    return {name for name, each in results.items() if each.adapter_response.get("audited")}


class Project:
    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"raw.csv": GOOD}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        below = "{{ config(materialized='table') }} select id from {{ ref('orders') }}"
        return {"orders.sql": ORDERS, "below.sql": below, "models.yml": MODELS}

    @pytest.fixture(scope="class")
    def tests(self) -> Mapping[str, str]:
        return {
            "few.sql": "select 1 as n from (select count(*) as n from {{ ref('orders') }}) where n > 3",
            "as_below.sql": "select id from {{ ref('orders') }} except select id from {{ ref('below') }}",
        }


class TestRefusedRows(Project):
    def test_rows_that_fail_a_test_are_not_committed(self, project: Any) -> None:
        first = build(silt_run_id="monday")
        names = {"unique_orders_id", "relationships_orders_id__id__ref_raw_", "not_null_orders_name", "few"}
        assert audited(first) == names | {"accepted_values_orders_name__one__two__three"}
        assert {str(each.status) for each in first.values()} == {"success", "pass"}
        assert first["orders"].message.endswith("audits: 5 passed")
        verdicts = first["orders"].adapter_response["audits"]
        assert {each["status"] for each in verdicts} == {"pass"}
        journal = (Path(project.project_root) / "target" / "silt_commits.jsonl").read_text().splitlines()
        assert verdicts in [json.loads(line).get("audits") for line in journal]
        before = files_of(project, "orders")

        write_file(BAD, project.project_root, "seeds", "raw.csv")
        second = build(success=False, silt_run_id="tuesday")
        assert str(second["orders"].status) == "error"
        assert "not_null_orders_name" in second["orders"].message
        assert str(second["below"].status) == "skipped"
        assert files_of(project, "orders") == before
        assert project.run_sql("select count(*) from {schema}.orders", fetch="one")[0] == 2

        write_file(GOOD + "3,three\n", project.project_root, "seeds", "raw.csv")
        third = build(silt_run_id="wednesday")
        assert audited(third) == audited(first)
        assert project.run_sql("select count(*) from {schema}.orders", fetch="one")[0] == 3


class TestOfWarnings(Project):
    def test_a_warning_is_committed_unless_the_config_refuses_it(self, project: Any) -> None:
        write_file(GOOD + "4,four\n", project.project_root, "seeds", "raw.csv")
        found = build()
        name = "accepted_values_orders_name__one__two__three"
        assert (str(found[name].status), found[name].failures) == ("warn", 1)
        assert found["orders"].message.endswith("audits: 4 passed, 1 warned")
        refused = ORDERS.replace("config(", "config(audit_warnings='refuse', ")
        write_file(refused, project.project_root, "models", "orders.sql")
        assert str(build("-s", "orders", success=False)["orders"].status) == "error"


class TestOfSelection(Project):
    def test_audits_run_although_the_tests_are_not_selected(self, project: Any) -> None:
        write_file(BAD, project.project_root, "seeds", "raw.csv")
        run_dbt(["seed"])
        assert str(build("-s", "orders", success=False)["orders"].status) == "error"
        assert str(build("--exclude-resource-type", "test", success=False)["orders"].status) == "error"

    def test_a_variable_switches_audits_off(self, project: Any) -> None:
        write_file(BAD, project.project_root, "seeds", "raw.csv")
        given = ["build", "--vars", json.dumps({"silt_audit": False})]
        results, output = run_dbt_and_capture(given, expect_pass=False)
        assert "orders: not audited, because the variable `silt_audit` is false" in output
        found = {each.node.name: str(each.status) for each in results.results}
        assert (found["orders"], found["not_null_orders_name"]) == ("success", "fail")


class TestOfStoredFailures(Project):
    def test_tests_that_store_their_failures_run_again(self, project: Any) -> None:
        found = build("--store-failures")
        assert {str(each.status) for each in found.values()} == {"success", "pass"}
        assert audited(found) == set()

    def test_the_failing_rows_of_a_refused_model_are_in_the_table_of_its_test(self, project: Any) -> None:
        write_file(BAD, project.project_root, "seeds", "raw.csv")
        run_dbt(["seed"])
        stored = MODELS.replace("- not_null\n", "- not_null: {config: {store_failures: true, alias: nameless}}\n")
        write_file(stored, project.project_root, "models", "models.yml")
        [refused] = run_dbt(["run", "-s", "orders"], expect_pass=False)
        place = f"{project.test_schema}_dbt_test__audit.nameless"
        assert f"`{place.split('.')[0]}`.`nameless`" in refused.message
        rows = f"select id, name from {place}"
        assert project.run_sql(rows, fetch="all") == [(2, None)]

        warned = stored.replace("alias: nameless}", "alias: nameless, severity: warn}")
        write_file(warned, project.project_root, "models", "models.yml")
        write_file(BAD + "3,\n", project.project_root, "seeds", "raw.csv")
        run_dbt(["seed"])
        run_dbt(["run", "-s", "orders"])
        assert sorted(project.run_sql(rows, fetch="all")) == [(2, None), (3, None)]


class TestOfHooks(Project):
    def test_tests_run_again_if_hooks_change_the_rows_afterwards(self, project: Any) -> None:
        hooked = ORDERS.replace("config(", "config(post_hook='insert into {{ this }} values (1, null)', ")
        write_file(hooked, project.project_root, "models", "orders.sql")
        found = build(success=False)
        assert str(found["orders"].status) == "success"
        assert str(found["not_null_orders_name"].status) == "fail"
        assert audited(found) == set()


class TestOfQuarantine(Project):
    def test_bad_rows_go_to_a_table_of_their_own(self, project: Any) -> None:
        quarantined = ORDERS.replace("config(", "config(on_failure='quarantine', max_quarantined='50 %', ")
        write_file(quarantined, project.project_root, "models", "orders.sql")
        write_file(BAD, project.project_root, "seeds", "raw.csv")
        found = build(silt_run_id="monday")
        assert {str(each.status) for each in found.values()} == {"success", "pass"}
        assert project.run_sql("select id, name from {schema}.orders", fetch="all") == [(1, "one")]
        rows = project.run_sql(
            "select id, name, array_join(_silt_failed, ','), _silt_run_id, _silt_node from {schema}.orders__quarantine",
            fetch="all",
        )
        assert rows == [(2, None, "not_null_orders_name", "monday", "model.test.orders")]
        assert "1 row quarantined" in found["orders"].message

    def test_more_bad_rows_than_allowed_commit_nothing(self, project: Any) -> None:
        strict = ORDERS.replace("config(", "config(on_failure='quarantine', ")
        write_file(strict, project.project_root, "models", "orders.sql")
        write_file(BAD, project.project_root, "seeds", "raw.csv")
        before = files_of(project, "orders")
        found = build("--full-refresh", "-s", "raw", "orders", success=False)
        assert "1 %" in found["orders"].message
        assert files_of(project, "orders") == before


class TestOfBadConfigs(Project):
    @pytest.mark.parametrize(
        ("config", "error"),
        [
            ("audit='always'", "`audit` cannot be 'always'"),
            ("scope='rows'", "`scope` cannot be 'rows': it is state or changes"),
            ("on_failure='drop'", "`on_failure` cannot be 'drop': it is refuse, warn or quarantine"),
            ("audit_warnings='no'", "`audit_warnings` cannot be 'no'"),
            ("max_quarantined='many'", "max_quarantined cannot be 'many'"),
        ],
    )
    def test_a_value_that_means_nothing_is_refused(self, project: Any, config: str, error: str) -> None:
        write_file(ORDERS.replace("config(", f"config({config}, "), project.project_root, "models", "orders.sql")
        assert error in build("-s", "orders", success=False)["orders"].message
