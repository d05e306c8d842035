"""Enforced keys of contracts: by the constraint, by the config and by the profile, for new and existing tables."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import DbtRuntimeError

CONTRACTS = """
models:
  - name: customers
    config: {materialized: table, contract: {enforced: true}}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: primary_key, enforced: true}]}
      - {name: name, data_type: string, constraints: [{type: unique}]}
  - name: orders
    config:
      {materialized: incremental, incremental_strategy: append, on_schema_change: fail, contract: {enforced: true}}
    constraints: [{type: primary_key, columns: [id], name: orders_pk}]
    columns: [{name: id, data_type: bigint}, {name: note, data_type: string}]
  - name: scored
    config: {materialized: table, contract: {enforced: true}, enforced_keys: true}
    constraints: [{type: unique, columns: [id]}, {type: unique, columns: [note], enforced: false}]
    columns: [{name: id, data_type: bigint}, {name: note, data_type: string}]
  - name: sampled
    config: {materialized: table, contract: {enforced: true}}
    constraints: [{type: unique, columns: [id], enforced: true}]
    columns: [{name: id, data_type: bigint}]
"""
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="append")
    return session.sql(f"select {dbt.config.get('id', 1)}L as id")
"""
ORDERS = "select {{ var('id', 1) }}L as id, 'x' as note"


def notes(project: Any, table: str) -> dict[str, str]:
    relation = f"{project.database}.{project.test_schema}.{table}"
    rows = project.run_sql(f"describe table extended {relation}", fetch="all")
    return {name: note for name, text, note in rows if text.startswith(("PRIMARY", "UNIQUE"))}


class TestEnforcedKeys:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "models.yml": CONTRACTS,
            "customers.sql": "select {{ var('first', 1) }}L as id, 'ada' as name union all select 2L, 'ada'",
            "orders.sql": ORDERS,
            "scored.sql": "select 1L as id, 'x' as note union all select 2L, 'x'",
            "streamed.py": PYTHON,
            "people.sql": "{{ config(event_time='at') }} select * from values (1L, timestamp'2026-01-01'), "
            "(1L, timestamp'2026-01-02'), (2L, timestamp'2026-01-02') as t(id, at)",
            "sampled.sql": "select id from {{ ref('people') }}",
        }

    def test_a_model_that_breaks_its_key_fails_and_its_table_stays_as_it_was(self, project: Any) -> None:
        run_dbt(["run", "--exclude", "sampled"])
        assert notes(project, "customers") == {"primary_key_1": "enforced", "unique_1": "not enforced"}
        assert notes(project, "scored") == {"unique_1": "enforced", "unique_2": "not enforced"}
        result = run_dbt(["run", "--select", "customers", "--vars", "{first: 2}"], expect_pass=False)
        assert "1 row has the same key as another row under the enforced key `primary_key_1`" in result[0].message
        relation = f"{project.database}.{project.test_schema}.customers"
        assert project.run_sql(f"select count(distinct id) from {relation}", fetch="one") == (2,)

    def test_the_table_of_an_incremental_model_gets_and_loses_the_key_of_its_model(self, project: Any) -> None:
        run_dbt(["run", "--select", "orders", "--full-refresh"])
        assert notes(project, "orders") == {"orders_pk": "not enforced"}
        enforced = CONTRACTS.replace("name: orders_pk}", "name: orders_pk, enforced: true}")
        write_file(enforced, "models", "models.yml")
        result = run_dbt(["run", "--select", "orders"], expect_pass=False)
        assert "the enforced key `orders_pk`" in result[0].message
        run_dbt(["run", "--select", "orders", "--vars", "{id: 2}"])
        assert notes(project, "orders") == {"orders_pk": "enforced"}
        write_file(CONTRACTS, "models", "models.yml")
        run_dbt(["run", "--select", "orders", "--vars", "{id: 2}"])
        assert notes(project, "orders") == {"orders_pk": "not enforced"}

    def test_a_key_that_is_enforced_is_not_warned_about(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run", "--select", "scored", "--no-partial-parse"])
        assert log.count("not enforced by silt") == 1  # of `note`
        write_file(CONTRACTS.replace("{type: unique, columns: [note], enforced: false}", ""), "models", "models.yml")
        _, log = run_dbt_and_capture(["run", "--select", "scored"])
        assert "not enforced by silt" not in log

    def test_a_python_model_is_refused_too(self, project: Any) -> None:
        run_dbt(["run", "--select", "streamed", "--full-refresh"])
        relation = f"{project.database}.{project.test_schema}.streamed"
        project.run_sql(f"alter table {relation} add constraint pk primary key (id) enforced")
        result = run_dbt(["run", "--select", "streamed"], expect_pass=False)
        assert "the enforced key `pk`" in result[0].message
        assert project.run_sql(f"select count(*) from {relation}", fetch="one") == (1,)

    def test_a_sample_is_compared_alone(self, project: Any) -> None:
        window = "{start: '2026-01-02', end: '2026-01-03'}"
        run_dbt(["run", "--select", "people sampled", "--sample", window])
        assert notes(project, "sampled") == {"unique_1": "enforced"}
        result = run_dbt(["run", "--select", "sampled"], expect_pass=False)
        assert "1 row has the same key as another row" in result[0].message

    def test_a_model_that_becomes_a_view_has_no_key_and_has_it_again_as_a_table(self, project: Any) -> None:
        run_dbt(["run", "--select", "customers"])
        write_file(CONTRACTS.replace("{materialized: table, ", "{materialized: view, ", 1), "models", "models.yml")
        run_dbt(["run", "--select", "customers", "--vars", "{first: 2}"])
        relation = f"{project.database}.{project.test_schema}.customers"
        assert project.run_sql(f"select count(*) from {relation}", fetch="one") == (2,)
        write_file(CONTRACTS, "models", "models.yml")
        result = run_dbt(["run", "--select", "customers", "--vars", "{first: 2}"], expect_pass=False)
        assert "the same key as another row" in result[0].message
        assert project.run_sql(f"select count(*) from {relation}", fetch="one") == (2,)
        run_dbt(["run", "--select", "customers"])
        assert notes(project, "customers")["primary_key_1"] == "enforced"

    def test_runs_without_rows_keep_the_key(self, project: Any) -> None:
        run_dbt(["run", "--select", "customers", "--empty"])
        assert notes(project, "customers")["primary_key_1"] == "enforced"


REFERENCES = """
models:
  - name: customers
    config: {materialized: table, contract: {enforced: true}}
    constraints: [{type: primary_key, columns: [id], enforced: true}]
    columns: [{name: id, data_type: bigint}]
  - name: orders
    config:
      {materialized: incremental, incremental_strategy: append, on_schema_change: fail, contract: {enforced: true}}
    constraints: [{type: foreign_key, columns: [customer], to: ref('customers'), to_columns: [id], enforced: true}]
    columns: [{name: customer, data_type: bigint}]
"""


class TestEnforcedForeignKeys:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "models.yml": REFERENCES,
            "customers.sql": "select explode(sequence({{ var('least', 1) }}L, {{ var('most', 2) }}L)) as id",
            "orders.sql": "select {{ var('customer', 1) }}L as customer",
        }

    def state(self, project: Any) -> list[tuple[Any, ...]]:
        schema = f"{project.database}.{project.test_schema}"
        text = f"select 'o', customer from {schema}.orders union all select 'c', id from {schema}.customers"
        return sorted(tuple(row) for row in project.run_sql(text, fetch="all"))

    def test_a_model_with_an_orphan_fails_and_so_does_a_parent_that_loses_a_key(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh"])
        run_dbt(["run", "--vars", "{customer: 2, most: 3}"])
        before = self.state(project)
        result = run_dbt(["run", "--select", "orders", "--vars", "{customer: 9}"], expect_pass=False)
        assert "under the enforced foreign key `foreign_key_1`" in result[0].message
        result = run_dbt(["run", "--select", "customers", "--vars", "{least: 2, most: 3}"], expect_pass=False)
        assert "would no longer have, under the enforced foreign key `foreign_key_1`" in result[0].message
        assert self.state(project) == before

    def test_a_run_that_is_published_after_its_tests_is_checked_when_it_is_published(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh"])
        held = ["--vars", "{silt_publish: after_tests, least: 2, most: 4, customer: 4}"]
        result = run_dbt(["run", "--full-refresh", *held])
        assert len(result) == 2
        assert self.state(project) == [("c", 2), ("c", 3), ("c", 4), ("o", 4)]
        before = self.state(project)
        orphan = ["--vars", "{silt_publish: after_tests, least: 5, most: 6}"]
        with pytest.raises(DbtRuntimeError, match="would no longer have, under the enforced foreign key"):
            run_dbt(["run", "--select", "customers", *orphan])
        assert self.state(project) == before

    def test_a_constraint_that_says_so_is_added_to_an_existing_table(self, project: Any) -> None:
        text = REFERENCES.replace("to_columns: [id], enforced: true", "to_columns: [id]")
        write_file(text, "models", "models.yml")
        run_dbt(["run", "--full-refresh", "--vars", "{most: 4}"])
        run_dbt(["run", "--select", "orders", "--vars", "{customer: 9}"])
        write_file(REFERENCES, "models", "models.yml")
        result = run_dbt(["run", "--select", "orders"], expect_pass=False)
        assert "1 row has a key that" in result[0].message
        run_dbt(["run", "--vars", "{most: 9}"])
        result = run_dbt(["run", "--select", "customers"], expect_pass=False)
        assert "would no longer have" in result[0].message
