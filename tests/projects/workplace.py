"""Prepares a project in its own folder, with its packages next to it: nothing is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.files import write_files
from tests.projects.cases import Case

ASKED = ("packages.yml", "dependencies.yml", "package-lock.yml")
LEFT_OUT = (".git", "target", "logs", "dbt_packages")


class MissingError(Exception):
    """The folder of all projects lacks a project or package."""


@dataclass(frozen=True)
class Workplace:
    """The folder of all projects, and a folder for builds.

    Args:
        projects: has a folder for each project.
        scratch: gets a folder for each case.
    """

    projects: Path
    scratch: Path

    def make(self, case: Case) -> Path:
        """Returns the folder of a copy of the project, with its packages, the files of the case and a profile.

        Raises:
            MissingError: if the project, or a package that it needs, is missing.
        """
        source = self.projects / case.folder
        if not (source / "dbt_project.yml").is_file():
            raise MissingError(case.folder)
        packages = {name: self._folder_of(name) for name in case.packages}
        for folder in [source, *packages.values()]:
            packages |= dict(self._asked_for(folder))
        place = self.scratch / case.name.replace(" ", "-").replace(",", "")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place, ignore=_not_copied)
        for name in ASKED:
            (place / name).unlink(missing_ok=True)
        for name, folder in packages.items():
            shutil.copytree(folder, place / "dbt_packages" / name, ignore=_not_copied)
        self._configure(case, place)
        return place

    def unknown(self, known: set[str]) -> Iterator[str]:
        """Returns the projects of the folder without a case."""
        for folder in sorted(self.projects.iterdir()):
            if (folder / "dbt_project.yml").is_file() and folder.name not in known:
                yield folder.name

    def _configure(self, case: Case, place: Path) -> None:
        project = yaml.safe_load((place / "dbt_project.yml").read_text())
        merged = {**project, **{key: {**(project.get(key) or {}), **value} for key, value in case.config.items()}}
        (place / "dbt_project.yml").write_text(yaml.safe_dump(merged, sort_keys=False))
        files = {**case.files, "profiles.yml": yaml.safe_dump(_profile(project.get("profile", project["name"]), case))}
        write_files(place, files)

    def _asked_for(self, project: Path) -> Iterator[tuple[str, Path]]:
        """Returns the packages that a project requires, directly or through packages: name -> folder."""
        for name in ASKED[:2]:
            file = project / name
            for entry in (yaml.safe_load(file.read_text()) or {}).get("packages", []) if file.is_file() else []:
                folder = self._package(project, entry)
                yield yaml.safe_load((folder / "dbt_project.yml").read_text())["name"], folder
                yield from self._asked_for(folder)

    def _package(self, project: Path, entry: Mapping[str, Any]) -> Path:
        if "local" in entry:
            return (project / entry["local"]).resolve()
        if "package" in entry:
            return self._folder_of(entry["package"].rpartition("/")[2])
        return self._folder_of(entry["git"].rpartition("/")[2].removesuffix(".git"))

    def _folder_of(self, package: str) -> Path:
        """Returns the project of the folder with this name, as dbt or as its folder is called."""
        for file in sorted(self.projects.glob("*/dbt_project.yml")):
            if package in (file.parent.name, yaml.safe_load(file.read_text()).get("name")):
                return file.parent
        raise MissingError(package)


def _not_copied(folder: str, names: list[str]) -> list[str]:
    """Returns the folders that dbt created, and projects within the project."""
    return [name for name in names if name in LEFT_OUT or Path(folder, name, "dbt_project.yml").is_file()]


def _profile(name: str, case: Case) -> dict[str, Any]:
    target = {
        "type": "silt",
        "threads": 4,
        "spark_conf": {"spark.sql.shuffle.partitions": "4", "spark.sql.session.timeZone": "UTC"},
        **case.profile,
    }
    return {name: {"target": "dev", "outputs": {"dev": target}}}
