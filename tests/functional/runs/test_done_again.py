"""A data test fails at night, a person corrects the source or the code in the morning, and repeats the command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

NIGHT = ("--vars", "silt_run_id: night")

MODELS = {
    "stg.sql": "{{ config(materialized='table') }} select id, amount from {{ source('raw', 'raw_orders') }}",
    "orders.sql": "{{ config(materialized='incremental', unique_key='id') }} select id, amount from {{ ref('stg') }}",
    "totals.sql": "{{ config(materialized='table') }} select sum(amount) as total from {{ ref('orders') }}",
    "doubled.sql": (
        "{{ config(materialized='table', post_hook='update {{ this }} set amount = amount * 2') }} "
        "select id, amount from {{ ref('stg') }}"
    ),
    "appended.sql": (
        "{{ config(materialized='incremental', incremental_strategy='append') }} "
        "select id, amount from {{ ref('stg') }}"
    ),
    "other.sql": "{{ config(materialized='table') }} select id from {{ source('raw', 'raw_other') }}",
    "schema.yml": """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables: [{name: raw_orders}, {name: raw_other}]
models:
  - name: orders
    columns: [{name: amount, data_tests: [not_null]}]
""",
}


def version(project: Any, name: str) -> int:
    table = RelationName(project.database, project.test_schema, name)
    return int(project.adapter.connections.catalog.table(table).snapshot().version)


def rows(project: Any, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in project.run_sql(f"select * from {project.test_schema}.{name} order by all", "all")]


def amounts(project: Any, name: str) -> list[Any]:
    return [row[1] for row in rows(project, name)]


class TestCorrectedSource:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class", autouse=True)
    def night(self, project: Any) -> str:
        """The output of the night's command, in which the test of `orders` fails."""
        project.run_sql(
            f"create table {project.test_schema}.raw_orders as select id, if(id = 2, null, 10) as amount from range(3)"
        )
        project.run_sql(f"create table {project.test_schema}.raw_other as select id from range(3)")
        _, output = run_dbt_and_capture(["build", *NIGHT], expect_pass=False)
        return str(output)

    def test_a_rerun_without_a_correction_repeats_nothing_and_names_the_next_step(self, project: Any) -> None:
        before = {name: version(project, name) for name in ("stg", "orders", "doubled", "appended")}
        _, output = run_dbt_and_capture(["build", *NIGHT], expect_pass=False)
        assert {name: version(project, name) for name in before} == before
        assert "Done again" not in output
        assert "A test failed on orders, which run night had built before this command" in output
        assert "silt_run_id: night" in output.rpartition("A test failed on")[2]

    def test_after_a_correction_only_the_work_that_led_to_the_failure_is_repeated(self, project: Any) -> None:
        project.run_sql(f"update {project.test_schema}.raw_orders set amount = 5 where id = 2")
        project.run_sql(f"insert into {project.test_schema}.raw_other values (4)")
        _, output = run_dbt_and_capture(["build", *NIGHT])
        schema = f"{project.database}.{project.test_schema}"
        assert f"Done again: stg: {schema}.raw_orders changed (v0 -> v1)" in output
        assert f"Done again: orders: {schema}.stg changed (v0 -> v1)" in output
        assert amounts(project, "orders") == [10, 10, 5]
        assert rows(project, "totals") == [(25,)]
        assert len(rows(project, "other")) == 3, "it did not lead to the failure"

    def test_nodes_that_read_a_repeated_table_are_repeated_with_the_hooks_on_their_own_tables(
        self, project: Any
    ) -> None:
        assert amounts(project, "doubled") == [20, 20, 10]

    def test_an_append_is_skipped_and_the_command_to_type_is_shown(self, project: Any) -> None:
        assert amounts(project, "appended") == [10, 10, None]
        project.run_sql(f"update {project.test_schema}.raw_orders set amount = null where id = 1")
        run_dbt(["test", *NIGHT])
        run_dbt(["build", "--full-refresh", *NIGHT], expect_pass=False)
        project.run_sql(f"update {project.test_schema}.raw_orders set amount = 7 where id = 1")
        _, output = run_dbt_and_capture(["build", *NIGHT])
        assert amounts(project, "orders") == [10, 7, 5]
        assert amounts(project, "doubled") == [20, 14, 10]
        assert "may apply rows twice or miss rows" in output
        assert "`silt rollback night`" in output

    def test_a_further_rerun_changes_nothing(self, project: Any) -> None:
        names = ("stg", "orders", "totals", "doubled", "appended", "other")
        before = {name: version(project, name) for name in names}
        _, output = run_dbt_and_capture(["build", *NIGHT])
        assert {name: version(project, name) for name in names} == before
        assert "Done again" not in output


class TestCorrectedSourceOfWritesThatCannotBeRepeated:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        rest = "select id, amount from {{ source('raw', 'raw_orders') }}"
        merge = (
            "{{ config(materialized='incremental', unique_key='id', incremental_predicates=['PREDICATE']) }} " + rest
        )
        replace = merge.replace("unique_key", "incremental_strategy='delete+insert', unique_key")
        last = "{% if is_incremental() %} where id > (select coalesce(max(id), -1) from {{ this }}) {% endif %}"
        return {
            "merged.sql": merge.replace("PREDICATE", "DBT_INTERNAL_DEST.amount > 9"),
            "replaced.sql": replace.replace("PREDICATE", "amount > 9"),
            "newest.sql": "{{ config(materialized='incremental', unique_key='id') }} " + rest + last,
            "schema.yml": MODELS["schema.yml"].replace("- name: orders", "- name: newest")
            + "  - name: merged\n    columns: [{name: amount, data_tests: [not_null]}]\n"
            + "  - name: replaced\n    columns: [{name: amount, data_tests: [not_null]}]\n",
        }

    def test_rows_that_the_key_does_not_find_are_not_inserted_twice(self, project: Any) -> None:
        project.run_sql(
            f"create table {project.test_schema}.raw_orders as select id, if(id = 2, null, 5) as amount from range(3)"
        )
        run_dbt(["build", *NIGHT], expect_pass=False)
        project.run_sql(f"update {project.test_schema}.raw_orders set amount = 7 where id = 2")
        _, output = run_dbt_and_capture(["build", *NIGHT], expect_pass=False)
        assert {name: amounts(project, name) for name in ("merged", "replaced", "newest")} == {
            "merged": [5, 5, None],
            "replaced": [5, 5, None],
            "newest": [5, 5, None],
        }
        assert output.count("may apply rows twice or miss rows") == 3
        last = output.strip().rpartition("\n")[2]
        assert "merged, newest, replaced" in last and "`silt rollback night`" in last, last

    def test_the_command_that_the_warning_names_corrects_them(self, project: Any) -> None:
        folders = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        assert main(["rollback", "night", "--drop-created", *folders]) == 0
        project.run_sql(f"update {project.test_schema}.raw_orders set amount = 7 where id = 2")
        run_dbt(["build", *NIGHT])
        assert [amounts(project, name) for name in ("merged", "replaced", "newest")] == [[5, 5, 7]] * 3


class TestCorrectedCode:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        tests = "models:\n  - name: prices\n    columns: [{name: price, data_tests: [not_null]}]\n"
        call = "{{ config(materialized='table') }} select {{ price() }} as price, name from {{ ref('names') }}"
        return {"prices.sql": call, "schema.yml": tests}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"names.csv": "name\na\n"}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"price.sql": "{% macro price() %}cast(null as int){% endmacro %}"}

    def test_a_changed_macro_or_seed_is_a_correction_also_after_a_failure_of_dbt_test(self, project: Any) -> None:
        run_dbt(["seed", *NIGHT])
        run_dbt(["run", *NIGHT])
        _, output = run_dbt_and_capture(["test", *NIGHT], expect_pass=False)
        assert re.search("A test failed on prices, which run night .* then type `.*dbt run ", output)
        write_file("{% macro price() %}3{% endmacro %}", project.project_root, "macros", "price.sql")
        write_file("name\nb\n", project.project_root, "seeds", "names.csv")
        _, output = run_dbt_and_capture(["build", *NIGHT])
        assert rows(project, "prices") == [(3, "b")]
        assert "Done again: names: its code or configs changed" in output
        assert "Done again: prices: its code or configs changed" in output


class TestCorrectedFile:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        tests = "models:\n  - name: loaded\n    columns: [{name: id, data_tests: [not_null]}]\n"
        files = "read_files('{{ var(\"folder\") }}', format => 'csv', header => true, schema => 'id int, x int')"
        return {"loaded.sql": "{{ config(materialized='table') }} select * from " + files, "schema.yml": tests}

    def test_changed_files_are_a_correction(self, project: Any, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("id,x\n,1\n")
        command = ["build", "--vars", f"{{silt_run_id: files, folder: '{tmp_path}'}}"]
        run_dbt(command, expect_pass=False)
        (tmp_path / "a.csv").write_text("id,x\n12,1\n")
        _, output = run_dbt_and_capture(command)
        assert f"the files of {tmp_path} changed" in output
        assert [row[0] for row in rows(project, "loaded")] == ["12"] or [row[0] for row in rows(project, "loaded")] == [
            12
        ]
