"""A query that no longer has a column of its table, or has it with another type: the error names what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

STRATEGIES = {
    "as_append": "incremental_strategy='append'",
    "as_merge": "incremental_strategy='merge', unique_key='id'",
    "as_delete_insert": "incremental_strategy='delete+insert', unique_key='id'",
    "as_overwrite": "incremental_strategy='insert_overwrite', partition_by='day'",
    "as_replace_where": "incremental_strategy='replace_where', incremental_predicates=[\"day = '2026-01-01'\"]",
    "as_batches": "incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2026-01-01'",
}
COLUMNS = (
    "{{% if var('key', 'a number') == 'a text' %}}'a1'{{% else %}}1L{{% endif %}} as id, '2026-01-01' as day{name}"
)
AT = ", timestamp'2026-01-01 12:00:00' as at"
WITH_NAME, WITHOUT_NAME = COLUMNS.format(name=", 'Ann' as name"), COLUMNS.format(name="")
SNAPSHOTS = """
snapshots:
  - name: as_snapshot
    relation: ref('source')
    config: {unique_key: id, strategy: check, check_cols: [day]}
"""
ONE_DAY = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02"]


def write_models(folder: Path, columns: str) -> None:
    for name, config in STRATEGIES.items():
        model = f"{{{{ config(materialized='incremental', {config}) }}}}\nselect {columns}{AT}\n"
        (folder / f"{name}.sql").write_text(model)
    (folder / "source.sql").write_text(f"select {columns}\n")


class TestChangedColumns:
    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"snapshots.yml": SNAPSHOTS}

    @pytest.fixture(autouse=True, scope="class")
    def built(self, project: Any) -> None:
        write_models(Path(project.project_root) / "models", WITH_NAME)
        run_dbt(["build", *ONE_DAY])

    def failures(self, project: Any, *arguments: str) -> dict[str, str]:
        _, said = run_dbt_and_capture(["build", *ONE_DAY, *arguments], expect_pass=False)
        for internal in ("__silt_action", "DBT_INTERNAL_SOURCE", "SiltColumn("):
            assert internal not in said
        names = [*STRATEGIES, "as_snapshot"]
        found = {
            each: [line for line in said.splitlines() if f".{each}: " in line and "[SILT_" in line] for each in names
        }
        return {name: lines[0] for name, lines in found.items() if lines}

    def test_a_column_that_is_gone_is_named_with_the_ways_out_by_every_strategy(self, project: Any) -> None:
        write_models(Path(project.project_root) / "models", WITHOUT_NAME)
        failures = self.failures(project, "--exclude", "as_snapshot")
        assert set(failures) == set(STRATEGIES)
        for said in failures.values():
            assert "the query no longer returns the column `name` (string), which the table has" in said
            assert "`on_schema_change`" in said
            assert "`--full-refresh`" in said

    def test_a_key_of_another_type_is_named_with_the_ways_out_by_every_strategy(self, project: Any) -> None:
        write_models(Path(project.project_root) / "models", WITH_NAME)
        failures = self.failures(project, "--vars", "key: a text")
        assert set(failures) == {*STRATEGIES, "as_snapshot"}
        for name in ("as_merge", "as_delete_insert"):
            assert "[SILT_VALUE_NOT_CASTABLE]" in failures[name]
            assert (
                "`id` of the `unique_key` as string, but the table has it as bigint: the value 'a1'" in failures[name]
            )
        assert "to start a new history, set an `alias`" in failures.pop("as_snapshot")
        for said in failures.values():
            assert "`sync_all_columns` changes the column's type" in said
            assert "`--full-refresh`" in said

    def test_on_schema_change_fail_names_table_column_and_type(self, project: Any) -> None:
        model = "{{ config(materialized='incremental', on_schema_change='fail') }} select 1L as id"
        (Path(project.project_root) / "models" / "as_append.sql").write_text(model)
        _, said = run_dbt_and_capture(["run", "--select", "as_append"], expect_pass=False)
        assert f"{project.test_schema}.as_append" in said
        assert "Target columns not in source: `day` string, `name` string, `at` timestamp" in said
        assert "SiltColumn(" not in said

    def test_a_new_column_that_is_ignored_is_named_once_by_every_strategy(self, project: Any) -> None:
        write_models(Path(project.project_root) / "models", f"{WITH_NAME}, 7 as extra")
        _, said = run_dbt_and_capture(["build", *ONE_DAY, "--exclude", "as_snapshot"])
        for name in STRATEGIES:
            assert said.count(f"{name}: the table lacks `extra` of the query") == 1, said
        write_models(Path(project.project_root) / "models", WITH_NAME)
        _, said = run_dbt_and_capture(["build", *ONE_DAY, "--exclude", "as_snapshot"])
        assert "the table lacks" not in said
