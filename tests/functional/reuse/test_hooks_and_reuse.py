"""A build counts when its hooks have run, and a hook that changes what its node reads, runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

NOT_ENDED = "built: not all of its hooks have run since its last build"
CHECK = "select assert_true(count(*) < (select max(n) from {{ this.schema }}.most)) from {{ this }}"
HEAD = "{{ config(materialized='table') }} "
REFRESH = """
{% macro refresh() %}
  {% do run_query('insert overwrite ' ~ target.schema ~ '.staged select k, v from ' ~ target.schema ~ '.src') %}
{% endmacro %}
"""
SNAPSHOTS = """
snapshots:
  - name: checked_history
    relation: ref('plain')
    config: {unique_key: k, strategy: check, check_cols: all, post_hook: "%s"}
"""
PYTHON = """
def model(dbt, session):
    dbt.config(pure=True, materialized='table')
    return dbt.ref('plain')
"""


class Hooked:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        reused = {"+reuse": "unchanged"}
        return {"models": reused, "seeds": {**reused, "+post-hook": CHECK}, "snapshots": reused}

    def run(self, *arguments: str, success: bool = True, **variables: Any) -> Mapping[str, str]:
        """Builds the project, and returns the message of each node."""
        given = ["build", *(("--vars", json.dumps(variables)) if variables else ()), *arguments]
        results = run_dbt(given, expect_pass=success)
        return {each.node.name: f"{each.status}: {each.message}" for each in results.results}

    @staticmethod
    def rows(project: Any, query: str) -> list[Any]:
        found = project.run_sql(query.replace("main.", f"{project.test_schema}."), fetch="all")
        return sorted(tuple(each) for each in found)

    @staticmethod
    def version(project: Any, table: str) -> int:
        name = RelationName(project.database, project.test_schema, table)
        return int(project.adapter.connections.catalog.table(name).snapshot().version)


class FailingHooks(Hooked):
    NODES = ("checked", "checked_by_key", "checked_py", "checked_seed", "checked_history", "after")

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        hook = f'post_hook="{CHECK}"'
        return {
            "plain.sql": HEAD + "select 1 as k, 2 as v",
            "checked.sql": "{{ config(materialized='table', " + hook + ") }} select * from {{ ref('plain') }}",
            "checked_by_key.sql": "{{ config(materialized='incremental', unique_key='k', " + hook + ") }} "
            "select * from {{ ref('plain') }}",
            "checked_py.py": PYTHON,
            "py.yml": f'models: [{{name: checked_py, config: {{post_hook: "{CHECK}"}}}}]',
            "after.sql": "{{ config(materialized='table', after_publish='vacuum {{ this }}') }} select 1 as one",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"checked_seed.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> Mapping[str, str]:
        return {"history.yml": SNAPSHOTS % CHECK}

    @pytest.fixture(autouse=True)
    def limit(self, project: Any) -> None:
        """The rows that the hooks accept: with a limit of 1, each of their checks fails."""
        project.run_sql(f"create or replace table {project.test_schema}.most as select 99 as n")
        self.project = project

    def set_limit(self, rows: int) -> None:
        self.project.run_sql(f"update {self.project.test_schema}.most set n = {rows}")

    def fail(self) -> Mapping[str, str]:
        self.set_limit(1)
        failed = self.run(success=False)
        self.set_limit(99)
        return failed

    def test_a_node_whose_post_hook_failed_is_built_by_the_next_run(self, project: Any) -> None:
        failed = self.fail()
        checked = [name for name in self.NODES if name != "after"]
        assert all(failed[name].startswith("error") for name in checked), failed
        built = self.run()
        assert all(NOT_ENDED in built[name] for name in checked), built
        versions = {name: self.version(project, name) for name in (*self.NODES, "plain")}
        reused = self.run()
        assert all("reused: unchanged" in reused[name] for name in versions), reused
        assert {name: self.version(project, name) for name in versions} == versions
        assert versions["plain"] == 0, "a node without hooks has no commit that says that they have run"

    def test_a_run_that_is_continued_runs_the_hooks_and_its_build_counts(self, project: Any) -> None:
        self.set_limit(1)
        self.run("--select", "checked", "--full-refresh", success=False, silt_run_id="night")
        self.set_limit(99)
        version = self.version(project, "checked")
        assert "skipped" in self.run("--select", "checked", "--full-refresh", silt_run_id="night")["checked"]
        assert "reused: unchanged" in self.run("--select", "checked", silt_run_id="day")["checked"]
        assert self.version(project, "checked") <= version + 1


class TestFailingHooks(FailingHooks):
    pass


class TestFailingHooksOfPublishedRuns(FailingHooks):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_run"}

    def fail(self) -> Mapping[str, str]:
        """Publishes the nodes whose hooks failed, as a person may do who knows why."""
        self.set_limit(1)
        failed = self.run(success=False, silt_run_id="checks")
        self.set_limit(99)
        folders = ["--project-dir", str(self.project.project_root), "--profiles-dir", str(self.project.profiles_dir)]
        assert main(["publish", "checks", *folders]) == 0
        return failed

    def test_a_run_that_is_continued_runs_the_hooks_and_its_build_counts(self, project: Any) -> None:
        self.set_limit(1)
        self.run("--select", "checked", "--full-refresh", success=False, silt_run_id="night")
        self.set_limit(99)
        self.run("--select", "checked", "--full-refresh", silt_run_id="night")
        assert "reused: unchanged" in self.run("--select", "checked", silt_run_id="day")["checked"]


class RefreshingHooks(Hooked):
    """Pre-hooks that refresh a table which their node reads, in several ways, and pre-hooks that do not."""

    REASONS = ("staged, which it reads",)
    REFRESHING = ("direct", "outside", "called", "through_a_view", "own_rows", "defining")

    @pytest.fixture(scope="class")
    def macros(self) -> Mapping[str, str]:
        return {"refresh.sql": REFRESH}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        def model(hook: str, query: str, **others: str) -> str:
            config = ", ".join(f"{name}={value}" for name, value in others.items())
            return "{{ config(pre_hook=" + hook + ", " + (config or "materialized='table'") + ") }} " + query

        overwrite = "insert overwrite {{ this.schema }}.staged select k, v from {{ this.schema }}.src"
        total = "select sum(v) as s from {{ this.schema }}.staged"
        return {
            "direct.sql": model(f'"{overwrite}"', total),
            "outside.sql": model('{"sql": "' + overwrite + '", "transaction": false}', total),
            "called.sql": model('"{{ refresh() }}"', total),
            "seen.sql": "{{ config(materialized='view') }} select * from {{ this.schema }}.staged",
            "through_a_view.sql": model(f'"{overwrite}"', "select sum(v) as s from {{ ref('seen') }}"),
            "own_rows.sql": model(
                '"delete from {{ this }} where k in (select k from {{ this.schema }}.gone)"',
                "select k, v from {{ this.schema }}.fixed",
                materialized="'incremental'",
                unique_key="'k'",
                incremental_strategy="'merge'",
            ),
            "defining.sql": model(
                '"create or replace view {{ this.schema }}.latest as select * from {{ this.schema }}.src"',
                "select count(*) as n from {{ this.schema }}.latest",
            ),
            "logging.sql": model(
                '"insert into {{ this.schema }}.audit values (1)"', "select * from {{ this.schema }}.fixed"
            ),
        }

    def test_a_pre_hook_that_changes_what_its_node_reads_is_run(self, project: Any) -> None:
        for name in ("src", "staged", "gone", "fixed", "own_rows", "audit"):
            columns = "n int" if name == "audit" else "k string, v int"
            project.run_sql(f"create table {project.test_schema}.{name} ({columns})")
        project.run_sql(f"insert into {project.test_schema}.src values ('a', 1)")
        project.run_sql(f"insert into {project.test_schema}.fixed values ('a', 1), ('b', 2)")
        project.run_sql(f"create view {project.test_schema}.latest as select * from {project.test_schema}.src")
        self.run()
        self.run()
        project.run_sql(f"insert into {project.test_schema}.src values ('b', 50)")
        project.run_sql(f"insert into {project.test_schema}.gone values ('a', 0)")
        found = self.run()
        assert not [name for name in self.REFRESHING if "reused" in found[name]], found
        assert any(reason in found["direct"] for reason in self.REASONS)
        assert any(reason in found["called"] for reason in (*self.REASONS[1:], "its pre-hook has macros or variables"))
        assert "its pre-hook changes its table" in found["own_rows"]
        for name in ("direct", "outside", "called", "through_a_view"):
            assert self.rows(project, f"select s from main.{name}") == [(51,)], name
        assert self.rows(project, "select n from main.defining") == [(2,)]
        assert "reused: unchanged" in found["logging"]
        assert self.rows(project, "select count(*) from main.audit") == [(1,)]


class TestRefreshingHooks(RefreshingHooks):
    pass


class TestRefreshingHooksOfPublishedRuns(RefreshingHooks):
    # Several hooks have replaced the rows: the rows that the node has read are not published.
    REASONS = (*RefreshingHooks.REASONS, "no earlier build has recorded its inputs")  # type: ignore[assignment]

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_run"}


class TestRefreshBeforeTheRun(Hooked):
    """An on-run-start hook runs in each command, so its changes are seen."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        refresh = "insert overwrite {{ target.schema }}.staged select k, v from {{ target.schema }}.src"
        return {"models": {"+reuse": "unchanged"}, "on-run-start": refresh}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {"m.sql": HEAD + "select sum(v) as s from {{ this.schema }}.staged"}

    def test_a_node_sees_what_a_hook_of_the_run_has_changed(self, project: Any) -> None:
        for name in ("src", "staged"):
            project.run_sql(f"create table {project.test_schema}.{name} as select 'a' as k, 1 as v")
        self.run()
        project.run_sql(f"insert into {project.test_schema}.src values ('b', 50)")
        self.run()
        assert self.rows(project, "select s from main.m") == [(51,)]


class TestViewsOfPostHooks(Hooked):
    """A post-hook reads other views than its node, in a run that is published."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests"}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        hook = "delete from {{ this }} where k in (select k from {{ ref('gone') }})"
        noted = "comment on table {{ this }} is 'seen'"
        return {
            "stg.sql": "{{ config(materialized='view') }} "
            "select k, v from {{ this.schema }}.src where v > {{ var('cut', 0) }}",
            "gone.sql": "{{ config(materialized='view') }} select 'nope' as k",
            "m.sql": '{{ config(materialized="table", post_hook="' + hook + '") }} select k, v from {{ ref("stg") }}',
            "noted.sql": '{{ config(materialized="table", post_hook="' + noted + '") }} select * from {{ ref("stg") }}',
            "below.sql": HEAD + "select count(*) as n from {{ ref('m') }}",
        }

    def test_a_new_definition_of_a_view_is_noticed(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.src as select 'a' as k, 1 as v")
        self.run()
        project.run_sql(f"insert into {project.test_schema}.src values ('b', 5)")
        self.run()
        again = self.run()
        assert "reused" in again["noted"] and "reused" in again["below"]
        assert "built: its post-hook changes its table" in again["m"], "its rows may depend on what the hook reads"
        found = self.run(cut=2)
        assert "stg has a new definition" in found["noted"] and "stg has a new definition" in found["m"]
        for name in ("stg", "m", "noted"):
            assert self.rows(project, f"select k from main.{name}") == [("b",)], name
        assert self.rows(project, "select n from main.below") == [(1,)]


class TestFilesOfHooks(Hooked):
    """A hook reads other files than its node."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_run"}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        source = "read_files('{{ var(\\'files\\') }}/%s', format => 'csv', schema => 'k int')"
        hook = f"insert into {{{{ this.schema }}}}.audit select k from {source % 'hook'}"
        config = '{{ config(materialized="table", post_hook="' + hook + '") }} '
        return {"m.sql": config + "select k from " + (source % "query").replace("\\'", "'")}

    def test_a_model_whose_hook_reads_other_files_is_reused(self, project: Any, tmp_path: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.audit (k int)")
        for name in ("query", "hook"):
            (tmp_path / name).mkdir()
            write_file("1\n", str(tmp_path), name, "a.csv")
        self.run(files=str(tmp_path))
        assert "reused" in self.run(files=str(tmp_path))["m"]
        write_file("1\n2\n", str(tmp_path), "query", "a.csv")
        assert "query changed" in self.run(files=str(tmp_path))["m"]
