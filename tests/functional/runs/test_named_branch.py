"""With `branch` in the profile, every dbt command reads and writes on a named branch, and nobody else sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
        with pytest.raises(DbtRuntimeError, match=r"there is no branch `pr_71`.*Did you mean pr_17"):
            run_dbt(["run"])
        assert shown(project) == before

    def test_after_the_end_of_the_branch_commands_say_so_and_the_base_is_as_before(
        self, project: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert silt(project, "branch", "pr_17", "--delete") == 0
        with pytest.raises(DbtRuntimeError, match="there is no branch `pr_17`"):
            run_dbt(["run", "--select", "kept"])
        monkeypatch.delenv("SILT_BRANCH")
        capsys.readouterr()
        assert silt(project, "sql", "--json", f"select total from {project.test_schema}.totals") == 0
        assert "30" in capsys.readouterr().out

    def test_a_branch_cannot_be_combined_with_publish(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="`silt merge` publishes"):
            run_dbt(["run", "--vars", "silt_publish: after_tests"])
