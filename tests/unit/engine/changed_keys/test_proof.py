"""What is proved of a plan: which inputs have the key, and which are needed as a whole."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.changed_keys.plan_text import PlanNode, resolved_plan
from dbt.adapters.silt.engine.changed_keys.proof import NotProved, roles

T = "+- SubqueryAlias t\n   +- Project [k#0, v#1L]\n      +- SubqueryAlias __silt_input_0\n         +- View (x)"
U = "+- SubqueryAlias u\n   +- Project [k#3, d#4]\n      +- SubqueryAlias __silt_input_1\n         +- View (x)"


def below(*inputs: str, depth: int = 1) -> str:
    """The lines of inputs below an operator of a depth."""
    lines = []
    for at, text in enumerate(inputs):
        is_last = at == len(inputs) - 1
        for number, line in enumerate(text.split("\n")):
            prefix = "   " if is_last or not number else ":  "
            mark = line.replace("+- ", ":- ", 1) if not number and not is_last else line
            lines.append("   " * (depth - 1) + (mark if not number else prefix + line[3:]))
    return "\n".join(lines)


def plan(*lines: str) -> PlanNode:
    found = resolved_plan("== Analyzed Logical Plan ==\nk: int\n" + "\n".join(lines) + "\n\n== Optimized")
    assert found is not None
    return found


def proved(*lines: str, columns: int = 2) -> dict[int, tuple[str, ...] | None]:
    return {number: next(iter(found)) for number, found in roles(plan(*lines), [0], columns).items()}


def test_an_aggregate_by_the_key_needs_the_rows_of_the_key() -> None:
    assert proved("Aggregate [k#0], [k#0, sum(v#1L) AS s#6L]", T) == {0: ("k",)}


@pytest.mark.parametrize("kind", ["Inner", "LeftOuter", "LeftSemi", "LeftAnti"])
def test_both_sides_of_a_join_by_the_key_need_only_its_rows(kind: str) -> None:
    found = proved("Project [k#0, v#1L]", f"+- Join {kind}, (k#0 = k#3)", below(T, U, depth=2))
    assert found == {0: ("k",), 1: ("k",)}


@pytest.mark.parametrize("condition", ["(v#1L = d#4)", "((k#0 = k#3) OR (d#4 > 1))", "(cast(k#0 as bigint) = k#3)"])
@pytest.mark.parametrize("kind", ["Inner", "LeftOuter", "LeftSemi", "LeftAnti"])
def test_the_other_side_of_any_other_join_is_needed_as_a_whole(kind: str, condition: str) -> None:
    found = proved("Project [k#0, v#1L]", f"+- Join {kind}, {condition}", below(T, U, depth=2))
    assert found == {0: ("k",), 1: None}


@pytest.mark.parametrize("kind", ["LeftOuter", "FullOuter"])
def test_the_key_of_the_side_that_an_outer_join_fills_with_nulls_is_refused(kind: str) -> None:
    with pytest.raises(NotProved):
        proved("Project [k#3, v#1L]", f"+- Join {kind}, (k#0 = k#3)", below(T, U, depth=2))


def test_the_keys_of_a_full_join_are_both() -> None:
    join = ("+- Join FullOuter, (k#0 = k#3)", below(T, U, depth=2))
    assert proved("Project [coalesce(k#0, k#3) AS k#9, v#1L]", *join) == {0: ("k",), 1: ("k",)}
    with pytest.raises(NotProved, match="full join"):
        proved("Project [coalesce(k#0, d#4) AS k#9, v#1L]", *join)


def test_a_condition_after_a_join_pairs_rows_like_the_condition_of_the_join() -> None:
    found = proved("Filter ((k#0 = k#3) AND (v#1L > 1))", "+- Join Cross", below(T, U, depth=2), columns=4)
    assert found == {0: ("k",), 1: ("k",)}


@pytest.mark.parametrize(
    ("operator", "why"),
    [
        ("GlobalLimit 3", "LIMIT"),
        ("Offset 3", "OFFSET"),
        ("Sample 0.0, 0.1, false, 5", "TABLESAMPLE"),
        ("Deduplicate [v#1L]", "Deduplicate"),
        ("Aggregate [k#0 AS k#0]", "over all keys"),
        ("Aggregate [v#1L], [first(k#0) AS k#0, v#1L]", "computes the column `k`"),
        ("Aggregate [v#1L], [k#0, v#1L]", "group by the key"),
        ("Window [rank() windowspecdefinition(v#1L) AS r#7], [v#1L ASC NULLS FIRST]", "window"),
        ("Window [rank() windowspecdefinition(v#1L) AS r#7], [v#1L], [k#0 ASC NULLS FIRST]", "window"),
        ("Project [(k#0 + 1) AS k#8, v#1L]", "computes the column `k`"),
        ("Project [k#0, v]", "unknown form"),
        ("Project [my k#0, v#1L]", "`my k` of the key, whose name has other characters"),
    ],
)
def test_what_is_not_proved_is_refused_by_name(operator: str, why: str) -> None:
    with pytest.raises(NotProved, match=why):
        proved(operator, T, columns=3 if operator.startswith("Window") else 1 if "AS k#0]" in operator else 2)


def test_a_window_of_the_key_needs_the_rows_of_the_key() -> None:
    window = "Window [rank() windowspecdefinition(v#1L, k#0) AS r#7], [v#1L, k#0], [v#1L ASC NULLS FIRST]"
    assert proved(window, T, columns=3) == {0: ("k",)}


def test_subqueries_are_needed_as_a_whole() -> None:
    inner = ":  +- SubqueryAlias u\n   :     +- Project [k#3, d#4]\n   :        +- SubqueryAlias __silt_input_1"
    outer = "\n".join("   " + line for line in T.split("\n"))
    assert proved("Project [k#0, v#1L]", "+- Filter k#0 IN (list#5 [])", f"   {inner}", outer) == {0: ("k",), 1: None}


def test_a_limit_in_a_part_that_has_no_key_is_refused_too() -> None:
    limited = "+- GlobalLimit 1\n" + "\n".join("   " + line for line in U.split("\n"))
    with pytest.raises(NotProved, match="LIMIT"):
        proved("Project [k#0, v#1L]", "+- Join Inner", below(T, limited, depth=2))


@pytest.mark.parametrize(("condition", "second"), [("(v#1L = v#8L)", None), ("(k#0 = v#8L)", ("v",))])
def test_a_view_that_is_named_twice_has_a_role_for_each_of_its_reads(
    condition: str, second: tuple[str, ...] | None
) -> None:
    """Both places have the text of the view, and so the same restriction of its input, which keeps the rows of both
    roles. More rows than a place needs only add rows of the result with other keys, which are not written. So a view is
    right for the reason for which a common table expression is, and refusing it was too strict.
    """
    again = T.replace("k#0", "k#7").replace("v#1L", "v#8L")
    found = roles(plan("Project [k#0, v#1L]", f"+- Join Inner, {condition}", below(T, again, depth=2)), [0], 2)
    assert found == {0: frozenset({("k",), second})}


WIDENED = "+- Project [cast(k#3 as bigint) AS k#9L, d#4]\n" + "\n".join("   " + each for each in U.split("\n"))


def test_a_part_of_a_union_whose_key_spark_casts_is_needed_as_a_whole() -> None:
    found = proved("Union false, false", below(T, WIDENED))
    assert found == {0: ("k",), 1: None}


def test_a_union_that_casts_the_key_in_each_part_is_refused() -> None:
    first = WIDENED.replace("k#3", "k#0").replace("d#4", "v#1L").replace("k#9L", "k#8L")
    both = [first.replace(U.replace("\n", "\n   "), ""), WIDENED]
    with pytest.raises(NotProved, match="has a UNION that computes the key in each part"):
        proved("Union false, false", below(*both))


DEFINITION = """WithCTE
:- CTERelationDef 0, false
:  +- SubqueryAlias c
:     +- Project [k#0, n#1]
:        +- SubqueryAlias __silt_input_0
:           +- View (x)
+- Project [k#10, n#21]
   +- Join Inner, {condition}
      :- SubqueryAlias c
      :  +- CTERelationRef 0, true, [k#10, n#11], false, false
      +- SubqueryAlias c
         +- CTERelationRef 0, true, [k#20, n#21], false, false"""


@pytest.mark.parametrize(
    ("condition", "second"), [("(k#10 = n#21)", ("n",)), ("(k#10 = k#20)", ("k",)), ("(n#11 = n#21)", None)]
)
def test_a_table_expression_has_a_role_for_each_of_its_reads(condition: str, second: tuple[str, ...] | None) -> None:
    found = roles(plan(DEFINITION.format(condition=condition)), [0], 2)
    assert found == {0: frozenset({("k",), second})}
