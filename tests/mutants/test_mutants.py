"""The mutants of small sources, the list of equivalent mutants, and a sample of the core's mutants."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from textwrap import dedent, indent

import pytest

from dbt.adapters.silt.engine.kernel.transaction.changes import in_commit_timestamp
from tests.mutants.__main__ import CORE, ON_SPARK, chosen, fast_share, listed_equivalents, paths, score
from tests.mutants.functions import ROOT, NotReplaceableError, modules
from tests.mutants.kinds import mutants_of, mutated
from tests.mutants.runner import Result


def changes(body: str) -> list[str]:
    """The mutants of a function with this body, without the function's name."""
    return [mutant.name.removeprefix("f: ") for mutant in mutants_of("def f():\n" + indent(dedent(body), "    "))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.mutants", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


class TestKinds:
    def test_a_condition_is_negated(self) -> None:
        assert "negate `a if b else c` -> `a if not b else c`" in changes("return a if b else c")

    def test_a_branch_is_removed(self) -> None:
        found = changes("if a:\n    return 1")
        assert "drop `if a:` -> `if a: pass`" in found

    def test_an_operand_of_a_condition_is_removed(self) -> None:
        assert changes("return a and b") == ["drop `a and b` -> `b`", "drop `a and b` -> `a`"]

    def test_a_filter_of_a_comprehension_is_removed(self) -> None:
        assert changes("return [a for a in b if c]") == ["drop `[a for a in b if c]` -> `[a for a in b]`"]

    def test_a_comparison_includes_its_limit(self) -> None:
        assert changes("return a < b") == ["shift `a < b` -> `a <= b`"]

    def test_a_number_is_higher_by_1(self) -> None:
        assert changes("return a + 1") == ["shift `1` -> `2`"]

    def test_a_version_is_higher_by_1(self) -> None:
        assert changes("return f(version)") == ["shift `f(version)` -> `f(version + 1)`"]
        assert changes("return f(at=a.version)") == ["shift `f(at=a.version)` -> `f(at=a.version + 1)`"]

    def test_two_arguments_change_places(self) -> None:
        assert changes("return f(a, b, c)") == ["swap `f(a, b, c)` -> `f(b, a, c)`"]

    def test_equal_arguments_do_not_change_places(self) -> None:
        assert changes("return f(a, a)") == []

    def test_a_field_of_a_replacement_is_removed(self) -> None:
        assert changes("return replace(a, b=1 if c else d)")[0] == "field `replace(a, b=1 if c else d)` -> `replace(a)`"

    @pytest.mark.parametrize("statement", ["f()", "raise", "yield a", "yield from f()"])
    def test_a_call_is_left_out(self, statement: str) -> None:
        assert changes(statement) == [f"skip `{statement}` -> `pass`"]

    def test_a_context_manager_is_left_out(self) -> None:
        assert "skip `with f():` -> `if True:`" in changes("with f():\n    return a")

    def test_the_texts_of_errors_are_neither_changed_nor_part_of_a_name(self) -> None:
        assert changes("raise SomeError(f'{a + 1}', version + 1)") == ["skip `raise SomeError(...)` -> `pass`"]

    def test_docstrings_annotations_defaults_and_code_outside_of_functions_are_kept(self) -> None:
        source = 'LIMIT = 1\n\ndef f(a: Literal[1] = 2) -> Literal[3]:\n    """Returns a."""\n    return a\n'
        assert mutants_of(source) == []

    def test_equal_changes_of_a_function_have_different_names(self) -> None:
        assert changes("g()\ng()") == ["skip `g()` -> `pass`", "skip `g()` -> `pass` (2)"]

    def test_only_the_named_change_is_made(self) -> None:
        source = "def f():\n    g(1)\n    g(1)\n"
        second = mutants_of(source)[-1]
        assert ast.unparse(mutated(source, second)) == "def f():\n    g(1)\n    g(2)"


class TestFunctions:
    def test_a_mutant_changes_the_running_function_until_it_is_restored(self) -> None:
        path = "engine/kernel/transaction/changes.py"
        module = modules([path])[path]
        shift = next(each for each in mutants_of(module.source) if each.name == "in_commit_timestamp: shift `1` -> `2`")
        module.apply(shift)
        changed = in_commit_timestamp(5, 5)
        module.restore()
        assert (changed, in_commit_timestamp(5, 5)) == (7, 6)

    def test_a_function_that_does_not_run_cannot_be_changed(self) -> None:
        path = "engine/kernel/transaction/changes.py"
        module = replace(modules([path])[path], functions={})
        with pytest.raises(NotReplaceableError):
            module.apply(mutants_of(module.source)[0])


class TestCore:
    def test_each_equivalent_mutant_exists_and_has_a_reason(self) -> None:
        existing = {(path, mutant.name) for path, mutant in chosen(paths((*CORE, *ON_SPARK)), None, 0)}
        listed = listed_equivalents()
        assert sorted(listed.keys() - existing) == []
        assert [name for name, reason in listed.items() if len(reason) < 20] == []

    def test_a_seed_always_gives_the_same_sample(self) -> None:
        names = [[mutant.name for _, mutant in chosen(paths(CORE), 60, seed)] for seed in (1, 1, 2)]
        assert names[0] == names[1] != names[2]
        assert len(names[0]) == 60

    def test_mutants_that_no_test_reaches_count_as_survivors(self) -> None:
        results = [Result("a/b.py", "f: 1", 1, state) for state in ("killed", "timeout", "unreached", "impossible")]
        assert score(results) == ["a: 2 of 3 killed (66.7%)", "all: 2 of 3 killed (66.7%)"]

    def test_the_share_of_the_fast_set_counts_mutants_that_its_tests_kill_or_run_into_an_endless_loop(self) -> None:
        states = {"fast": "killed", "": "timeout", "slow": "killed"}
        results = [Result("a/b.py", f"f: {killer}", 1, state, killer=killer) for killer, state in states.items()]
        results.append(Result("a/b.py", "f: 4", 1, "survived"))
        assert fast_share(results, lambda test: test == "fast") == (  # type: ignore[comparison-overlap]
            pytest.approx(2 / 3),
            [
                "only slow kills: a/b.py:1: f: slow",
                "the fast set kills 2 of 3 mutants that the gate kills (66.7%)",
            ],
        )

    @pytest.mark.long
    def test_the_command_fails_if_the_tests_do_not_reach_the_mutants(self) -> None:
        ended = run(
            "engine/kernel/transaction/attempt.py", "--sample", "3", "--tests", "tests/unit/engine/kernel/table"
        )
        assert ended.returncode == 1, ended.stderr
        assert ended.stdout.count("unreached: engine/kernel/transaction/attempt.py:") == 3
