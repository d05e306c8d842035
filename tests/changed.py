"""Runs the tests that a change can reach, the nearest first, and a smoke test of dbt.

A change reaches tests through imports. dbt's tests import nothing of the package, and no test imports a macro, a script
of the report, a fixture or a workflow: such a change reaches tests by its name, in the name or the text of a test file,
or by its place (`REACHES`). A test of a central module would bring nearly all tests with it. So tests are selected by
their distance from the change, up to a budget of minutes, with the durations of earlier runs; the report states how
many tests are left to `make test-all`.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.durations import FILE as DURATIONS

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("dbt", "tests", "benchmarks", "docs")
SMOKE: Final = tuple(
    f"tests/functional/suite/materializations/test_basic.py::{name}"
    for name in ("TestSimpleMaterializations", "TestIncremental", "TestSnapshotTimestamp")
)
_OF_DBT: Final = "tests/functional/"
_INCREMENTAL: Final = ("tests/functional/incremental/", "tests/functional/suite/materializations/test_incremental")
_OF_RUNS: Final = ("tests/functional/runs/", "tests/functional/exactly_once/", "tests/publication/")
_OF_THE_REPOSITORY: Final = ("Makefile", ".github/", ".ci/", "README.md", "CONTRIBUTING.md")
_OF_THE_REPORT: Final = "dbt/adapters/silt/report/static/"
_SNAPSHOTS: Final = tuple(
    f"tests/functional/{each}" for each in ("materializations/test_snap", "suite/materializations/test_simple_snap")
)
REACHES: Final[tuple[tuple[str, tuple[str, ...], int], ...]] = (
    ("macros/materializations/incremental.sql", _INCREMENTAL, 2),
    ("macros/materializations/strategies.sql", _INCREMENTAL, 2),
    ("macros/materializations/snapshot", _SNAPSHOTS, 1),
    ("macros/materializations/", ("tests/functional/materializations/", "tests/functional/suite/materializations/"), 3),
    ("macros/adapters/", ("tests/functional/suite/relations/", "tests/functional/suite/commands/"), 2),
    ("macros/maintenance/", ("tests/functional/projects/test_maintenance", "tests/functional/projects/test_pack"), 2),
    ("macros/utils/", ("tests/functional/suite/test_utils", "tests/functional/projects/test_utils"), 1),
    ("macros/", (_OF_DBT,), 4),
    ("dbt/adapters/silt/materializations/incremental/", _INCREMENTAL, 2),
    ("dbt/adapters/silt/materializations/", ("tests/functional/materializations/",), 3),
    ("dbt/adapters/silt/engine/commands/merge/", ("tests/functional/incremental/test_incremental_merge",), 1),
    ("dbt/adapters/silt/runs/", _OF_RUNS, 2),
    ("dbt/adapters/silt/engine/builds/", ("tests/functional/reuse/",), 2),
    ("dbt/adapters/silt/methods/", (_OF_DBT,), 4),
    (_OF_THE_REPORT, ("tests/unit/report/",), 1),
    ("tests/fixtures/sql/", ("tests/unit/engine/sql/",), 1),
    ("include/", ("tests/unit/test_sample_profile", "tests/functional/projects/test_start"), 1),
    ("docs/", ("tests/documentation/",), 1),
    ("pyproject.toml", ("tests/unit/test_packaging", "tests/unit/test_versions_page", "tests/unit/repository/"), 1),
    *((file, ("tests/unit/repository/",), 1) for file in _OF_THE_REPOSITORY),
)
"""What a changed file reaches without an import: the beginnings of its path and of tests' paths, and the distance."""
_NAMED, _MENTIONED = 1, 2
"""The distances of a test whose file's name, or whose text, has the name of a changed file."""
_SHORT_SECONDS: Final = 1.0
"""The assumed seconds of a test file without a recorded duration."""


@dataclass(frozen=True)
class Selection:
    """Test files, as paths below the project's folder.

    Attributes:
        run: the selected files, the nearest to the change first.
        left_out: files that the change reaches too, but the budget does not allow.
    """

    run: tuple[str, ...]
    left_out: tuple[str, ...]


def imports(root: Path) -> dict[str, set[str]]:
    """Returns for each Python file the files that it imports; all are paths below the root."""
    files = {path.relative_to(root).as_posix() for folder in FOLDERS for path in (root / folder).rglob("*.py")}
    return {file: set(_imported(root / file, files)) - {file} for file in files}


def _imported(path: Path, files: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        for name in names:
            yield from _files_of(name, files)


def _files_of(name: str, files: set[str]) -> Iterator[str]:
    """Returns the files of a module, of a package that can be run, or of all modules whose names begin with
    `package.`.
    """
    place = name.replace(".", "/")
    yield from (file for file in (f"{place}.py", f"{place}/__init__.py", f"{place}/__main__.py") if file in files)
    if place.endswith("/") and f"{place}__init__.py" in files:
        yield from (file for file in files if file.startswith(place) and "/" not in file[len(place) :])


def distances(graph: Mapping[str, Iterable[str]], changed: Iterable[str]) -> dict[str, int]:
    """Returns each file that the changed files reach, with the number of imports between them."""
    importers = defaultdict(set)
    for file, targets in graph.items():
        for target in targets:
            importers[target].add(file)
    found = dict.fromkeys(changed, 0)
    queue = deque(found)
    while queue:
        file = queue.popleft()
        for importer in sorted(importers[file] - found.keys()):
            found[importer] = found[file] + 1
            queue.append(importer)
    return found


def reached_by_name(changed: Iterable[str], texts: Mapping[str, str]) -> dict[str, int]:
    """Returns the test files that changed files reach without an import, with their distances.

    Args:
        changed: the changed files, as paths below the project's folder.
        texts: the text of each test file.
    """
    found: dict[str, int] = {}
    for file in map(Path, changed):
        word = _word(file, texts)
        for test, text in texts.items():
            distance = min(_distances(file, word, test, text), default=None)
            if distance is not None:
                found[test] = min(distance, found.get(test, distance))
    return found


def _word(changed: Path, tests: Iterable[str]) -> str:
    """Returns the word that tests of a file have: its name if the name of a test of dbt has it, or its singular."""
    is_used = any(changed.stem in Path(test).stem for test in tests if test.startswith(_OF_DBT))
    return changed.stem if is_used else changed.stem.removesuffix("s")


def _distances(changed: Path, word: str, test: str, text: str) -> Iterator[int]:
    """Yields the distances of a test from a file that it does not import."""
    path = changed.as_posix()
    yield from (far for begin, tests, far in REACHES if path.startswith(begin) and test.startswith(tests))
    if changed.parts[0] == "tests":
        is_shared = changed.name in ("conftest.py", "__init__.py") or changed.suffix != ".py"
        if is_shared and test.startswith(f"{changed.parent.as_posix()}/"):
            yield _NAMED
        if changed.suffix != ".py" and f"{changed.parent.name}/{changed.name}" in text:
            yield _MENTIONED
    elif test.startswith(_OF_DBT) and changed.parts[0] in ("dbt", "macros") and not path.startswith(_OF_THE_REPORT):
        if word in Path(test).stem:
            yield _NAMED
        elif changed.suffix == ".sql" and re.search(rf"\b{word}", text):
            yield _MENTIONED


def selected(reached: Mapping[str, int], seconds: Mapping[str, float], budget: float) -> Selection:
    """Selects the nearest test files that fit.

    Args:
        reached: files, with their distances.
        seconds: the duration of each test file.
        budget: the total seconds allowed; a changed test file is run in any case.
    """
    tests = [file for file in reached if file.startswith("tests/") and Path(file).name.startswith("test_")]
    run: list[Any] = []
    left_out: list[Any] = []
    for file in sorted(tests, key=lambda each: (reached[each], seconds.get(each, 0.0), each)):
        budget -= seconds.get(file, _SHORT_SECONDS)
        (run if reached[file] == 0 or budget >= 0 else left_out).append(file)
    return Selection(tuple(run), tuple(left_out))


def texts_of_tests(root: Path) -> dict[str, str]:
    """Returns the text of each test file; the paths are below the root."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}


def seconds_of_files() -> dict[str, float]:
    """Returns the last recorded duration of each test file."""
    found: dict[str, float] = defaultdict(float)
    for scope, took in json.loads(DURATIONS.read_text(encoding="utf-8")).items():
        found[scope.partition("::")[0]] += took
    return found


def changed_files(base: str) -> list[str]:
    """Returns the files that differ from a revision, including new files and without deleted files."""
    commands = (("diff", "--name-only", "--diff-filter=d", base), ("ls-files", "--others", "--exclude-standard"))
    outputs = (subprocess.check_output(("git", *each), cwd=ROOT, text=True) for each in commands)
    return sorted({line for output in outputs for line in output.splitlines()})


def reached_since(base: str) -> dict[str, int]:
    """Returns the files that the changes since a revision reach, by imports or by name, with their distances."""
    changed = changed_files(base)
    by_name = reached_by_name(changed, texts_of_tests(ROOT))
    reached = {**by_name, **distances(imports(ROOT), changed)}
    return reached | {test: min(distance, reached[test]) for test, distance in by_name.items()}


def main() -> int:
    """Runs the tests; returns pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.changed")
    parser.add_argument("--base", default="HEAD", help="the revision that the change starts from")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    changed = changed_files(arguments.base)
    found = selected(reached_since(arguments.base), seconds_of_files(), arguments.minutes * 60 * arguments.workers)
    pages = [file for file in changed if file.startswith("docs/") and file.endswith(".md")]
    print(f"{len(changed)} changed files reach {len(found.run) + len(found.left_out)} test files", flush=True)
    if found.left_out:
        print(f"{len(found.left_out)} of them are left to `make test-all`", flush=True)
    code = _pytest("-m", "not long", "-n", str(arguments.workers), "--dist", "loadscope", *found.run, *SMOKE)
    if pages:
        names = " or ".join(Path(file).name for file in pages)
        code = _pytest("-m", "", "tests/documentation/test_pages.py", "-k", names) or code
    return code


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
