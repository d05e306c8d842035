"""Prepares a public project from a folder alone, with its packages."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.files import write_files
from tests.projects.__main__ import Built, main
from tests.projects.cases import CASES, Case, Step
from tests.projects.workplace import MissingError, Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """A package with its own tests, and another that it needs."""
    files = {
        "tools-repo/dbt_project.yml": "name: tools",
        "tools-repo/packages.yml": "packages: [{package: someone/more_tools, version: 1.0.0}]",
        "tools-repo/macros/integration_tests/one.sql": "",
        "tools-repo/integration_tests/dbt_project.yml": "{name: tests_of_tools, models: {+file_format: delta}}",
        "tools-repo/integration_tests/packages.yml": "packages: [{local: ../}]",
        "more/dbt_project.yml": "name: more_tools",
    }
    write_files(tmp_path / "projects", files)
    return Workplace(tmp_path / "projects", tmp_path / "scratch")


def test_a_project_gets_all_packages_that_it_and_its_packages_require(workplace: Workplace) -> None:
    case = Case(
        "tools", "tools-repo/integration_tests", files={"a/b.sql": "x"}, config={"models": {"x": {"+tags": "t"}}}
    )
    place = workplace.make(case)
    files = {file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file()}
    assert files == {
        "a/b.sql",
        "dbt_project.yml",
        "profiles.yml",
        "dbt_packages/more_tools/dbt_project.yml",
        "dbt_packages/tools/dbt_project.yml",
        "dbt_packages/tools/macros/integration_tests/one.sql",
        "dbt_packages/tools/packages.yml",
    }
    assert yaml.safe_load((place / "dbt_project.yml").read_text())["models"] == {
        "+file_format": "delta",
        "x": {"+tags": "t"},
    }
    assert set(yaml.safe_load((place / "profiles.yml").read_text())) == {"tests_of_tools"}


def test_a_missing_project_or_package_is_named(workplace: Workplace, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="elsewhere"):
        workplace.make(Case("elsewhere", "elsewhere"))
    (tmp_path / "projects" / "more" / "dbt_project.yml").unlink()
    with pytest.raises(MissingError, match="more_tools"):
        workplace.make(Case("tools", "tools-repo/integration_tests"))


def test_an_empty_folder_lacks_every_project_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["projects", str(tmp_path), "--scratch", str(tmp_path / "scratch")])
    assert main() == 0
    assert capsys.readouterr().out.count(": missing: ") == len(CASES)


def test_an_unexpected_failure_and_an_unexpected_success_of_a_node_are_reported() -> None:
    step = Step(counts={"pass": 1, "error": 1}, reasons={"a": "Spark has no such type"})
    assert Built({"pass": 1, "error": 1}, {"a": "no type"}, 1).complaints(step) == []
    assert Built({"pass": 2}, {}, 0).complaints(step) == [
        "a passes: Spark has no such type",
        "the counts must be 1 error, 1 pass",
    ]
    assert Built({"error": 1}, {"b": "oops"}, 1).complaints(Step()) == ["b: oops"]
    assert Built({}, {}, 2).complaints(Step()) == ["dbt ended with 2"]
