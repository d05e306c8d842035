"""`silt diff dev prod`: the models of two targets of the profile are compared by their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.documents import View
from tests.files import write_files
from tests.unit.cli.house import House, rows

Silt = Callable[..., str]

TARGETS = {
    "dev": {"schema": "dev"},
    "dev_ann": {"schema": "dev_ann"},
    "prod": {"schema": "prod"},
    "same": {"schema": "PROD"},
    "far": {"schema": "prod", "warehouse": "far"},
    "other": {"type": "duckdb"},
    "unset": {"schema": "{{ env_var('NO_SUCH_VARIABLE') }}"},
}


@pytest.fixture
def project(tmp_path: Path, house: House) -> Path:
    """A project whose targets build into schemas of one warehouse, and one target with a warehouse of its own."""
    outputs = {name: {"type": "silt", "warehouse": str(house.folder), **fields} for name, fields in TARGETS.items()}
    outputs["far"]["warehouse"] = str(tmp_path / "far")
    profiles = json.dumps({"shop": {"target": "dev", "outputs": outputs}})
    write_files(tmp_path, {"dbt_project.yml": "name: shop\nprofile: shop\n", "profiles.yml": profiles})
    for table in ("dev.orders", "prod.orders", "dev.only", "dev_staging.raw", "prod_staging.raw", "dev_ann.orders"):
        house.create(table, rows(0, 5))
    house.append(house.catalog.table(house.name("prod.orders")), rows(5, 1))
    house.create("dev_dbt_test__audit.failed", rows(0, 1))
    for schema in ("dev", "prod"):
        code = f"select * from `silt`.`{schema}`.`orders` join `silt`.`{schema}_staging`.`raw`"
        name = house.name(f"{schema}.seen")
        house.catalog.put_view(View(name, code, current_database="silt", current_schema=schema))
    return tmp_path


@pytest.fixture
def diff(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs `silt diff --json` in the project; returns the change of each relation, or the error."""
    monkeypatch.chdir(project)

    def run(*arguments: str) -> Any:
        code = main(["diff", *arguments, "--json", "--profiles-dir", str(project)])
        printed = capsys.readouterr()
        return printed.err if code == 2 else {each["name"]: each for each in json.loads(printed.out)["relations"]}

    return run


def test_the_models_of_two_targets_are_compared_by_name_without_their_schemas(diff: Callable[..., Any]) -> None:
    found = diff("dev", "prod", "--key", "id")
    assert {name: each["change"] for name, each in found.items()} == {
        "orders": "changed",
        "only": "dropped",
        "seen": "equal",
        "staging.raw": "equal",
    }
    assert (found["orders"]["added"], found["orders"]["removed"], found["orders"]["changed"]) == (1, 0, 0)
    assert {name: each["change"] for name, each in diff("prod", "dev").items()}["only"] == "created"


def test_the_schema_of_another_target_is_no_custom_schema(diff: Callable[..., Any]) -> None:
    assert set(diff("dev_ann", "prod")) == {"orders", "seen", "staging.raw"}


def test_targets_may_have_warehouses_of_their_own(diff: Callable[..., Any], project: Path) -> None:
    folder = project / "far"
    folder.mkdir()
    House(folder).create("prod.orders", rows(0, 6))
    assert diff("prod", "far", "--table", "orders")["orders"]["change"] == "equal"


def test_the_key_is_declared_by_the_table_or_the_manifest(diff: Callable[..., Any], project: Path) -> None:
    node = {"database": "silt", "schema": "dev", "name": "orders", "config": {"unique_key": "id"}}
    write_files(project / "target", {"manifest.json": json.dumps({"nodes": {"model.shop.orders": node}})})
    assert diff("dev", "prod")["orders"]["key"] == ["id"]


def test_a_view_with_other_code_is_replaced(diff: Callable[..., Any], house: House) -> None:
    other = replace(house.catalog.view(house.name("prod.seen")), text="select 1")
    house.catalog.put_view(other, replace=True)
    assert diff("dev", "prod")["seen"]["change"] == "replaced"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["dev", "porduction"], "`porduction` is not a target of the profile, which has the targets dev, dev_ann"),
        (["prod", "same"], "have the same warehouse and schema"),
        (["dev", "dev"], "have the same warehouse and schema"),
        (["dev", "other"], "of the type duckdb, not silt"),
        (["dev", "unset"], "NO_SUCH_VARIABLE, which is not set"),
        (["dev", "far"], "does not exist yet"),
        (["dev", "prod", "--table", "nothing"], "neither dev nor prod has `nothing`"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(diff: Callable[..., Any], arguments: list[str], problem: str) -> None:
    assert problem in diff(*arguments)


def test_names_of_targets_come_before_names_of_tables(diff: Callable[..., Any], house: House) -> None:
    house.create("dev.prod", rows(0, 1))
    house.create("dev.dev", rows(0, 2))
    assert "orders" in diff("dev", "prod")


def test_a_table_that_is_empty_in_one_target_has_lost_its_rows_there(diff: Callable[..., Any], house: House) -> None:
    house.create("prod.only", [])
    assert diff("dev", "prod")["only"]["removed"] == 5
