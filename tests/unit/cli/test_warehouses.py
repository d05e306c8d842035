"""The choice of the warehouse: by option, by dbt's rules for projects and profiles, or by the current folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.cli.main import main
from tests.unit.cli.house import House, rows

PROFILES = """
shop:
  target: "{{ env_var('SHOP_TARGET', 'dev') }}"
  outputs:
    dev: {type: silt, schema: analytics, warehouse: "{{ env_var('SHOP_HOUSE', 'house') }}", threads: 4}
    prod:
      type: silt
      database: live
      warehouse: prod_house
      databases: {raw: "../raw_{{ 'house' | upper }}"}
      run_id: "{{ env_var('NOT_SET') }}"
    spark: {type: spark, host: nowhere}
    remote: {type: silt, warehouse: "hdfs://host/house"}
other:
  outputs:
    default: {type: silt}
"""
Tables = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Removes all settings except the test's own."""
    for name in ("PROJECT_DIR", "PROFILES_DIR", "PROFILE", "TARGET", "TARGET_PATH"):
        monkeypatch.delenv(f"DBT_{name}", raising=False)
        monkeypatch.delenv(f"DBT_ENGINE_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dbt project, which is the working directory, with its profiles next to it."""
    root = tmp_path / "project"
    (root / "models" / "staging").mkdir(parents=True)
    (root / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    (root / "profiles.yml").write_text(PROFILES)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def tables(capsys: pytest.CaptureFixture[str]) -> Tables:
    """Returns the tables that `silt check` finds."""

    def run(*arguments: str) -> list[str]:
        assert main(["check", "--json", *arguments]) == 0
        return [table["table"] for table in json.loads(capsys.readouterr().out)["tables"]]

    return run


def make(folder: Path, name: str, database: str = "silt") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    House(folder, database=database).create(name, rows(0, 1))


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["runs", *arguments]) == 2
    return str(capsys.readouterr().err)


def test_the_projects_profile_selects_the_warehouse(project: Path, tables: Tables) -> None:
    make(project / "house", "analytics.orders")
    assert tables() == ["silt.analytics.orders"]
    assert tables("orders") == ["silt.analytics.orders"]


def test_the_nearest_project_above_is_used(project: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    make(project / "house", "analytics.orders")
    monkeypatch.chdir(project / "models" / "staging")
    monkeypatch.setenv("DBT_PROFILES_DIR", str(project))
    assert tables() == ["silt.analytics.orders"]


def test_a_target_may_have_several_databases_relative_to_the_project(project: Path, tables: Tables) -> None:
    make(project / "prod_house", "main.orders", "live")
    make(project.parent / "raw_HOUSE", "main.events", "raw")
    assert tables("--target", "prod") == ["live.main.orders", "raw.main.events"]
    assert tables("-t", "prod", "raw.main.events") == ["raw.main.events"]


@pytest.mark.parametrize("name", ["SHOP_TARGET", "DBT_TARGET", "DBT_ENGINE_TARGET"])
def test_environment_variables_select_the_target(
    project: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make(project / "prod_house", "main.orders", "live")
    monkeypatch.setenv(name, "prod")
    assert tables() == ["live.main.orders"]


def test_environment_variables_are_rendered(
    project: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(tmp_path / "elsewhere", "main.orders")
    monkeypatch.setenv("SHOP_HOUSE", str(tmp_path / "elsewhere"))
    assert tables() == ["silt.main.orders"]


def test_the_home_folder_is_searched_last_for_profiles(project: Path, tables: Tables, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".dbt"
    home.mkdir(parents=True)
    (project / "profiles.yml").rename(home / "profiles.yml")
    make(project / "house", "main.orders")
    make(project / "warehouse", "main.others")
    assert tables() == ["silt.main.orders"]
    assert tables("--profile", "other") == ["silt.main.others"]


def test_a_named_project_and_named_profiles_are_used_from_anywhere(
    project: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(project / "house", "main.orders")
    monkeypatch.chdir(tmp_path)
    assert tables("--project-dir", "project", "--profiles-dir", "project") == ["silt.main.orders"]


def test_a_named_warehouse_takes_precedence_over_the_project(project: Path, tables: Tables, tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", "main.orders")
    (project / "profiles.yml").write_text("no: profile")
    assert tables("--warehouse", "../elsewhere") == ["silt.main.orders"]


@pytest.mark.parametrize("inside", [False, True])
def test_without_a_project_the_current_folders_warehouse_is_used(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    make(tmp_path / "warehouse", "main.orders")
    monkeypatch.chdir(tmp_path / "warehouse" if inside else tmp_path)
    assert tables() == ["silt.main.orders"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "house does not exist yet"),
        (["--target", "qa"], "has no target qa; its targets are: dev, prod, spark, remote"),
        (["--profile", "shops"], "there is no profile shops"),
        (["--target", "spark"], "is of the type spark, not silt"),
        (["--target", "remote"], "is in a storage that is not supported: hdfs"),
        (["--profiles-dir", "/nowhere"], "/nowhere/profiles.yml does not exist"),
        (["--project-dir", "/nowhere"], "/nowhere/dbt_project.yml does not exist"),
    ],
)
def test_an_unusable_profile_is_reported_with_the_remedy(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in error(capsys, *arguments)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ env_var('NO_SUCH') }}", "the environment variable NO_SUCH, which is not set"),
        ("{{ var('house') }}", "the variable house, which only dbt's `--vars` sets"),
        ("{{ nonsense( }}", "cannot be rendered"),
    ],
)
def test_a_field_that_cannot_be_rendered_is_reported_with_the_remedy(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    field = json.dumps(text)
    (project / "profiles.yml").write_text(
        f"shop: {{target: dev, outputs: {{dev: {{type: silt, warehouse: {field}}}}}}}"
    )
    message = error(capsys)
    assert said in message
    assert "--warehouse PATH" in message


@pytest.mark.parametrize("content", ["a: [", "- 1", ""])
def test_an_unreadable_project_is_reported(project: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    (project / "dbt_project.yml").write_text(content)
    assert "dbt_project.yml" in error(capsys)


def test_if_no_warehouse_is_found_the_searched_locations_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message = error(capsys)
    assert "neither a dbt project nor a warehouse" in message
    assert "--warehouse PATH" in message


def test_a_table_given_by_path_needs_no_warehouse(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "house", "main.orders")
    monkeypatch.chdir(tmp_path / "house" / "main" / "orders")
    assert tables(".") == ["."]
    assert tables("../orders") == ["../orders"]


def test_skipped_work_is_read_from_the_projects_journal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house = House(project / "house")
    house.running("nightly").create("main.orders", rows(0, 1))
    entries: list[dict[str, Any]] = [
        {"time": "2026-01-31T12:00:00.000+00:00", "table": "silt.main.orders", "run_id": "nightly", **more}
        for more in ({"table_version": 0}, {"table_version": 0, "skipped": True, "node_id": "model.shop.orders"})
    ]
    (project / "target").mkdir()
    (project / "target" / "silt_commits.jsonl").write_text("".join(json.dumps(each) + "\n" for each in entries))
    assert main(["runs", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["skipped"] == 1
    assert main(["run", "nightly"]) == 0
    assert "2026-01-31 12:00:00  model.shop.orders" in capsys.readouterr().out
