"""Where a profile's warehouse is, and what is answered of it without Spark."""

from __future__ import annotations

from pathlib import Path

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.session.environment import environment_of


def test_the_same_profile_has_one_environment_in_a_process(tmp_path: Path) -> None:
    first = environment_of(SiltCredentials(run_id="R1"), tmp_path)
    assert environment_of(SiltCredentials(run_id="R2"), tmp_path) is first
    assert environment_of(SiltCredentials(schema="other"), tmp_path) is not first
    assert environment_of(SiltCredentials(), tmp_path / "elsewhere") is not first


def test_names_are_answered_without_spark_and_without_making_anything(tmp_path: Path) -> None:
    environment = environment_of(SiltCredentials(databases={"raw": str(tmp_path / "raw")}), tmp_path)
    assert environment.catalog.databases() == ["raw", "silt"]
    assert environment.catalog.schemas("silt") == []
    assert list(tmp_path.iterdir()) == []


def test_every_databases_folder_is_relative_to_the_project(tmp_path: Path) -> None:
    environment = environment_of(SiltCredentials(warehouse="own", databases={"raw": "landing/raw"}), tmp_path)
    for database, folder in (("silt", "own"), ("raw", "landing/raw")):
        environment.catalog.create_schema(database, "main")
        assert (tmp_path / folder / "main").is_dir()
