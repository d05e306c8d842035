"""A command of `silt` that shows something leaves the artifacts of the last dbt command as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

from dbt.adapters.silt.cli.main import SUBCOMMANDS, main

SHOWING: Mapping[str, tuple[str, ...]] = {
    "sql": ("sql", "select id from good"),
    "runs": ("runs",),
    "run": ("run", "first"),
    "history": ("history", "good"),
    "show": ("show", "good"),
    "check": ("check",),
    "report": ("report",),
    "branches": ("branches",),
    "diff": ("diff", "good@v0"),
    "why": ("why", "good", "bad"),
    "quarantine": ("quarantine", "good"),
    "catalog": ("catalog", "duckdb", "tables.duckdb"),
    "session": ("session", "status"),
    "upkeep": ("upkeep", "--dry-run"),
}
CHANGING = {"rollback", "publish", "drop-run", "branch", "merge", "serve", "endpoint"}
"""The other subcommands: they change runs, or answer until they are stopped."""


class TestShowing:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> Mapping[str, Any]:
        return {"models": {"+materialized": "table", "+reuse": "unchanged"}}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {
            "good.sql": "select 1 as id",
            "bad.sql": "select raise_error('not yet') as id, count(*) as n from {{ ref('good') }}",
            "below.sql": "select * from {{ ref('bad') }}",
        }

    @pytest.fixture(scope="class")
    def failed(self, project: Any) -> Any:
        run_dbt(["run", "--vars", "{silt_run_id: first}"], expect_pass=False)
        return project

    @staticmethod
    def files(project: Any) -> dict[str, tuple[int, bytes]]:
        folders = [Path(project.project_root) / name for name in ("target", "logs")]
        found = [each for folder in folders for each in folder.rglob("*") if each.is_file()]
        return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in found}

    def test_every_subcommand_is_known_to_show_or_to_change(self) -> None:
        assert {*SHOWING, *CHANGING} == set(SUBCOMMANDS)

    @pytest.mark.parametrize("subcommand", SHOWING)
    def test_the_target_folder_is_not_changed(
        self, failed: Any, subcommand: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(failed.project_root)
        before = self.files(failed)
        assert any(name.endswith("run_results.json") for name in before)
        given = list(SHOWING[subcommand])
        if subcommand != "session":
            given += ["--project-dir", str(failed.project_root), "--profiles-dir", str(failed.profiles_dir)]
        assert main(given) == 0, capfd.readouterr()
        assert self.files(failed) == before

    def test_a_failed_build_can_be_retried_after_commands_that_show_something(
        self, failed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(failed.project_root)
        write_file("select count(*) as n from {{ ref('good') }}", failed.project_root, "models", "bad.sql")
        places = ["--project-dir", str(failed.project_root), "--profiles-dir", str(failed.profiles_dir)]
        assert main(["why", "bad", *places]) == 0
        assert main(["report", *places]) == 0
        results = run_dbt(["retry"])
        assert {each.node.name for each in results} == {"bad", "below"}
