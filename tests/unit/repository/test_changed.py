"""The tests of a change are the tests that import or name the changed files, the nearest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changed import REACHES, ROOT, distances, imports, reached_by_name, selected

PLACES = ("*", ".ci/*", ".github/**/*", "dbt/**/*.*", "macros/**/*.sql", "include/*", "docs/*", "tests/**/*.*")
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
    "tests/functional/incremental/test_char_keys.py": "char",
    "tests/functional/materializations/test_seeds.py": "dbt seed",
    "tests/functional/runs/test_publishing.py": "materialized='incremental'",
    "tests/unit/report/test_page.py": "page",
    "tests/functional/runs/test_units_rules.py": "hooks",
    "tests/functional/projects/test_unit_tests.py": "unit tests",
    "tests/unit/engine/sql/test_grammar.py": "rows",
    "tests/unit/repository/test_contributors.py": "make",
    "tests/corpus/test_rows.py": "corpus/rows.json",
    "tests/documentation/test_pages.py": "pages",
}
OF_DBT = {Path(each).stem for each in TEXTS if each.startswith("tests/functional/")}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            "macros/materializations/incremental.sql",
            [{"test_incremental_merge"}, {"test_char_keys", "test_publishing"}],
        ),
        (
            "macros/materializations/strategies.sql",
            [{"test_incremental_merge", "test_char_keys"}, {"test_seeds"}, OF_DBT],
        ),
        ("macros/materializations/seed.sql", [{"test_seeds"}]),
        ("dbt/adapters/silt/engine/commands/merge/merge.py", [{"test_incremental_merge"}]),
        ("dbt/adapters/silt/methods/seeds.py", [{"test_seeds"}, OF_DBT]),
        ("dbt/adapters/silt/methods/units.py", [{"test_units_rules"}, OF_DBT]),
        ("dbt/adapters/silt/runs/logical_run/publication.py", [{"test_publishing", "test_units_rules"}]),
        ("dbt/adapters/silt/report/static/runs.js", [{"test_page"}]),
        ("tests/functional/runs/conftest.py", [{"test_publishing", "test_units_rules"}]),
        ("tests/conftest.py", [{Path(each).stem for each in TEXTS}]),
        ("tests/fixtures/sql/rows.sql", [{"test_grammar"}]),
        ("tests/data/corpus/rows.json", [{"test_rows"}]),
        ("docs/index.md", [{"test_pages"}]),
        ("Makefile", [{"test_contributors"}]),
        (".github/workflows/gate.yml", [{"test_contributors"}]),
    ],
)
def test_files_that_no_test_imports_reach_tests_by_name_or_place_the_nearest_first(
    changed: str, expected: list[set[str]]
) -> None:
    found = reached_by_name([changed], TEXTS)
    within = [{Path(test).stem for test in found if found[test] <= far} for far in sorted({*found.values()})]
    assert within[: len(expected)] == [set().union(*expected[: number + 1]) for number in range(len(expected))]


def test_the_beginnings_of_paths_in_the_table_exist() -> None:
    files = [file.relative_to(ROOT).as_posix() for place in PLACES for file in ROOT.glob(place)]
    begins = {begin for begin, tests, _ in REACHES for begin in (begin, *tests)}
    assert [begin for begin in sorted(begins) if not any(file.startswith(begin) for file in files)] == []
