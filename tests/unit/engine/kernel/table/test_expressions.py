"""The outcome of predicates for a row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.table.expressions import (
    FALSE,
    NULL,
    TRUE,
    UNKNOWN,
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    StartsWith,
    columns,
    evaluate,
    may_be_true,
    renamed,
)

A = Column.of("a")
NAN = float("nan")
THREE = {True: TRUE, False: FALSE, None: NULL}


@pytest.mark.parametrize("left", THREE)
@pytest.mark.parametrize("right", THREE)
def test_and_or_not_are_three_valued(left: bool | None, right: bool | None) -> None:
    both = (THREE[left], THREE[right])
    outcomes = {left, right}
    conjunction = False if False in outcomes else None if None in outcomes else True
    disjunction = True if True in outcomes else None if None in outcomes else False
    assert evaluate(And(both), {}) is conjunction
    assert evaluate(Or(both), {}) is disjunction
    assert evaluate(Not(THREE[left]), {}) is (None if left is None else not left)


def test_an_empty_and_is_true_and_an_empty_or_is_false() -> None:
    assert evaluate(And(()), {}) is True
    assert evaluate(Or(()), {}) is False


@pytest.mark.parametrize(
    ("operator", "value", "outcomes"),
    [
        ("=", 1, (True, False, None)),
        ("!=", 1, (False, True, None)),
        ("<", 2, (True, False, None)),
        ("<=", 1, (True, False, None)),
        (">", 1, (False, True, None)),
        (">=", 2, (False, True, None)),
        ("<=>", 1, (True, False, False)),
        ("<=>", None, (False, False, True)),
        ("=", None, (None, None, None)),
    ],
)
def test_comparisons_with_one_two_and_null(operator: Any, value: Any, outcomes: tuple[Any, ...]) -> None:
    predicate = Comparison(operator, A, value)
    assert tuple(evaluate(predicate, {"a": held}) for held in (1, 2, None)) == outcomes


@pytest.mark.parametrize(
    ("predicate", "outcome"),
    [
        (Comparison("=", A, NAN), True),
        (Comparison(">", A, float("inf")), True),
        (Comparison("<", A, NAN), False),
        (Comparison("<=>", A, NAN), True),
        (In(A, (1.0, NAN)), True),
    ],
)
def test_nan_equals_itself_and_is_above_all_numbers(predicate: Expression, outcome: bool) -> None:
    assert evaluate(predicate, {"a": NAN}) is outcome


def test_negative_zero_equals_zero() -> None:
    assert evaluate(Comparison("=", A, 0.0), {"a": -0.0}) is True
    assert evaluate(Comparison("<", A, 0.0), {"a": -0.0}) is False


def test_strings_compare_by_their_utf8_bytes() -> None:
    assert evaluate(Comparison(">", A, "\uffff"), {"a": "\U0001f680"}) is True


def test_in_with_null_is_never_false() -> None:
    assert evaluate(In(A, (1, None)), {"a": 1}) is True
    assert evaluate(In(A, (1, None)), {"a": 2}) is None
    assert evaluate(In(A, (1,)), {"a": None}) is None


def test_null_tests_and_prefixes_have_their_sql_outcomes() -> None:
    assert [evaluate(IsNull(A), {"a": held}) for held in (None, 0)] == [True, False]
    assert [evaluate(IsNotNull(A), {"a": held}) for held in (None, 0)] == [False, True]
    assert [evaluate(StartsWith(A, "ab"), {"a": held}) for held in ("abc", "a", None)] == [True, False, None]


def test_names_are_case_insensitive_and_a_null_struct_has_null_fields() -> None:
    nested = Comparison("=", Column.of("S", "x"), 1)
    assert evaluate(nested, {"s": {"X": 1}}) is True
    assert evaluate(nested, {"s": None}) is None


def test_an_unknown_expression_has_no_outcome() -> None:
    with pytest.raises(ValueError, match="too many values"):
        evaluate(UNKNOWN, {})


_VALUES = st.one_of(st.none(), st.sampled_from(["a", "b"]))
_LEAVES = st.one_of(
    st.builds(Comparison, st.sampled_from(["=", "<=>", "!=", "<"]), st.sampled_from([A, Column.of("b")]), _VALUES),
    st.builds(In, st.sampled_from([A, Column.of("B")]), st.lists(_VALUES, max_size=3).map(tuple)),
    st.sampled_from([IsNull(A), IsNotNull(Column.of("b")), TRUE, FALSE, NULL]),
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple).map(And), st.lists(inner, max_size=3).map(tuple).map(Or), inner.map(Not)
    ),
    max_leaves=8,
)


@given(_TREES, _VALUES, _VALUES)
def test_a_predicate_that_is_true_for_a_row_may_be_true_for_a_part_of_it(
    tree: Expression, a: str | None, b: str | None
) -> None:
    is_true = evaluate(tree, {"a": a, "b": b}) is True
    for known in ({}, {"a": a}, {"B": b}):
        assert may_be_true(tree, known) or not is_true
    assert may_be_true(Not(And((tree, UNKNOWN))), {"a": a, "b": b})


def test_known_values_of_a_row_may_rule_it_out() -> None:
    both = And((Comparison("=", A, "x"), Comparison("=", Column.of("b"), "y")))
    assert [may_be_true(both, {"A": held}) for held in ("x", "y", None)] == [True, False, False]
    assert not may_be_true(Or((both, FALSE)), {"b": "x"})
    assert not may_be_true(Not(Comparison("=", A, "x")), {"a": "x"})


def test_columns_are_found_at_any_depth() -> None:
    inner = Or((IsNull(A), Not(StartsWith(Column.of("b"), "x"))))
    assert list(columns(And((inner, TRUE, In(Column.of("c", "d"), ()))))) == [A, Column.of("b"), Column.of("c", "d")]


@given(_TREES, _VALUES, _VALUES)
def test_a_renamed_predicate_has_the_same_outcome_for_renamed_columns(
    tree: Expression, a: str | None, b: str | None
) -> None:
    swapped = renamed(tree, {"a": "B", "b": "a"})
    assert evaluate(swapped, {"a": b, "b": a}) == evaluate(tree, {"a": a, "b": b})
    with pytest.raises(KeyError):
        renamed(IsNull(A), {"b": "a"})
