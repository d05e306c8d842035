"""Records of commits that dbt loses: of nodes that fail, of batches and of hooks, with the versions that each read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file
from deltalake import DeltaTable

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from tests.cloud.servers import ObjectServer

R1 = ["--vars", '{"silt_run_id": "R1"}']
RERUN = """(`dbt retry`, or the same command with --vars '{"silt_run_id": "R1"}')"""

EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp'2026-03-01 00:00:00Z' + make_interval(0, 0, 0, id) as at from range(3)
"""
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
          begin='2026-03-01', CONFIG) }}
select id, at from {{ ref('events') }}
"""
WINDOW = ["--event-time-start", "2026-03-01", "--event-time-end", "2026-03-04"]

PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("seen").select("id")
"""

SNAPSHOT = """
{% snapshot kept %}
{{ config(target_schema=schema, unique_key='id', strategy='check', check_cols=['word']) }}
select id, word from {{ ref('words') }}
{% endsnapshot %}
"""


def log(project: Any, name: str) -> DeltaLog:
    return project.adapter.connections.catalog.table(RelationName(project.database, project.test_schema, name))


def infos(project: Any, name: str) -> list[CommitInfo]:
    """Returns the commitInfo of the commits, newest first."""
    return [
        next(action for action in commit.actions if isinstance(action, CommitInfo))
        for commit in log(project, name).newest_commits()
    ]


def facts(project: Any, name: str) -> list[CommitFacts]:
    found = [CommitFacts.of_info(info) for info in infos(project, name)]
    return [each for each in found if each is not None]


def read_by(project: Any, name: str) -> Mapping[str, Any]:
    """Returns the versions that the newest commit's statement read, by the tables' unqualified names."""
    read = infos(project, name)[0].read_versions or {}
    return {table.rpartition(".")[2]: versions for table, versions in read.items()}


def journal(project: Any) -> tuple[JournalEntry, ...]:
    return CommitJournal(Path(project.project_root) / "target").read().entries


def written_results(project: Any) -> dict[str, Any]:
    results = json.loads((Path(project.project_root) / "target" / "run_results.json").read_text())["results"]
    return {result["unique_id"].split(".")[-1]: result for result in results}


class TestWhatIsKeptOfARun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "batched.sql": BATCHED.replace("CONFIG", "concurrent_batches=true"),
            "seen.sql": "select a.id, b.word from {{ ref('events') }} a left join {{ ref('words') }} b on a.id = b.id",
            "counted.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('events') }}",
            "merged.sql": "{{ config(materialized='incremental', unique_key='id') }} select * from {{ ref('seen') }}",
            "by_python.py": PYTHON,
            "schema.yml": "models: [{name: merged, description: DESCRIBED, config: {persist_docs: {relation: true}}}]",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"words.csv": "id,word\n1,one\n2,two\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": SNAPSHOT}

    def test_a_response_names_the_unit_of_work_and_its_table_and_version(self, project: Any) -> None:
        run_dbt(["build", *WINDOW, *R1])
        results = written_results(project)
        for name in ("events", "words", "counted", "merged", "by_python", "kept"):
            response = results[name]["adapter_response"]
            assert response["run_id"] == "R1" and f".{name}/R1/main" in response["app_id"], name
            assert response["table"] == f"silt.{project.test_schema}.{name}"
            assert (response["table_version"], response["skipped"], response["attempts"]) == (0, False, 1)
            assert "rows_inserted" in response

    def test_a_commit_records_the_versions_that_it_was_computed_from(
        self, project: Any, cloud: ObjectServer | None
    ) -> None:
        both = {"events": [0], "words": [0]}
        assert read_by(project, "merged") == both, "through the view"
        assert read_by(project, "by_python") == both, "through dbt.ref"
        assert read_by(project, "counted") == {"events": [0]}, "from the log alone"
        assert read_by(project, "kept") == {"words": [0]}
        assert read_by(project, "batched") == {"events": [0]}
        assert read_by(project, "words") == {}
        options = None if cloud is None else dict(cloud.delta_rs)
        shown = DeltaTable(log(project, "merged").store.root, storage_options=options).history()[0]
        assert (shown["dbt"]["runId"], shown["commitAttempts"], shown["statementAttempts"]) == ("R1", 1, 1)

    def test_the_batches_that_dbt_drops_from_its_results_are_in_the_log_the_file_and_the_commits(
        self, project: Any, logs_dir: str
    ) -> None:
        assert written_results(project)["batched"]["adapter_response"] == {}
        days = ["20260301", "20260302", "20260303"]
        assert sorted(str(each.batch_id) for each in facts(project, "batched")) == days
        entries = [each for each in journal(project) if each.node_id == "model.test.batched"]
        assert sorted(str(each.batch_id) for each in entries) == days
        assert {(each.run_id, each.counts.rows_inserted, each.skipped) for each in entries} == {("R1", 1, False)}
        said = (Path(logs_dir) / "dbt.log").read_text()
        for each in entries:
            place = f"Committed {each.table}@v{each.table_version}: 1 inserted in 1 file"
            assert f"{place} (run R1, node model.test.batched, batch {each.batch_id})" in said

    def test_a_skip_has_its_own_line_without_row_counts(self, project: Any, logs_dir: str) -> None:
        before = len(journal(project))
        run_dbt(["build", *WINDOW, *R1])
        added = journal(project)[before:]
        assert {each.skipped for each in added} == {True}
        nodes = sorted(str(each.node_id).split(".")[-1] for each in added)
        assert nodes == sorted(["batched"] * 3 + ["events", "words", "counted", "merged", "by_python", "kept"])
        assert {(each.run_id, each.counts) for each in added} == {("R1", WriteCounts())}
        said = (Path(logs_dir) / "dbt.log").read_text()
        assert f"silt.{project.test_schema}.merged@v0 (run R1, node model.test.merged)" in said

    def test_commits_without_a_unit_of_work_record_the_run_id_too(self, project: Any) -> None:
        described = "models: [{name: merged, description: anew, config: {persist_docs: {relation: true}}}]"
        write_file(described, project.project_root, "models", "schema.yml")
        run_dbt(["run", "--select", "merged", "--vars", "silt_run_id: R2"])
        newest, *_ = zip(infos(project, "merged"), facts(project, "merged"), strict=True)
        assert "COMMENT" in str(newest[0].operation) or "TBLPROPERTIES" in str(newest[0].operation)
        assert (newest[1].run_id, newest[1].app_id, newest[1].node_id) == ("R2", None, "model.test.merged")


STRATEGY = """
{% macro get_incremental_in_two_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }} select * from {{ arg_dict['temp_relation'] }};
  select raise_error('the second statement');
{% endmacro %}

{% macro fail_in_jinja() %}{% if execute %}{{ exceptions.raise_compiler_error('a macro') }}{% endif %}{% endmacro %}

{% macro write_and_fail() %}
  {% if execute and var('start', '') == 'jinja' %}
    {% do run_query('insert into ' ~ target.schema ~ '.audit values (2)') %}
    {{ exceptions.raise_compiler_error('a macro') }}
  {% elif var('start', '') == 'sql' %}
    insert into {{ target.schema }}.audit values (3); select raise_error('a hook')
  {% endif %}
{% endmacro %}

{% macro in_jinja() %}
  {% do run_query('insert into ' ~ target.schema ~ '.in_jinja_audit values (1)') %}
  {{ exceptions.raise_compiler_error('a macro') }}
{% endmacro %}

{% macro in_sql() %}
  {% do run_query('insert into ' ~ target.schema ~ '.in_sql_audit values (1)') %}
  {% do run_query("select raise_error('a statement')") %}
{% endmacro %}

{% materialization forgetful, adapter='silt' %}
  {% call statement('main') %} create or replace table {{ this }} as {{ sql }} {% endcall %}
  {% do run_hooks(post_hooks) %}
{% endmaterialization %}
"""


class TestErrorsAfterACommit:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"macros.sql": STRATEGY}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": "{{ write_and_fail() }}"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        failing = "post_hook='{{ fail_in_jinja() }}'"
        hooked = BATCHED.replace("CONFIG", failing)
        partly = BATCHED.replace("CONFIG", "concurrent_batches=false") + (
            "{% if model.batch and model.batch.id == '20260302' %} where raise_error('this batch') is null {% endif %}"
        )
        hook = '"insert into {{ target.schema }}.audit values (1)"'
        return {
            "events.sql": EVENTS,
            "in_jinja.sql": f"{{{{ config(materialized='table', {failing}) }}}} select 1 as id",
            "in_two.sql": "{{ config(materialized='incremental', incremental_strategy='in_two') }} select 1 as id",
            "forgetful.sql": f"{{{{ config(materialized='forgetful', post_hook={hook}) }}}} select 1 as id",
            "hooked.sql": hooked,
            "partly.sql": partly,
        }

    def test_errors_of_macros_and_of_dbt_itself_name_the_earlier_commits(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.audit (n int)")
        run_dbt(["run", "--select", "in_jinja", "forgetful", "in_two", *R1], expect_pass=False)
        assert written_results(project)["in_two"]["status"] == "success", "the strategy is for the second run"
        failed = {"in_jinja": "a macro", "forgetful": "list of relations"}
        places = {"in_jinja": ("in_jinja@v0",), "forgetful": ("forgetful@v0", "audit@v1")}
        for name, error in failed.items():
            message = written_results(project)[name]["message"]
            assert error in message
            assert self._landed(project, *places[name]) in message
            assert message.count("already committed") == 1

    def test_a_failing_statement_names_the_commits_of_the_statements_before_it(self, project: Any) -> None:
        run_dbt(["run", "--select", "in_two", "--vars", '{"silt_run_id": "R2"}'], expect_pass=False)
        message = written_results(project)["in_two"]["message"]
        assert "the second statement" in message
        assert f"already committed as silt.{project.test_schema}.in_two@v1; a rerun" in message

    def test_a_batch_with_a_failing_hook_and_a_model_with_failing_batches_name_their_commits(
        self, project: Any
    ) -> None:
        _, output = run_dbt_and_capture(
            ["run", "--select", "events", "hooked", "partly", *WINDOW, *R1], expect_pass=False
        )
        assert written_results(project)["hooked"]["message"].startswith("PARTIAL SUCCESS")
        assert self._landed(project, "hooked@v2") in output, "of the last batch, whose hook fails"
        for model, versions in (("hooked", (0, 1, 2)), ("partly", (0, 1))):
            assert self._landed(project, *(f"{model}@v{version}" for version in versions)) in output

    @pytest.mark.parametrize(("start", "error", "version"), [("sql", "a hook", 2), ("jinja", "a macro", 3)])
    def test_a_failing_hook_of_the_run_names_its_commits(
        self, project: Any, start: str, error: str, version: int
    ) -> None:
        variables = json.dumps({"silt_run_id": "R1", "start": start})
        arguments = ["run", "--select", "events", "--vars", variables]
        try:
            _, output = run_dbt_and_capture(arguments, expect_pass=False)
        except Exception as raised:  # dbt ends the command if the text of a hook cannot be rendered
            output = str(raised)
        assert error in output
        assert self._landed(project, f"audit@v{version}") in output

    @pytest.mark.parametrize(("operation", "error"), [("in_jinja", "a macro"), ("in_sql", "a statement")])
    def test_a_failing_operation_names_its_commits(self, project: Any, operation: str, error: str) -> None:
        project.run_sql(f"create table {project.test_schema}.{operation}_audit (n int)")
        _, output = run_dbt_and_capture(["run-operation", operation, *R1], expect_pass=False)
        assert error in output
        assert self._landed(project, f"{operation}_audit@v1") in output

    def _landed(self, project: Any, *places: str) -> str:
        tables = ", ".join(f"silt.{project.test_schema}.{place}" for place in places)
        return f"already committed as {tables}; a rerun with this run id skips that and does the rest {RERUN}"
