"""Installations: wheel and sdist have the same content, and dbt finds the adapter in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from dbt.adapters.silt.__version__ import version

ROOT = Path(__file__).resolve().parents[2]


def build(target: str, source: Path, into: Path) -> Path:
    """Builds a distribution of a source tree and returns its file."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into), "--target", target]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=120)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the wheel's content, like an installation."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def sources(folder: str, below: str) -> set[str]:
    """Returns the files of a folder of the project by their names in the wheel."""
    found = ROOT.joinpath(folder).rglob("*")
    return {f"{below}/{path.relative_to(ROOT / folder)}" for path in found if path.is_file() and path.suffix != ".pyc"}


def run(code: str, installed: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip()


def test_the_wheel_holds_the_package_the_macros_and_nothing_else(wheel: Path) -> None:
    expected = (
        sources("dbt/adapters/silt", "dbt/adapters/silt")
        | sources("include", "dbt/include/silt/include")
        | sources("macros", "dbt/include/silt/macros")
    )
    assert names(wheel) == expected
    assert wheel.name == f"dbt_silt-{version}-py3-none-any.whl"


def test_the_wheel_has_no_file_of_the_packages_that_it_shares_with_dbt(wheel: Path) -> None:
    shared = {"dbt/__init__.py", "dbt/adapters/__init__.py", "dbt/include/__init__.py"}
    assert not shared & names(wheel)


def test_a_wheel_built_from_the_sdist_has_the_same_files(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"} <= set(os.listdir(source))
    assert names(build("wheel", source, tmp_path / "again")) == names(wheel)


def test_the_files_that_the_image_copies_suffice_for_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    before_install = (ROOT / "Dockerfile").read_text(encoding="utf-8").partition("pip install")[0]
    for copied, folder in re.findall(r"^COPY (.+) (\S+)$", before_install, re.MULTILINE):
        for name in copied.split():
            path = ROOT / name
            (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / "source" / folder)
    assert names(build("wheel", tmp_path / "source", tmp_path / "again")) == names(wheel)


def test_docker_does_not_ignore_the_files_that_the_image_copies() -> None:
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    lines = re.findall(r"^COPY (?:--\S+ )?(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {name for line in lines for name in line.split()} == admitted


def test_dbt_finds_the_adapter_and_its_macros_in_an_installation(installed: Path, tmp_path: Path) -> None:
    code = (
        "from dbt.adapters.silt import Plugin; from dbt.adapters.silt import __version__; "
        "print(Plugin.adapter.type(), Plugin.project_name, Plugin.include_path, __version__.__file__)"
    )
    kind, project, include, module = run(code, installed, tmp_path).split()
    assert (kind, project) == ("silt", "dbt_silt")
    assert include == str(installed / "dbt" / "include" / "silt" / "include")
    assert module.startswith(str(installed))
    macros = Path(include).parent / "macros"
    assert Path(include, "dbt_project.yml").is_file() and any(macros.rglob("*.sql"))


def test_tools_find_a_dialect_of_sqlglot_by_the_adapters_type(installed: Path, tmp_path: Path) -> None:
    code = (
        "from sqlglot.lineage import lineage; "
        "query = 'select count_if(is_late) as late from `silt`.`main`.`flights`'; "
        "schema = {'silt': {'main': {'flights': {'is_late': 'boolean'}}}}; "
        "print(lineage('late', query, schema=schema, dialect='silt').downstream[0].name)"
    )
    assert run(code, installed, tmp_path) == "flights.is_late"


def test_dbt_finds_the_adapter_and_its_macros_in_the_source_tree(tmp_path: Path) -> None:
    include = run("from dbt.adapters.silt import Plugin; print(Plugin.include_path)", ROOT, tmp_path)
    assert include == str(ROOT / "include")


def test_the_newest_version_in_the_changelog_is_the_packages_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d+\.\d+\.\d+)\]", text, re.MULTILINE)[0] == version


def test_dbt_lists_the_adapter_of_an_editable_install_and_python_imports_the_checkout(tmp_path: Path) -> None:
    code = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = tmp_path.glob("*.whl")
    assert names(built) == {"_dbt_silt.pth", "dbt/adapters/silt/__version__.py"}
