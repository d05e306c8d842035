"""The records of a run, and the work that a rerun of it skips."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo

SOURCE = "select id, name, day from {{ ref('rows') }}"

MODELS = {
    "as_table.sql": "{{ config(materialized='table') }} " + SOURCE,
    "appended.sql": "{{ config(materialized='incremental', incremental_strategy='append') }} " + SOURCE,
    "merged.sql": "{{ config(materialized='incremental', unique_key='id') }} " + SOURCE,
    "replaced.sql": (
        "{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key=['id', 'name']) }} "
        + SOURCE
    ),
    "overwritten.sql": (
        "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day') }} "
        + SOURCE
    ),
}
SNAPSHOT = """
{% snapshot history %}
{{ config(target_schema=schema, unique_key='id', strategy='check', check_cols=['name']) }}
select id, name from {{ ref('rows') }}
{% endsnapshot %}
"""
ROWS = "id,name,day\n1,one,2026-03-01\n2,two,2026-03-01\n3,three,2026-03-02\n"
TABLES = ("rows", "as_table", "appended", "merged", "replaced", "overwritten", "history")


def table(project: Any, name: str) -> DeltaLog:
    """Returns the log of a table of the project."""
    return project.adapter.connections.catalog.table(RelationName(project.database, project.test_schema, name))


def versions(project: Any) -> dict[str, int]:
    return {name: table(project, name).snapshot().version for name in TABLES}


def responses(results: Any) -> dict[str, Mapping[str, Any]]:
    return {result.node.name: result.adapter_response for result in results}


def journal(project: Any) -> list[dict[str, Any]]:
    lines = (Path(project.project_root) / "target" / "silt_commits.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


class TestRerun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"rows.csv": ROWS}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    def test_the_same_run_id_applies_nothing_twice_and_another_run_id_does(self, project: Any) -> None:
        first = responses(run_dbt(["build", "--vars", "silt_run_id: R1"]))
        assert versions(project) == dict.fromkeys(TABLES, 0), "each node is one commit"
        self._check_responses(project, first)

        again = responses(run_dbt(["build", "--vars", "silt_run_id: R1"]))
        assert versions(project) == dict.fromkeys(TABLES, 0)
        assert {name: again[name]["skipped"] for name in TABLES} == dict.fromkeys(TABLES, True)
        assert {name: again[name]["table_version"] for name in TABLES} == dict.fromkeys(TABLES, 0)

        run_dbt(["build", "--vars", "silt_run_id: R2"])
        assert versions(project) == dict.fromkeys(TABLES, 1), "each node is one commit"
        counts = {name: self._count(project, name) for name in TABLES}
        assert counts == {**dict.fromkeys(TABLES, 3), "appended": 6}

    def test_a_full_refresh_under_the_same_id_is_done_once(self, project: Any) -> None:
        refresh = ["run", "--full-refresh", "--select", "appended", "--vars", "silt_run_id: R2"]
        run_dbt(refresh)
        assert self._count(project, "appended") == 3
        version = table(project, "appended").snapshot().version
        assert responses(run_dbt(refresh))["appended"]["skipped"]
        _, output = run_dbt_and_capture(["run", "--select", "appended", "--vars", "silt_run_id: R2"])
        assert table(project, "appended").snapshot().version == version
        assert "that run was a full refresh; to build it again, use a new run id" in output

    def test_a_changed_node_is_skipped_with_a_warning(self, project: Any) -> None:
        write_file(MODELS["merged.sql"] + " where id > 1", project.project_root, "models", "merged.sql")
        write_file(ROWS + "4,four,2026-03-04\n", project.project_root, "seeds", "rows.csv")
        _, output = run_dbt_and_capture(["build", "--select", "rows", "merged", "--vars", "silt_run_id: R2"])
        assert output.count("the node was changed since; to build it again, use a new run id") == 2

    def _check_responses(self, project: Any, found: Mapping[str, Mapping[str, Any]]) -> None:
        response = found["merged"]
        assert response["run_id"] == "R1"
        assert response["app_id"] == "silt/test/model.test.merged/R1/main"
        assert (response["txn_version"], response["table_version"], response["skipped"]) == (1, 0, False)
        assert (response["rows_inserted"], response["files_added"] > 0, response["attempts"]) == (3, True, 1)
        [line] = [line for line in journal(project) if line["node_id"] == "model.test.merged"]
        assert (line["run_id"], line["table_version"], line["rows_inserted"]) == ("R1", 0, 3)
        [commit] = table(project, "merged").commits()
        [info] = [action for action in commit.actions if isinstance(action, CommitInfo)]
        assert info.extra["dbt"]["nodeId"] == "model.test.merged"
        assert info.extra["dbt"]["appId"] == response["app_id"]
        assert info.extra["dbt"]["invocationId"] == line["invocation_id"]

    def _count(self, project: Any, name: str) -> int:
        return project.run_sql(f"select count(*) from {project.database}.{project.test_schema}.{name}", fetch="one")[0]


class TestFailingPostHook:
    """dbt's own behaviour in this case leaves 4, 8 and 12 rows."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hooks = "post_hook=['insert into {{ target.schema }}.audit values (1)', 'select raise_error(\"boom\")']"
        appended = "{{ config(materialized='incremental', incremental_strategy='append', " + hooks + ") }} "
        return {"appended.sql": appended + "select id from range(4)"}

    def test_a_run_and_two_retries_leave_four_rows_each_time_and_the_error_reports_them(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.audit (n int)")
        _, output = run_dbt_and_capture(["run"], expect_pass=False)
        rows = [self._rows(project)]
        place = f"silt.{project.test_schema}.appended@v0"
        assert "boom" in output
        assert f"already committed as {place}, silt.{project.test_schema}.audit@v1" in output
        assert "a rerun with this run id skips that and does the rest" in output
        for _ in range(2):
            run_dbt(["retry"], expect_pass=False)
            rows.append(self._rows(project))
        assert rows == [(4, 1), (4, 1), (4, 1)]

    def _rows(self, project: Any) -> tuple[int, int]:
        """Returns the number of rows of the model, and of the table that its hook writes to."""
        counted = (f"(select count(*) from {project.test_schema}.{name})" for name in ("appended", "audit"))
        return project.run_sql(f"select {', '.join(counted)}", fetch="one")

    def test_the_runs_are_registered_under_one_id_and_marked_when_they_end(self, project: Any) -> None:
        registry = json.loads((Path(project.project_root) / "target" / "silt_runs.json").read_text())["runs"]
        assert len(registry) == 3
        assert len({run["run_id"] for run in registry}) == 1
        assert all(run["finished"] for run in registry)


class TestHooks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        pre, post = (f"\"insert into {{{{ target.schema }}}}.audit values ('{what}')\"" for what in ("pre", "post"))
        hooks = f"pre_hook=[{pre}, {pre}], post_hook={post}"
        return {"one.sql": "{{ config(materialized='table', " + hooks + ") }} select 1 as id"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "on-run-start": "insert into {{ target.schema }}.audit values ('start')",
            "on-run-end": ["insert into {{ target.schema }}.audit values ('end')"],
        }

    def test_each_statement_of_a_hook_is_applied_once_in_a_run(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.audit (what string)")
        for run_id, times in (("R1", 1), ("R1", 1), ("R2", 2)):
            run_dbt(["run", "--vars", f"silt_run_id: {run_id}"])
            found = project.run_sql(
                f"select what, count(*) from {project.test_schema}.audit group by what", fetch="all"
            )
            assert dict(found) == {"pre": 2 * times, "post": times, "start": times, "end": times}


class TestStoredFailures:
    """Tests are not units of work: they check the current state."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "one.sql": "{{ config(materialized='table') }} select 1 as id",
            "schema.yml": """
version: 2
models:
  - name: one
    columns: [{name: id, data_tests: [{accepted_values: {arguments: {values: [2]}, config: {store_failures: true}}}]}]
""",
        }

    def test_failures_are_stored_again_by_a_rerun(self, project: Any) -> None:
        for version in range(2):
            run_dbt(["build", "--vars", "silt_run_id: R1"], expect_pass=False)
            name = "accepted_values_one_id__2"
            log = project.adapter.connections.catalog.table(
                RelationName(project.database, f"{project.test_schema}_dbt_test__audit", name)
            )
            assert log.snapshot().version == version
            assert not log.snapshot().transactions
