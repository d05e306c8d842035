"""With `branch` in the profile, every dbt command reads and writes on a named branch, and nobody else sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from tests.functional.runs.test_publishing import HEAD, MODELS, SEEDS, TABLES, shown, silt, warehouse, with_id


def catalog(project: Any) -> Catalog:
    return open_databases({project.database: warehouse(project)}, Storages()).catalog


def on_branch(project: Any, sql: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The rows of a query on the branch, by another process's eyes."""
    capsys.readouterr()
    assert silt(project, "sql", "--branch", "pr_17", "--json", sql) == 0
    return list(json.loads(capsys.readouterr().out))


class Branched:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "branch": "{{ env_var('SILT_BRANCH', '') }}"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {**MODELS, "kept.sql": HEAD.replace("'table'", "'table', reuse='unchanged'") + "select 1 as id"}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return SEEDS

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["build"])
        assert silt(project, "branch", "pr_17") == 0

    @pytest.fixture(autouse=True)
    def branch(self, built: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("SILT_BRANCH", "pr_17")
        yield


class TestACommandOnABranch(Branched):
    def test_every_kind_of_node_is_built_on_the_branch_and_the_base_stays(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = shown(project)
        run_dbt(["build", *with_id("one", day=2, second=30)])
        assert shown(project) == before
        schema = project.test_schema
        assert on_branch(project, f"select total from {schema}.totals", capsys) == [{"total": 40}]
        assert on_branch(project, f"select count(*) as n from {schema}.appended", capsys) == [{"n": 4}]
        changed = catalog(project).named_branches(project.database)
        state = changed.state(changed.find("pr_17"))
        assert {each.rpartition(".")[2] for each in state.changed} == {*TABLES, "swapped"}

    def test_a_run_with_the_same_id_repeats_no_unit_of_work(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, output = run_dbt_and_capture(["build", *with_id("one", day=2, second=30)])
        assert "kept" in output and "reused" in output
        query = f"select count(*) as n from {project.test_schema}.appended"
        assert on_branch(project, query, capsys) == [{"n": 4}]
        run_dbt(["build", "--select", "appended", *with_id("two", day=3, second=30)])
        assert on_branch(project, query, capsys) == [{"n": 6}]

    def test_a_run_is_rolled_back_on_the_branch_alone_and_run_again(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = shown(project)
        query = f"select count(*) as n from {project.test_schema}.appended"
        assert silt(project, "rollback", "two", "--yes") == 0
        assert on_branch(project, query, capsys) == [{"n": 4}]
        run_dbt(["build", "--select", "appended", *with_id("two", day=3, second=30)])
        assert on_branch(project, query, capsys) == [{"n": 6}]
        assert shown(project) == before

    def test_commands_that_only_read_read_the_branch(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["show", "--inline", "select total from {{ ref('totals') }}"])
        assert "40" in output

    def test_the_branch_is_not_deleted_while_a_command_works_on_it(self, project: Any) -> None:
        seen: list[int] = []
        end = CommandDocuments.end

        def ended(documents: CommandDocuments, results: Any) -> None:
            seen.append(silt(project, "branch", "pr_17", "--delete"))
            end(documents, results)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CommandDocuments, "end", ended)
            run_dbt(["run", "--select", "kept"])
        assert seen == [2]

    def test_a_statement_cannot_leave_the_branch(self, project: Any) -> None:
        for statement in ("set silt.branch = 'other'", "reset silt.branch"):
            _, output = run_dbt_and_capture(
                ["run-operation", "run_query", "--args", json.dumps({"sql": statement})], expect_pass=False
            )
            assert "`silt.branch` cannot be set" in output, output

    def test_an_unknown_branch_fails_before_anything_is_written(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SILT_BRANCH", "pr_71")
        before = shown(project)
        with pytest.raises(DbtRuntimeError, match=r"the branch `pr_71` does not exist.*Did you mean pr_17"):
            run_dbt(["run"])
        assert shown(project) == before

    def test_after_the_end_of_the_branch_commands_say_so_and_the_base_is_as_before(
        self, project: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert silt(project, "branch", "pr_17", "--delete") == 0
        with pytest.raises(DbtRuntimeError, match="the branch `pr_17` does not exist"):
            run_dbt(["run", "--select", "kept"])
        monkeypatch.delenv("SILT_BRANCH")
        capsys.readouterr()
        assert silt(project, "sql", "--json", f"select total from {project.test_schema}.totals") == 0
        assert "30" in capsys.readouterr().out


class TestARunPublishedIntoABranch(Branched):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "branch": "{{ env_var('SILT_BRANCH', '') }}", "publish": "after_tests"}

    def test_its_changes_are_on_the_branch_together_after_its_tests_and_only_there(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = shown(project)
        query = f"select total from {project.test_schema}.totals"
        _, output = run_dbt_and_capture(["build", *with_id("one", day=2, second=30)])
        assert "Published into the branch pr_17 at one moment" in output
        assert on_branch(project, query, capsys) == [{"total": 40}]
        assert shown(project) == before

    def test_a_run_with_the_same_id_repeats_no_unit_of_work(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, output = run_dbt_and_capture(["build", *with_id("one", day=2, second=30)])
        assert "no table" in output
        query = f"select count(*) as n from {project.test_schema}.appended"
        assert on_branch(project, query, capsys) == [{"n": 4}]

    def test_a_failed_node_holds_the_run_until_it_is_published_into_the_branch_or_dropped(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        query = f"select amount from {project.test_schema}.orders where id = 2"
        for run, how, amount in (("two", "drop-run", 30), ("three", "publish", None)):
            _, output = run_dbt_and_capture(["build", *with_id(run, day=3, second="null")], expect_pass=False)
            assert "Held" in output
            assert on_branch(project, query, capsys) == [{"amount": 30}]
            assert silt(project, "merge", "pr_17") == 2
            assert silt(project, how, run) == 0
            assert on_branch(project, query, capsys) == [{"amount": amount}]

    def test_a_published_run_is_rolled_back_on_the_branch(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert silt(project, "rollback", "three", "--yes") == 0
        query = f"select amount from {project.test_schema}.orders where id = 2"
        assert on_branch(project, query, capsys) == [{"amount": 30}]

    def test_the_merge_shows_it_to_everyone(
        self, project: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert silt(project, "merge", "pr_17") == 0
        monkeypatch.delenv("SILT_BRANCH")
        capsys.readouterr()
        assert silt(project, "sql", "--json", f"select count(*) as n from {project.test_schema}.appended") == 0
        assert "4" in capsys.readouterr().out


class TestABranchWhoseBaseHasMoved(Branched):
    def test_a_merge_runs_the_nodes_again_that_conflict_and_the_nodes_below(
        self, project: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
        run_dbt(["build", "--exclude", "kept", *with_id("branch", second=30)])
        monkeypatch.setenv("SILT_BRANCH", "")
        run_dbt(["run", "--select", "hooked", *with_id("base")])
        capsys.readouterr()
        assert silt(project, "merge", "pr_17", "--json") == 1
        conflicts = json.loads(capsys.readouterr().out)["conflicts"]
        assert [each["reason"].split(":")[0].split(".")[-1] for each in conflicts] == ["hooked"]
        assert all(each["commits"] for each in conflicts)
        assert silt(project, "merge", "pr_17", "--run", "--vars", "second: 30") == 0
        query = f"select sum(amount) as total from {project.test_schema}.orders"
        capsys.readouterr()
        assert silt(project, "sql", "--json", query) == 0
        assert json.loads(capsys.readouterr().out) == [{"total": 40}]
        built = json.loads(Path(project.project_root, "target", "run_results.json").read_text())["results"]
        assert {each["unique_id"].split(".")[2] for each in built if each["unique_id"].startswith("model")} == {
            "hooked"
        }
