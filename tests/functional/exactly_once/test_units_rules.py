"""The rules of a rerun under one run id, with a test each: existing work is skipped, and missing work is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName

ROWS = "id,name\n1,one\n2,two\n3,three\n"
APPENDED = "{{ config(materialized='incremental', incremental_strategy='append') }} select id from {{ ref('rows') }}"
EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp'2026-03-01T00:00:00Z' + make_interval(0, 0, 0, 0, id * 12) as at from range(6)
"""
BATCHED = """
{{ config(
  materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
  begin='2026-03-01', concurrent_batches=false,
) }}
select id, at from {{ ref('events') }}
{% if model.batch and model.batch.id == '20260302' and var('broken', false) %}
where assert_true(id < 0) is null
{% endif %}
"""
SNAPSHOT = """
{% snapshot history %}
{{ config(target_schema=schema, unique_key='id', strategy='check', check_cols=['name']) }}
select id, name from {{ ref('rows') }}
{% endsnapshot %}
"""


def audit(text: str) -> str:
    return "insert into {{ target.schema }}.audit values ('" + text + "')"


def hooked(*post_hooks: str) -> str:
    hooks = ", ".join(f'"{audit(each)}"' for each in post_hooks)
    head = "{{ config(materialized='incremental', incremental_strategy='append', post_hook=[" + hooks + "]) }} "
    return head + "select id from {{ ref('rows') }}"


def aliased(name: str) -> str:
    return APPENDED.replace("append'", f"append', alias='{name}'", 1)


class Rules:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"rows.csv": ROWS}

    @pytest.fixture(scope="class", autouse=True)
    def tables(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.audit (what string)")
        run_dbt(["seed"])

    def run(
        self, run_id: str, *arguments: str, command: str = "run", expect_pass: bool = True, **variables: Any
    ) -> str:
        all_variables = json.dumps({"silt_run_id": run_id, **variables})
        _, output = run_dbt_and_capture([command, "--vars", all_variables, *arguments], expect_pass=expect_pass)
        return str(output)

    def snapshot(self, project: Any, table: str) -> Any:
        name = RelationName(project.database, project.test_schema, table)
        return project.adapter.connections.catalog.table(name).snapshot()

    def versions(self, project: Any, *tables: str) -> Mapping[str, int]:
        return {table: self.snapshot(project, table).version for table in tables}

    def count(self, project: Any, table: str) -> int:
        return int(project.run_sql(f"select count(*) from {project.test_schema}.{table}", fetch="one")[0])

    def audited(self, project: Any) -> list[str]:
        rows = project.run_sql(f"select what from {project.test_schema}.audit order by what", fetch="all")
        return [row[0] for row in rows]


class TestKindsOfRuns(Rules):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "appended.sql": hooked("refreshed"),
            "whole.sql": "{{ config(materialized='table') }} select id from {{ ref('rows') }}",
            "moved.sql": APPENDED,
            "first.sql": APPENDED,
            "second.sql": APPENDED.replace("'rows'", "'first'"),
            "third.sql": APPENDED.replace("'rows'", "'second'"),
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        output = {**dbt_profile_target, "schema": unique_schema}
        return {"test": {"outputs": {"default": output, "other": output}, "target": "default"}}

    def test_a_full_refresh_under_the_same_id_is_done_once_and_a_later_plain_run_is_skipped(self, project: Any) -> None:
        self.run("R1", "--select", "appended")
        for _ in range(2):
            self.run("R1", "--select", "appended", "--full-refresh")
            assert (self.count(project, "appended"), self.versions(project, "appended")) == (3, {"appended": 1})
            assert self.audited(project) == ["refreshed"] * 2
        output = self.run("R1", "--select", "appended")
        assert "that run was a full refresh; to build it again, use a new run id" in output
        assert (self.versions(project, "appended"), self.audited(project)) == ({"appended": 1}, ["refreshed"] * 2)

    def test_two_targets_with_one_relation_write_it_once_and_each_runs_its_hooks(self, project: Any) -> None:
        for _ in range(2):
            output = self.run("R1", "--select", "appended", "--full-refresh", "--target", "other")
            assert "skipped, nothing written: run R1" in output
        assert (self.versions(project, "appended"), self.audited(project)) == ({"appended": 1}, ["refreshed"] * 3)

    def test_empty_and_sample_and_plain_runs_are_separate_work(self, project: Any) -> None:
        for arguments, version, rows in (
            (["--empty"], 0, 0),
            (["--empty"], 0, 0),
            (["--sample", "1 day"], 1, 3),
            ([], 2, 3),
            ([], 2, 3),
            (["--empty"], 2, 3),
        ):
            self.run("R1", "--select", "whole", *arguments)
            assert (self.versions(project, "whole"), self.count(project, "whole")) == ({"whole": version}, rows)

    def test_a_model_changed_from_incremental_to_table_is_the_same_work(self, project: Any) -> None:
        self.run("R1", "--select", "moved")
        moved = "{{ config(materialized='table') }} select id from {{ ref('rows') }} where id > 1"
        write_file(moved, project.project_root, "models", "moved.sql")
        assert "the node was changed since; to build it again" in self.run("R1", "--select", "moved")
        assert self.count(project, "moved") == 3
        self.run("R2", "--select", "moved")
        assert self.count(project, "moved") == 2

    def test_a_rerun_in_parts_and_in_another_order_does_the_missing_work(self, project: Any) -> None:
        names = ("first", "second", "third", "history")
        self.run("R1", "--select", *names, command="build")
        for piece in ("history", "third"):
            self.run("R2", "--select", piece, command="build")
        assert self.versions(project, *names) == {"first": 0, "second": 0, "third": 1, "history": 1}
        for piece in ("second", "first", "third second first history", "rows"):
            self.run("R2", "--select", *piece.split(), command="build")
        assert self.versions(project, *names) == dict.fromkeys(names, 1)
        assert [self.count(project, name) for name in names] == [6, 6, 6, 3]


class TestMemoryFollowsTheTable(Rules):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        names = ("renamed", "cloned", "restored", "emptied", "dropped", "replaced")
        return {f"{name}.sql": APPENDED for name in names}

    @pytest.fixture(scope="class", autouse=True)
    def first_run(self, project: Any, tables: None) -> None:
        self.run("R1")

    def test_a_rename_keeps_the_units_of_work_and_a_clone_starts_without_any(self, project: Any) -> None:
        schema = project.test_schema
        project.run_sql(f"alter table {schema}.renamed rename to {schema}.elsewhere")
        project.run_sql(f"create table {schema}.copied shallow clone {schema}.cloned")
        write_file(aliased("elsewhere"), project.project_root, "models", "renamed.sql")
        write_file(aliased("copied"), project.project_root, "models", "cloned.sql")
        self.run("R1", "--select", "renamed", "cloned")
        assert (self.count(project, "elsewhere"), self.count(project, "copied")) == (3, 6)

    def test_a_restore_forgets_the_units_after_the_version(self, project: Any) -> None:
        self.run("R2", "--select", "restored")
        project.run_sql(f"restore table {project.test_schema}.restored to version as of 0")
        for run_id, rows in (("R1", 3), ("R2", 6), ("R2", 6)):
            self.run(run_id, "--select", "restored")
            assert self.count(project, "restored") == rows

    def test_truncate_keeps_the_units_and_the_skip_reports_it(self, project: Any) -> None:
        project.run_sql(f"truncate table {project.test_schema}.emptied")
        output = self.run("R1", "--select", "emptied")
        assert self.count(project, "emptied") == 0
        assert "all rows were deleted from the table since, by v1; to build it again, use a new run id" in output

    def test_a_drop_forgets_the_units_and_a_replacement_keeps_them(self, project: Any) -> None:
        project.run_sql(f"drop table {project.test_schema}.dropped")
        project.run_sql(f"create or replace table {project.test_schema}.replaced as select 9L as id")
        self.run("R1", "--select", "dropped", "replaced")
        assert (self.count(project, "dropped"), self.count(project, "replaced")) == (3, 1)


class TestHooksAndSeeds(Rules):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hooked.sql": hooked("b"),
            "judged.sql": "select {{ 'raise_error(1)' if var('bad', false) else 1 }} as id",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"rows.csv": ROWS, "long.csv": "id,name\n" + "".join(f"{n},{'x' * 1000}\n" for n in range(1100))}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        statuses = "{{ results | map(attribute='status') | join(' ') }}"
        return {"on-run-end": ["{% if var('outcomes', false) %}" + audit(f"ended {statuses}") + "{% endif %}"]}

    def test_a_hook_is_identified_by_its_text_and_its_number_of_occurrences(self, project: Any) -> None:
        for post_hooks, expected in (
            (["b"], ["b"]),
            (["a", "b"], ["a", "b"]),
            (["a", "b", "b"], ["a", "b", "b"]),
            (["b", "changed"], ["a", "b", "b", "changed"]),
        ):
            write_file(hooked(*post_hooks), project.project_root, "models", "hooked.sql")
            for _ in range(2 if len(post_hooks) > 1 else 1):
                self.run("R1", "--select", "hooked")
                assert self.audited(project) == expected
        assert self.count(project, "hooked") == 3

    def test_a_hook_at_the_end_of_a_run_records_each_result_once(self, project: Any) -> None:
        table = "{{ config(materialized='table') }} select "
        broken, mended = table + "raise_error('bad') as id", table + "1 as id"
        for text, expected in (
            (broken, ["ended error"]),
            (broken, ["ended error"]),
            (mended, ["ended error", "ended success"]),
            (mended, ["ended error", "ended success"]),
        ):
            write_file(text, project.project_root, "models", "judged.sql")
            self.run("R2", "--select", "judged", expect_pass=text != broken, outcomes=True)
            assert [each for each in self.audited(project) if each.startswith("ended")] == expected

    def test_a_changed_seed_of_any_size_is_skipped_with_a_warning(self, project: Any) -> None:
        self.run("R3", command="seed")
        for name, line in (("rows.csv", "4,four\n"), ("long.csv", "5000,new\n")):
            with open(f"{project.project_root}/seeds/{name}", "a", encoding="utf-8") as file:
                file.write(line)
        output = self.run("R3", command="seed")
        assert output.count("the node was changed since; to build it again, use a new run id") == 2
        assert (self.count(project, "rows"), self.count(project, "long")) == (3, 1100)
        self.run("R4", command="seed")
        assert (self.count(project, "rows"), self.count(project, "long")) == (4, 1101)


class TestMicrobatches(Rules):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "batched.sql": BATCHED}

    def batches(self, run_id: str, *arguments: str, hour: int = 13, expect_pass: bool = True, **variables: Any) -> None:
        with patch_microbatch_end_time(f"2026-03-03 {hour}:00:00"):
            self.run(run_id, "--select", "batched", *arguments, expect_pass=expect_pass, **variables)

    def test_the_last_window_is_done_again_if_its_input_has_grown(self, project: Any) -> None:
        run_dbt(["run", "--select", "events"])
        for hour, version in ((11, 2), (11, 2), (13, 3), (13, 3)):
            self.batches("R1", hour=hour)
            assert self.versions(project, "batched") == {"batched": version}
        assert self.count(project, "batched") == 6

    def test_a_crashed_full_refresh_is_resumed_under_the_same_id(self, project: Any) -> None:
        self.batches("R1", "--full-refresh", broken=True, expect_pass=False)
        assert self.versions(project, "batched") == {"batched": 5}
        assert self.count(project, "batched") == 4
        for _ in range(2):
            self.batches("R1", "--full-refresh")
            assert self.versions(project, "batched") == {"batched": 6}
            assert self.count(project, "batched") == 6


class TestOddHooks(Rules):
    """Hooks of several statements, of a macro that runs them itself, outside of transactions; a run id of any form."""

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "twice.sql": "{% macro twice(text) %}{% if execute %}{% for _ in range(2) %}"
            '{% do run_query("insert into " ~ target.schema ~ ".audit values (\'" ~ text ~ "\')") %}'
            "{% endfor %}{% endif %}{% endmacro %}"
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        several = f"{audit('several; a')}; {audit('several; b')}; {audit('several; b')}; select 1"
        outside = '{"sql": "' + audit("outside") + '", "transaction": false}'
        hooks = (
            f'pre_hook=["{several}", before_begin("{audit("before")}")], '
            f'post_hook=["{{{{ twice(\'called\') }}}}", after_commit("{audit("after")}"), {outside}, ""]'
        )
        head = "{{ config(materialized='incremental', incremental_strategy='append', " + hooks + ") }} "
        return {"odd.sql": head + "select 1 as id {{ 'where raise_error(1) is null' if var('fail', false) }}"}

    def test_hooks_are_applied_once_statement_by_statement(self, project: Any) -> None:
        run_id = "scheduled__2026-03-01T00:00:00+00:00/'é%2F@{}\""
        before = ["before", "several; a", "several; b", "several; b"]
        all_of_them = sorted([*before, "called", "called", "after", "outside"])
        for fail, expected in ((True, before), (False, all_of_them), (False, all_of_them)):
            self.run(run_id, "--select", "odd", expect_pass=not fail, fail=fail)
            assert self.audited(project) == expected
        assert self.count(project, "odd") == 1


class TestSideStatements(Rules):
    """A materialization's commits next to its write depend on the state of the table, and are harmless
    when repeated.
    """

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        described = "models: [{name: synced, description: first, columns: [{name: new, description: second}]}]"
        return {"synced.sql": self.synced("1 as old"), "schema.yml": f"version: 2\n{described}\n"}

    def synced(self, columns: str) -> str:
        fail = "{{ \"select raise_error('killed')\" if var('fail_after', false) }}"
        config = (
            "materialized='incremental', incremental_strategy='append', on_schema_change='sync_all_columns', "
            "persist_docs={'relation': true, 'columns': true}, post_hook=" + json.dumps(fail)
        )
        failing = " {{ 'where raise_error(1) is null' if var('fail', false) }}"
        return "{{ config(" + config + ") }} select id, " + columns + " from {{ ref('rows') }}" + failing

    def test_a_change_of_columns_and_comments_is_applied_once_despite_interruptions(self, project: Any) -> None:
        self.run("R1", "--select", "synced")
        write_file(self.synced("2 as new"), project.project_root, "models", "synced.sql")
        for variables in ({"fail": True}, {"fail": True}, {"fail_after": True}, {"fail_after": True}):
            self.run("R2", "--select", "synced", expect_pass=False, **variables)  # type: ignore[arg-type]
        version = self.snapshot(project, "synced").version
        self.run("R2", "--select", "synced")
        snapshot = self.snapshot(project, "synced")
        assert (snapshot.version, snapshot.metadata.description) == (version, "first")
        assert [(field.name, field.metadata.get("comment")) for field in snapshot.schema] == [
            ("id", None),
            ("new", "second"),
        ]
        rows = project.run_sql(f"select new, count(*) from {project.test_schema}.synced group by new", fetch="all")
        assert dict(rows) == {None: 3, 2: 3}
