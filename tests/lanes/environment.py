"""Creates the environment of a lane with its Python and Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lanes.lanes import Lane

ROOT = Path(__file__).resolve().parents[2]
LANES_FOLDER = ROOT / ".lanes"


class LaneError(Exception):
    """The machine lacks something that a lane needs."""


@dataclass(frozen=True)
class Environment:
    """A Python with the lane's packages, and the home of a Java."""

    folder: Path
    java_home: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def variables(self) -> dict[str, str]:
        """Returns this process's variables, except those that lead to another Python, Java or Spark."""
        leading = ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
        inherited = {name: value for name, value in os.environ.items() if name not in leading}
        return {**inherited, "JAVA_HOME": str(self.java_home)}


def make(lane: Lane) -> Environment:
    """Creates the lane's environment in its folder, and replaces an existing one.

    Raises:
        LaneError: if the Python, the Java or uv is missing, or the packages could not be installed.
    """
    python = _python(lane.python)
    folder = LANES_FOLDER / lane.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = Environment(folder, _java(folder, lane.java))
    install(environment, python, lane.installs)
    return environment


def install(environment: Environment, python: Path, installs: Sequence[Sequence[str]]) -> None:
    """Creates the virtual environment, and calls `uv pip install` with each of the lists of arguments."""
    uv("venv", "--quiet", "--python", str(python), str(environment.folder / "venv"))
    for arguments in installs:
        uv("pip", "install", "--quiet", "--python", str(environment.python), *arguments)


def kept(lane: Lane) -> Environment:
    """Returns the lane's existing environment.

    Raises:
        LaneError: if it does not exist yet.
    """
    folder = LANES_FOLDER / lane.name
    if not (folder / "java-home").exists():
        raise LaneError("its environment was not made yet")
    return Environment(folder, Path((folder / "java-home").read_text().strip()))


def _python(version: str) -> Path:
    for candidate in _candidates(version):
        asked = [str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        if said == version:
            return candidate
    raise LaneError(f"there is no Python {version} on PATH or below ~/.pyenv")


def _candidates(version: str) -> Iterator[Path]:
    if found := shutil.which(f"python{version}"):
        yield Path(found)
    yield from sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python"))
    yield Path(sys.executable)


def _java(folder: Path, lowest: int) -> Path:
    """Returns the home of a Java; installs one if the system's package manager has it."""
    note = folder / "java-home"
    done = subprocess.run([ROOT / ".ci" / "java", note, str(lowest)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LaneError(done.stderr.strip().splitlines()[-1])
    return Path(note.read_text().strip())


def uv(*arguments: str) -> None:
    """Runs uv with a cache that the lanes share, so that each version of PySpark is built once."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    uv = shutil.which("uv", path=places)
    if uv is None:
        raise LaneError("uv is not installed: run `make setup` again, or install it")
    variables = {"UV_CACHE_DIR": str(LANES_FOLDER / "cache"), "DIST_EXTRA_CONFIG": str(ROOT / ".ci" / "build.cfg")}
    done = subprocess.run(
        [uv, *arguments], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LaneError(f"uv {' '.join(arguments)}: {done.stderr.strip()}")
