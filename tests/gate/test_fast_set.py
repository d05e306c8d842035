"""The fast set has a test for each minimum, names tests that exist, and is chosen by value for each second."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.gate.fast import Candidate, cover, least, minimums
from tests.gate.selection import FastSet, names_above
from tests.mutants.functions import ROOT

FAST = FastSet.read()
MOST_SECONDS = 720
"""Two workers for six minutes; `make check` and the starts of Spark take the rest of the ten."""


def defined(file: str) -> set[str]:
    """Returns the names of the classes and functions of a test file, those of classes with the class."""
    found = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {node.name} | {f"{node.name}::{each.name}" for each in node.body if hasattr(each, "name")}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


class TestTheSet:
    def test_each_statement_materialization_and_strategy_the_models_and_a_kill_have_a_test(self) -> None:
        assert sorted(minimums().keys() - FAST.minimums.keys()) == []

    def test_the_tests_of_the_minimums_are_in_the_set(self) -> None:
        assert [name for name, test in FAST.minimums.items() if FAST.name_of(test) is None] == []

    def test_the_tests_of_statements_run_spark_or_dbt(self) -> None:
        tests = [test for name, test in FAST.minimums.items() if name.startswith("route ")]
        of_spark = [test for test in tests if not test.startswith("tests/functional/")]
        assert [test for test in of_spark if not re.search("spark|house", text_of(test))] == []

    @pytest.mark.parametrize("file", FAST.tests)
    def test_each_test_exists(self, file: str) -> None:
        assert (ROOT / file).is_file()
        assert sorted({name.partition("[")[0] for name in FAST.tests[file]} - defined(file)) == []

    def test_two_workers_need_at_most_six_minutes(self) -> None:
        assert 0 < sum(FAST.seconds.values()) <= MOST_SECONDS
        assert FAST.seconds.keys() == FAST.tests.keys()


def text_of(test: str) -> str:
    return Path(ROOT, test.partition("::")[0]).read_text(encoding="utf-8").lower()


def made(tests: dict[str, tuple[str, ...]]) -> FastSet:
    return FastSet(dict.fromkeys(tests, 1.0), {}, tests)


class TestNames:
    def test_a_name_includes_the_cases_and_the_methods_below_it(self) -> None:
        assert names_above("a.py::T::f[1]") == ["a.py::T::f[1]", "a.py::T::f", "a.py::T"]
        chosen = made({"a.py": ("T", "f", "g[1]")})
        assert [chosen.name_of(f"a.py::{each}") for each in ("T::h", "f[2]", "g[1]")] == [
            "a.py::T",
            "a.py::f",
            "a.py::g[1]",
        ]
        assert [chosen.name_of(each) for each in ("a.py::g[2]", "a.py::U::h", "b.py::f")] == [None] * 3

    def test_a_name_without_a_test_in_the_files_of_a_run_is_missing(self) -> None:
        chosen = made({"a.py": ("f", "gone"), "b.py": ("h",)})
        assert chosen.missing(["a.py::f[1]", "a.py::g"]) == ["a.py::gone"]

    def test_a_set_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        chosen = FastSet({"a.py": 1.5}, {"route Merge": "a.py::f"}, {"a.py": ("f", "T::é[ü]")})
        chosen.write(tmp_path / "fast.json")
        read = FastSet.read(tmp_path / "fast.json")
        assert read == FastSet({"a.py": 1.5}, {"route Merge": "a.py::f"}, {"a.py": ("T::é[ü]", "f")})


def candidate(name: str, seconds: float, blocks: str, *facts: str) -> Candidate:
    return Candidate(name, seconds, frozenset(facts), dict.fromkeys(blocks, 1.0))


class TestChoice:
    def test_the_most_new_value_for_each_second_comes_first(self) -> None:
        dear, cheap, other = candidate("dear", 10, "abcd"), candidate("cheap", 1, "ab"), candidate("other", 1, "b")
        assert cover([dear, cheap, other], [], 2) == [cheap, other]
        assert cover([dear, cheap, other], [], 11) == [cheap, other]
        assert cover([dear, cheap, other], [], 12) == [cheap, other, dear]

    def test_a_part_that_is_reached_already_counts_half(self) -> None:
        first, again, new = candidate("first", 1, "abc"), candidate("again", 1, "abc"), candidate("new", 1, "de")
        assert cover([again, new], [first], 2) == [first, new]

    def test_a_candidate_without_value_is_not_added(self) -> None:
        assert cover([candidate("nothing", 1, "")], [], 9) == []

    def test_each_minimum_takes_its_cheapest_test_and_one_that_is_taken_already_costs_nothing(self) -> None:
        both, merge = candidate("both", 5, "", "route A", "route B"), candidate("merge", 1, "", "route B")
        wanted = {"A": ("route A",), "B": ("route B",)}
        assert least([merge, both], wanted) == {"A": both, "B": both}
        assert least([merge, both], {"B": ("route B",)}) == {"B": merge}

    def test_a_refusal_stands_for_a_statement_that_is_always_refused(self) -> None:
        refused, run = candidate("refused", 1, "", "refused A"), candidate("run", 9, "", "route A")
        wanted = {"A": ("route A", "refused A")}
        assert least([refused, run], wanted) == {"A": run}
        assert least([refused], wanted) == {"A": refused}

    def test_a_minimum_that_no_test_has_is_an_error(self) -> None:
        with pytest.raises(LookupError, match="route Z"):
            least([], {"route Z": ("route Z",)})
