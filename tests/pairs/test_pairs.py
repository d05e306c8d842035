"""Each pair of capabilities has a test, or a reason why the two cannot meet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.pairs import sources
from tests.pairs.capabilities import CAPABILITIES, Pair, mentions, pairs, wanted

MOST_PAIRS = 4
"""How many pairs one test may show: more would be a test in which everything occurs and nothing is checked."""
SHORTEST_REASON = 40


def problems(table: list[Pair]) -> list[str]:
    """What is wrong with a table."""
    found = [
        f"{name(each)}: is in the table {number} times"
        for each, number in Counter(p.names for p in table).items()
        if number > 1
    ]
    listed = {pair.names for pair in table}
    found += [f"{name(each)}: has neither a test nor a reason" for each in wanted() - listed]
    found += [f"{name(each)}: is no pair of two capabilities" for each in listed - wanted()]
    found += [problem for pair in table for problem in of_pair(pair)]
    shown = Counter(pair.test for pair in table if pair.test)
    return found + [f"{test}: is named for {number} pairs" for test, number in shown.items() if number > MOST_PAIRS]


def name(names: frozenset[str]) -> str:
    return " x ".join(sorted(names))


def of_pair(pair: Pair) -> list[str]:
    if pair.reason:
        is_sentence = len(pair.reason) >= SHORTEST_REASON and pair.reason.endswith(".")
        return [] if is_sentence else [f"{name(pair.names)}: `{pair.reason}` is not a reason"]
    text = sources.text_of(pair.test)
    if text is None:
        return [f"{name(pair.names)}: there is no test {pair.test}"]
    missing = [each for each in pair.names if each in CAPABILITIES and not mentions(f"{pair.test}\n{text}", each)]
    return [f"{name(pair.names)}: {pair.test} has no word of {each}" for each in missing]


def test_each_pair_has_a_test_or_a_reason() -> None:
    found = problems(list(pairs()))
    assert found == [], "\n".join(found)


A_TEST = "tests/functional/runs/test_publishing.py::TestReuse::test_a_published_run_is_reused_until_an_input_changes"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "publish x reuse: has neither a test nor a reason"),
        (f"publish x reuse: {A_TEST}\nreuse x publish: {A_TEST}", "publish x reuse: is in the table 2 times"),
        (f"publish x reuse: {A_TEST}_never", f"publish x reuse: there is no test {A_TEST}_never"),
        ("publish x reuse: tests/none.py::test_x", "publish x reuse: there is no test tests/none.py::test_x"),
        (
            f"publish x reuse: {A_TEST}\npublish x streams: {A_TEST}",
            "publish x streams: is no pair of two capabilities",
        ),
        ("publish x reuse: - not tested.", "publish x reuse: `not tested.` is not a reason"),
        (
            "publish x reuse: tests/unit/test_words.py::test_x",
            "publish x reuse: there is no test tests/unit/test_words.py::test_x",
        ),
        (
            f"publish x reuse: {A_TEST}\nmicrobatch x clones: {A_TEST}",
            f"clones x microbatch: {A_TEST} has no word of clones",
        ),
    ],
)
def test_a_table_that_shows_too_little_is_refused(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text(line)
    assert problem in problems(list(pairs(tmp_path / "pairs.txt")))


def test_a_test_that_is_named_for_too_many_pairs_is_refused() -> None:
    table = [Pair(each, A_TEST) for each in list(wanted())[: MOST_PAIRS + 1]]
    assert f"{A_TEST}: is named for {MOST_PAIRS + 1} pairs" in problems(table)


def test_a_line_that_is_no_pair_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("publish reuse\n")
    with pytest.raises(ValueError, match="publish reuse"):
        list(pairs(tmp_path / "pairs.txt"))


def test_tests_of_base_classes_fixtures_and_imported_values_belong_to_a_test() -> None:
    text = sources.text_of(A_TEST)
    assert text is not None
    for words in ('"publish": "after_tests"', "+reuse", "def reused(", "def with_id("):
        assert words in text
    assert "test_changes_that_a_run_makes" not in text
