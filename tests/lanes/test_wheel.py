"""The wheel in a separate environment, outside of the source tree: the first commands of a new user."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from dbt.adapters.silt.session.java_launch import find_java
from tests.lanes.environment import ROOT, Environment, install
from tests.lanes.lanes import DBT_1_11

pytestmark = pytest.mark.long

ANSWERS = {"Which database would you like to use?": "1"}
"""The answers to `dbt init`'s questions, in order."""


@dataclass(frozen=True)
class User:
    """A home, a folder and an environment, in which commands are run as a new user runs them."""

    home: Path
    folder: Path
    environment: Environment

    def types(self, *command: str, answers: str = "", fails: bool = False) -> str:
        """Returns the output of a command of the environment, which must succeed, or fail."""
        program = self.environment.python.with_name(command[0])
        assert program.is_file()
        done = subprocess.run(
            [program, *command[1:]],
            cwd=self.folder,
            env={**self.environment.variables(), "HOME": str(self.home), "NO_COLOR": "1", "SILT_CLASS_ARCHIVE": "on"},
            input=answers,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and its dependencies."""
    wheels = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(wheels), "--target", "wheel"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    made = Environment(tmp_path_factory.mktemp("installed"), Path(os.path.realpath(find_java().path)).parents[1])
    [wheel] = map(str, wheels.iterdir())
    install(made, Path(sys.executable), [(wheel, *DBT_1_11)])
    return made


@pytest.fixture(scope="module")
def user(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> User:
    """A user who has answered the questions of `dbt init`."""
    home = tmp_path_factory.mktemp("home")
    asked = User(home, home, environment).types("dbt", "init", "shop", answers="\n".join(ANSWERS.values()) + "\n")
    positions = [asked.index(question) for question in ANSWERS]
    assert positions == sorted(positions)
    profile = home / ".dbt" / "profiles.yml"
    written = profile.read_text(encoding="utf-8")
    assert "      # Spark keeps running" in written
    profile.write_text(written.replace("      keep_alive: 15 minutes\n", ""), encoding="utf-8")  # it would stay
    return User(home, home / "shop", environment)


def test_dbt_init_writes_a_profile_that_dbt_debug_accepts(user: User) -> None:
    profile = (user.home / ".dbt" / "profiles.yml").read_text(encoding="utf-8")
    assert "type: silt" in profile and "warehouse: warehouse" in profile
    said = user.types("dbt", "debug")
    assert "All checks passed!" in said
    assert "class-data archive: none yet: it is created in the background when this command ends" in said


def test_the_first_command_started_the_creation_of_a_class_archive(user: User) -> None:
    folder = user.environment.python.parents[1] / "var" / "dbt-silt"
    deadline = time.monotonic() + 600
    while not list(folder.glob("*.jsa")):
        assert time.monotonic() < deadline, list(folder.iterdir())
        time.sleep(1)
    [archive] = folder.glob("*.jsa")
    assert f"class-data archive: {archive}" in user.types("dbt", "debug")


def test_the_models_of_dbt_init_are_run_and_silt_shows_the_run(user: User) -> None:
    said = user.types("dbt", "run", "--vars", "silt_run_id: first")
    assert "Completed successfully" in said
    assert (user.folder / "warehouse" / "main" / "my_first_dbt_model" / "_delta_log").is_dir()
    assert "first" in user.types("silt", "runs")
    assert "CREATE TABLE AS SELECT" in user.types("silt", "history", "main.my_first_dbt_model")


def test_the_package_is_imported_from_the_environment(user: User) -> None:
    code = "import dbt.adapters.silt as silt; print(silt.__file__)"
    assert str(user.environment.folder) in user.types("python", "-c", code)
