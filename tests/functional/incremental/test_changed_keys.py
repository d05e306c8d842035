"""The strategy `changed_keys`: a plain SELECT whose table always equals a full build."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

ORDERS = """
{{ config(materialized='table') }}
select id, customer, size from values {{ var('orders') }} as t (id, customer, size)
"""
CUSTOMERS = "{{ config(materialized='table') }} select id, name from values {{ var('names') }} as t (id, name)"
TOTALS = """
{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='customer',
    on_schema_change='append_new_columns') }}
select customer, count(*) as orders, sum(size) as total from {{ ref('orders') }} group by customer
"""
LINES = """
{{ config(materialized='incremental', incremental_strategy='changed_keys', group_key=['customer'],
    key_columns={'customers': 'id', 'orders': ['customer']}) }}
select o.customer, c.name, o.size from {{ ref('orders') }} o join {{ ref('customers') }} c on c.id = o.customer
"""
CONTRACT = """
version: 2
models:
  - name: totals
    config: {contract: {enforced: true}}
    columns:
      - {name: customer, data_type: int}
      - {name: orders, data_type: bigint}
      - {name: total, data_type: bigint}
"""
NAMES = "(1, ''ann''), (2, ''bob''), (3, ''cid'')"
FIRST, SECOND = "(1, 1, 5), (2, 1, 6), (3, 2, 7)", "(1, 1, 5), (2, 2, 6), (4, 3, 8)"


def build(project: Any, orders: str, *arguments: str, names: str = NAMES, run_id: str = "") -> dict[str, Any]:
    """Builds all models, and returns the reason of each incremental model."""
    more = f", silt_run_id: {run_id}" if run_id else ""
    results = run_dbt(["run", "--vars", f"{{orders: '{orders}', names: '{names}'{more}}}", *arguments])
    return {each.node.name: each.adapter_response.get("reason") for each in results}


def rows(project: Any, table: str) -> list[tuple[Any, ...]]:
    return list(map(tuple, project.run_sql(f"select * from {{schema}}.{table} order by all", fetch="all")))


class TestReuse:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "totals.sql": TOTALS.replace("unique_key=", "reuse='unchanged', unique_key=")}

    def test_a_model_whose_inputs_are_unchanged_is_reused(self, project: Any) -> None:
        def run(orders: str) -> str:
            build(project, orders)
            (result,) = run_dbt(["run", "--vars", f"orders: '{orders}'", "--select", "totals"])
            return str(result.adapter_response["_message"])

        for orders, expected in ((FIRST, [(1, 2, 11), (2, 1, 7)]), (SECOND, [(1, 1, 5), (2, 1, 6), (3, 1, 8)])):
            assert "reused: unchanged since" in run(orders)
            assert rows(project, "totals") == expected
        project.run_sql("delete from {schema}.totals where customer = 1")
        assert "reused: unchanged since" in run(SECOND)
        assert rows(project, "totals") == [(1, 1, 5), (2, 1, 6), (3, 1, 8)]


class TestChangedKeys:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "customers.sql": CUSTOMERS,
            "totals.sql": TOTALS,
            "lines.sql": LINES,
            "schema.yml": CONTRACT,
        }

    def test_the_tables_follow_their_inputs(self, project: Any) -> None:
        assert build(project, FIRST) == dict.fromkeys(("orders", "customers", "totals", "lines"))
        assert rows(project, "totals") == [(1, 2, 11), (2, 1, 7)]
        assert build(project, SECOND) == dict.fromkeys(("orders", "customers", "totals", "lines"))
        assert rows(project, "totals") == [(1, 1, 5), (2, 1, 6), (3, 1, 8)]
        assert rows(project, "lines") == [(1, "ann", 5), (2, "bob", 6), (3, "cid", 8)]
        named = "(1, ''anna''), (2, ''bob''), (3, ''cid'')"
        assert build(project, SECOND, "--exclude", "orders", names=named)["lines"] is None
        assert rows(project, "lines") == [(1, "anna", 5), (2, "bob", 6), (3, "cid", 8)]

    def test_a_rollback_leads_to_a_full_build(self, project: Any) -> None:
        build(project, FIRST, "--full-refresh")
        build(project, SECOND, run_id="wrong")
        run_dbt(["run-operation", "silt_rollback", "--args", "{run_id: wrong}"])
        assert "RESTORE" in build(project, SECOND, "--exclude", "orders")["totals"]
        assert rows(project, "totals") == [(1, 2, 11), (2, 1, 7)]
        assert build(project, SECOND)["totals"] is None
        assert rows(project, "totals") == [(1, 1, 5), (2, 1, 6), (3, 1, 8)]

    def test_empty_changes_no_row(self, project: Any) -> None:
        build(project, FIRST, "--full-refresh")
        build(project, FIRST, "--empty", "--select", "totals", "lines")
        assert rows(project, "totals") == [(1, 2, 11), (2, 1, 7)]
        build(project, SECOND)
        assert rows(project, "totals") == [(1, 1, 5), (2, 1, 6), (3, 1, 8)]


KEYED = "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='customer') }} "
MODELS = {
    "limited": f"{KEYED} select customer, size from {{{{ ref('orders') }}}} limit 2",
    "missing": f"{KEYED} select customer as buyer from {{{{ ref('orders') }}}}",
    "filtered": KEYED + "select customer from {{ ref('orders') }} {% if is_incremental() %} where 1 = 0 {% endif %}",
    "allowed": KEYED.replace("unique_key", "on_unsupported_query='full_refresh', unique_key")
    + "select customer, size from {{ ref('orders') }} limit 2",
    "two_keys": KEYED.replace("unique_key", "group_key='size', unique_key")
    + "select customer from {{ ref('orders') }}",
    "other_strategy": "{{ config(materialized='incremental', unique_key='a', group_key='a') }} select 1 as a",
    "wrong_choice": KEYED.replace("unique_key", "on_unsupported_query='ignore', unique_key") + "select 1 as customer",
    "wrong_input": KEYED.replace("unique_key", "key_columns={'sales': 'customer'}, unique_key")
    + "select customer from {{ ref('orders') }}",
    "of_files": KEYED + "select customer from {{ source('raw', 'landed') }}",
}


FILES = "sources: [{name: raw, tables: [{name: landed, meta: {external_location: '@folder/*.csv'}}]}]"


class TestRefused:
    @pytest.fixture(scope="class")
    def models(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("landed")
        (folder / "a.csv").write_text("customer\n1\n")
        files = {"sources.yml": FILES.replace("@folder", str(folder))}
        return {"orders.sql": ORDERS, **files, **{f"{name}.sql": text for name, text in MODELS.items()}}

    def test_models_that_cannot_be_kept_by_key_are_refused_by_name(self, project: Any) -> None:
        results, _ = run_dbt_and_capture(["run", "--vars", f"{{orders: '{FIRST}'}}"], expect_pass=False)
        messages = {each.node.name: str(each.message) for each in results}
        assert "the query uses LIMIT" in messages["limited"]
        assert "`unique_key` names customer, which is not one of the columns buyer" in messages["missing"]
        assert "plain SELECT" in messages["filtered"]
        assert "needs either `unique_key`" in messages["two_keys"]
        assert "`group_key` is for `incremental_strategy: changed_keys`" in messages["other_strategy"]
        assert "`on_unsupported_query` must be one of" in messages["wrong_choice"]
        assert "does not read a table `sales`" in messages["wrong_input"]
        assert "of single keys cannot be computed: the query" in messages["of_files"]
        assert results[[each.node.name for each in results].index("allowed")].status == "success"
        allowed = run_dbt(["run", "--select", "allowed", "--vars", f"{{orders: '{FIRST}'}}"])
        assert "all rows replaced: the query uses LIMIT" in allowed[0].message
