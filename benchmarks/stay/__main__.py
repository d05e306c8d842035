"""Times the waits of a user at a prompt: `python -m benchmarks.stay PROJECT --model NAME`.

Each way runs on its own copy of the project. Its first run of a command, which starts kept processes and builds the
tables, is shown separately. The other runs are whole processes like a user's, and all ways must leave the same number
of rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.projects import small_models
from benchmarks.stay.breakdown import Part, parts
from dbt.adapters.silt.command_server import control
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore

REPETITIONS = 5
_WARM_SECONDS = 60
LEFT_BY_RUNS = shutil.ignore_patterns("warehouse", "target", "logs", "dbt_packages", "__pycache__", ".user.yml")


@dataclass(frozen=True)
class Way:
    """The form of a command, and the settings of its profile."""

    name: str
    words: tuple[str, ...]
    fields: Mapping[str, str]


_KEPT = {"keep_alive": "30 minutes"}
WAYS = (
    Way("dbt", ("dbt",), {}),
    Way("dbt, a Spark that stays", ("dbt",), _KEPT),
    Way("silt dbt", ("silt", "dbt"), _KEPT),
)


@dataclass(frozen=True)
class Wait:
    """Seconds of one command in one way: of its first run, and of each later run."""

    way: str
    command: str
    first: float
    others: tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """The waits of a project, and the parts of one more `silt dbt` of each command."""

    waits: list[Wait]
    parts: dict[str, list[Part]]


def measure(
    project: Path, commands: Mapping[str, Sequence[str]], scratch: Path, repetitions: int = REPETITIONS
) -> Measured:
    """Runs each command in each way.

    Args:
        project: with its own dbt_project.yml.
        commands: name of each command -> its arguments of `dbt`.
        scratch: an empty folder.
        repetitions: of each command, after its first run.

    Raises:
        RuntimeError: if a command failed, or the ways left different numbers of rows.
    """
    waits, left, of_parts = [], [], {}
    for number, way in enumerate(WAYS):
        copy = scratch / str(number)
        shutil.copytree(project, copy, ignore=LEFT_BY_RUNS)
        _write_profile(copy, way)
        try:
            waits += [_wait(way, shown, words, copy, repetitions) for shown, words in commands.items()]
            left.append(_rows(copy))
            if way is WAYS[-1]:
                of_parts = {shown: list(parts(copy, words)) for shown, words in commands.items()}
        finally:
            _call(("silt", "session", "stop", "--force", "--yes"), copy)
    if any(each != left[0] for each in left):
        raise RuntimeError(f"the ways left other rows: {left}")
    return Measured(waits, of_parts)


def breakdown(measured: Measured) -> Table:
    """Returns a line for each part of each command, in seconds."""
    table = Table("command", "part", "seconds", title="where the time of `silt dbt` goes")
    for command, found in measured.parts.items():
        for each in found:
            table.add_row(command, each.name, f"{each.seconds:.3f}")
        table.add_section()
    return table


def shown(waits: Iterable[Wait], title: str) -> Table:
    """Returns a line per command and a column per way: the median of later runs, and the first in brackets."""
    table = Table(title=title)
    table.add_column("seconds: median of later runs (first)", no_wrap=True)
    lines: dict[str, list[str]] = {}
    for wait in waits:
        lines.setdefault(wait.command, []).append(f"{statistics.median(wait.others):.2f} ({wait.first:.1f})")
    for way in WAYS:
        table.add_column(way.name, justify="right")
    for command, cells in lines.items():
        table.add_row(command, *cells)
    return table


def _wait(way: Way, shown: str, words: Sequence[str], folder: Path, repetitions: int) -> Wait:
    line = (*way.words, *words)
    first = _seconds(line, folder)
    _wait_until_warm()
    return Wait(way.name, shown, first, tuple(_seconds(line, folder) for _ in range(repetitions)))


def _seconds(words: Sequence[str], folder: Path) -> float:
    started = time.perf_counter()
    _call(words, folder)
    return time.perf_counter() - started


def _wait_until_warm() -> None:
    """Waits until no command server uses processor time; the first answers before it is ready."""
    used, end = -1.0, time.monotonic() + _WARM_SECONDS
    while time.monotonic() < end:
        now = sum(_processor_seconds(each.process) for each in control.status())
        if now == used:
            return
        used = now
        time.sleep(1)


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _call(words: Sequence[str], folder: Path) -> None:
    program = Path(sys.executable).parent / words[0]
    ended = subprocess.run([str(program), *words[1:]], cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} failed:\n{ended.stdout}\n{ended.stderr}")


def _write_profile(folder: Path, way: Way) -> None:
    name = yaml.safe_load((folder / "dbt_project.yml").read_text(encoding="utf-8"))["profile"]
    target: dict[str, Any] = {"type": "silt", "threads": 1, **way.fields}
    text = yaml.safe_dump({name: {"target": "dev", "outputs": {"dev": target}}})
    (folder / "profiles.yml").write_text(text, encoding="utf-8")


def _rows(folder: Path) -> dict[str, int | None]:
    """Returns the number of rows of each table of the project's warehouse."""
    catalog = Catalog({"silt": LocalStore(folder / "warehouse")})
    return {str(name): row_count(catalog.table(name).snapshot().files) for name in catalog.all_tables()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table of a project, and that of the project of small merge models."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stay", description=__doc__)
    parser.add_argument("project", type=Path, help="a folder with a dbt_project.yml; it is copied")
    parser.add_argument("--model", required=True, help="the model of `dbt run --select`")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    given = parser.parse_args(arguments)
    one = ("run", "--select", given.model)
    commands = {"build": ("build",), "run": ("run",), f"run -s {given.model}": one, "parse": ("parse",)}
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        # With its own folders, the benchmark keeps and stops only its own processes.
        os.environ.update(XDG_CACHE_HOME=folder, XDG_RUNTIME_DIR="")
        measured = measure(given.project, commands, Path(folder, "project"), given.repetitions)
        console.print(shown(measured.waits, given.project.name))
        console.print(breakdown(measured))
        models = Path(folder, "models")
        small_models.make(models)
        merges = measure(models, {"run, small merges": ("run",)}, Path(folder, "small"), given.repetitions)
        console.print(shown(merges.waits, f"{small_models.MODELS} small merge models"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
