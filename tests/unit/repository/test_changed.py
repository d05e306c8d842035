"""The tests of a change are the tests that import or name the changed files, the nearest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changed import distances, imports, reached_by_name, selected

FILES = {
    "dbt/core.py": "x = 1",
    "dbt/near.py": "from dbt import core",
    "dbt/far.py": "import dbt.near",
    "dbt/cli/__init__.py": "",
    "dbt/cli/__main__.py": "from dbt.cli import main",
    "dbt/cli/main.py": "import importlib\ndef run(name): return importlib.import_module(f'dbt.cli.{name}')",
    "dbt/cli/show.py": "x = 1",
    "tests/test_near.py": "from dbt.near import core",
    "tests/test_far.py": "from dbt.far import near",
    "tests/test_command.py": "COMMAND = ['python', '-m', 'dbt.cli']",
    "tests/test_other.py": "x = 'dbt'",
    "tests/helper.py": "import dbt.core",
}


def graph(root: Path) -> dict[str, set[str]]:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return imports(root)


def test_the_distance_of_a_test_is_the_number_of_imports_to_the_change(tmp_path: Path) -> None:
    reached = distances(graph(tmp_path), ["dbt/core.py"])
    assert reached == {
        "dbt/core.py": 0,
        "dbt/near.py": 1,
        "dbt/far.py": 2,
        "tests/test_near.py": 2,
        "tests/test_far.py": 3,
        "tests/helper.py": 1,
    }


def test_modules_that_are_loaded_or_run_by_name_count_as_imports(tmp_path: Path) -> None:
    reached = distances(graph(tmp_path), ["dbt/cli/show.py"])
    assert "tests/test_command.py" in reached and "tests/test_other.py" not in reached


def test_the_nearest_tests_within_the_budget_run_and_a_changed_test_always_runs() -> None:
    reached = {"dbt/core.py": 0, "tests/test_own.py": 0, "tests/test_near.py": 1, "tests/test_far.py": 2}
    seconds = {"tests/test_own.py": 50.0, "tests/test_near.py": 20.0, "tests/test_far.py": 20.0}
    found = selected(reached, seconds, budget=75)
    assert found.run == ("tests/test_own.py", "tests/test_near.py")
    assert found.left_out == ("tests/test_far.py",)
    assert selected(reached, seconds, budget=0).run == ("tests/test_own.py",)


TEXTS = {
    "tests/functional/incremental/test_incremental_merge.py": "incremental_strategy='merge'",
    "tests/functional/materializations/test_seeds.py": "dbt seed",
    "tests/functional/runs/test_publishing.py": "materialized='incremental'",
    "tests/unit/report/test_page.py": "page",
    "tests/unit/engine/sql/test_grammar.py": "fixtures/sql/rows.sql",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("macros/materializations/incremental.sql", {"test_incremental_merge": 1, "test_publishing": 2}),
        ("macros/materializations/seed.sql", {"test_seeds": 1}),
        ("dbt/adapters/silt/engine/commands/rows/merge.py", {"test_incremental_merge": 1}),
        ("dbt/adapters/silt/methods/seeds.py", {"test_seeds": 1}),
        ("dbt/adapters/silt/report/static/graph.js", {"test_page": 1}),
        ("tests/functional/runs/conftest.py", {"test_publishing": 1}),
        ("tests/conftest.py", dict.fromkeys((Path(each).stem for each in TEXTS), 1)),
        ("tests/fixtures/sql/rows.sql", {"test_grammar": 2}),
        ("docs/index.md", {}),
    ],
)
def test_files_that_no_test_imports_reach_tests_by_name_or_folder(changed: str, expected: dict[str, int]) -> None:
    found = reached_by_name([changed], TEXTS)
    assert {Path(test).stem: distance for test, distance in found.items()} == expected
