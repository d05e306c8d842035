"""The text of a resolved plan is parsed into a tree, and texts that could be mistaken for it are refused."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.changed_keys.plan_text import (
    Item,
    equalities,
    item,
    resolved_plan,
    split,
    unreadable_name,
    with_readable_strings,
)
from dbt.adapters.silt.engine.sql.tokens import tokenize

EXPLAINED = """== Parsed Logical Plan ==
'Filter
== Analyzed Logical Plan ==
k: int
Filter (exists#33 [k#0] AND (k#0 = 1))
:  +- Project [1 AS 1#39]
:     +- OneRowRelation
+- Join Inner
   :- Project [k#0]
   :  +- A
   +- B

== Optimized Logical Plan ==
Filter
"""


def test_the_tree_of_a_plan_keeps_subqueries_apart_from_inputs() -> None:
    plan = resolved_plan(EXPLAINED.replace(":  +- Project [1", ":  +- Project [1"))
    assert plan is not None
    assert [each.text for each in plan.children][-1] == "Join Inner"
    assert [each.text for each in plan.children[-1].children] == ["Project [k#0]", "B"]


SUBQUERIES = """== Analyzed Logical Plan ==
k: int
Project [k#0]
+- Filter v#1L IN (list#34 [])
   :  :- Project [1 AS 1#39]
   :  :  +- C
   :  +- D
   +- E
"""


def test_plans_of_subqueries_belong_to_their_operator() -> None:
    plan = resolved_plan(SUBQUERIES)
    assert plan is not None
    (found,) = plan.children
    assert [each.text for each in found.children] == ["E"]
    assert [each.text for each in found.subqueries] == ["Project [1 AS 1#39]", "D"]
    assert [each.text for each in plan.all()] == [
        "Project [k#0]",
        "Filter v#1L IN (list#34 [])",
        "E",
        "Project [1 AS 1#39]",
        "C",
        "D",
    ]


@pytest.mark.parametrize("text", ["", "== Analyzed Logical Plan ==\n", f"{SUBQUERIES}         +- F\nG\n"])
def test_a_text_of_another_form_is_no_plan(text: str) -> None:
    assert resolved_plan(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("k#12", Item(12, "k", 12)),
        ("v#1L", Item(1, "v", 1)),
        ("k#0 AS kk#14", Item(14, "kk", 0)),
        ("sum(v#1L) AS sum(v)#7L", Item(7, "sum(v)", None)),
        ("cast(k#0 as bigint) AS k#7L", Item(7, "k", None)),
        ("coalesce(k#0, k#3) AS k#32", Item(32, "k", None, (0, 3))),
        ("-k#1 AS k#2", Item(2, "k", None)),
        ("my key#1", Item(1, "my key", None)),
        ("k", None),
    ],
)
def test_an_item_returns_an_attribute_only_if_it_is_nothing_else(text: str, found: Item | None) -> None:
    assert item(text) == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("(k#0 = k#3)", [(0, 3)]),
        ("(k#0 <=> k#3)", [(0, 3)]),
        ("((k#0 = k#3) AND (d#4 > 1))", [(0, 3)]),
        ("(((k#0 = k#3) AND (d#4 > 1)) AND (r#1 = r#2L))", [(0, 3), (1, 2)]),
        ("((k#0 = k#3) OR (d#4 > 1))", []),
        ("NOT (k#0 = k#3)", []),
        ("(cast(k#0 as bigint) = k#3L)", []),
        ("((k#0 = k#3) AND ((a#1 = a#2) OR (b#1 = b#2)))", [(0, 3)]),
        ("", []),
    ],
)
def test_only_conjuncts_are_equalities(condition: str, found: list[tuple[int, int]]) -> None:
    assert equalities(condition) == found


def test_lists_are_split_outside_of_brackets() -> None:
    assert split("a(b, c), [d, e], f") == ["a(b, c)", "[d, e]", "f"]


@pytest.mark.parametrize("text", ["'a#1'", "'(x'", '"a\\n"', "'a\nb'", "r'[0-9]'", "'it\\'s'"])
def test_a_string_that_could_look_like_a_plan_is_replaced(text: str) -> None:
    sql = f"select {text} as a, 'plain: a=b, c' as `my column`, {text} as b, '(other' as c from text_"
    found = with_readable_strings(sql, tokenize(sql))
    mark = text[-1]
    assert found == (
        f"select {mark}text__0{mark} as a, 'plain: a=b, c' as `my column`, {mark}text__0{mark} as b, 'text__1' as c "
        "from text_"
    )
    assert with_readable_strings(found, tokenize(found)) == found


def test_a_name_that_could_look_like_a_plan_is_found() -> None:
    assert unreadable_name(tokenize("select a, `my column`, '(x)' from `t`")) is None
    assert unreadable_name(tokenize("select `a [EUR]` from t")) == "a [EUR]"
