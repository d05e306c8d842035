"""MERGE compared with its definition: random clauses over random small tables with nulls and repeated keys.

A statement costs much more than a row, so each runs over many small tables at once, distinguished by the column `c`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.kernel.errors import MultipleSourceRowsError
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.sql.ast import DeleteRow, MatchKind
from tests.unit.engine.commands.merge.merging import (
    STEP_BY_STEP,
    Ambiguous,
    Row,
    When,
    inserts,
    merge,
    merged,
    plan,
    sets,
)
from tests.unit.engine.commands.spark_tables import BOTH_KINDS, Tables, in_order

pytestmark = BOTH_KINDS

_names = itertools.count()


def _equal(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left == right


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _greater(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left > right


On: TypeAlias = Callable[[Row, Row], bool | None]

ONS: list[tuple[str, On, tuple[KeyEquality, ...]]] = [
    ("t.k = s.k", lambda t, s: _equal(t["k"], s["k"]), (KeyEquality(Column.of("k"), "s.k"),)),
    ("t.k <=> s.k", lambda t, s: t["k"] == s["k"], (KeyEquality(Column.of("k"), "s.k", null_safe=True),)),
    (
        "t.k = s.k and t.g = s.g",
        lambda t, s: _both(_equal(t["k"], s["k"]), _equal(t["g"], s["g"])),
        (KeyEquality(Column.of("k"), "s.k"), KeyEquality(Column.of("g"), "s.g")),
    ),
    ("t.k = s.k and s.v > 0", lambda t, s: _both(_equal(t["k"], s["k"]), _greater(s["v"], 0)), ()),
    ("t.k = s.k + 1", lambda t, s: _equal(t["k"], None if s["k"] is None else s["k"] + 1), ()),
]

ALWAYS = (None, lambda t, s: True)
MATCHED = [
    When(MatchKind.MATCHED, action, *condition, result)  # type: ignore[call-arg]
    for condition in (
        ALWAYS,
        ("s.v > t.v", lambda t, s: _greater(s["v"], t["v"])),
        ("s.v is null", lambda t, s: s["v"] is None),
        ("s.g = 'a'", lambda t, s: _equal(s["g"], "a")),
    )
    for action, result in (
        (sets(v="s.v"), lambda t, s: {**t, "v": s["v"]}),
        (sets(g="coalesce(t.g, 'x')", v="-1"), lambda t, s: {**t, "g": "x" if t["g"] is None else t["g"], "v": -1}),
        (DeleteRow(), lambda t, s: None),
    )
]
NOT_MATCHED = [
    When(MatchKind.NOT_MATCHED, action, *condition, result)  # type: ignore[call-arg]
    for condition in (ALWAYS, ("v > 1", lambda t, s: _greater(s["v"], 1)))
    for action, result in (
        (inserts(c="c", k="k", v="v", g="g"), lambda t, s: dict(s)),
        (inserts(c="s.c", k="s.k"), lambda t, s: {"k": s["k"], "g": None, "v": None}),
    )
]
BY_SOURCE = [
    When(MatchKind.NOT_MATCHED_BY_SOURCE, action, *condition, result)  # type: ignore[call-arg]
    for condition in (ALWAYS, ("g = 'a'", lambda t, s: _equal(t["g"], "a")))
    for action, result in (
        (sets(v="v + 100"), lambda t, s: {**t, "v": None if t["v"] is None else t["v"] + 100}),
        (DeleteRow(), lambda t, s: None),
    )
]

small = st.one_of(st.none(), st.integers(0, 3))
row = st.fixed_dictionaries({"k": small, "g": st.sampled_from([None, "a", "b"]), "v": small})
sides = st.tuples(st.lists(row, max_size=4), st.lists(row, max_size=3))
statements = st.tuples(
    st.sampled_from(ONS),
    st.lists(st.sampled_from(MATCHED), max_size=2),
    st.lists(st.sampled_from(NOT_MATCHED), max_size=2),
    st.lists(st.sampled_from(BY_SOURCE), max_size=2),
).filter(lambda drawn: any(drawn[1:]) and all(when.condition is not None for kind in drawn[1:] for when in kind[:-1]))
unhurried = settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)


@unhurried
@given(
    cases=st.lists(sides, min_size=20, max_size=20),
    statement=statements,
    limits=st.sampled_from([Limits(), STEP_BY_STEP]),
    partitioned=st.booleans(),
    records_changes=st.booleans(),
    skips=st.booleans(),
)
def test_a_merge_leaves_the_rows_of_its_definition(
    tables: Tables,
    cases: list[tuple[list[Row], list[Row]]],
    statement: Any,
    limits: Limits,
    partitioned: bool,
    records_changes: bool,
    skips: bool,
) -> None:
    (condition, matches, keys), *kinds = statement
    whens = [when for kind in kinds for when in kind]
    target: list[Row] = []
    source: list[Row] = []
    expected: list[Row] = []
    for case, (old, new) in enumerate(cases):
        try:
            rows = merged(old, new, matches, whens)
        except Ambiguous:
            continue
        for side, case_rows in ((target, old), (source, new), (expected, rows)):
            side.extend({"c": case, **each} for each in case_rows)
    log = tables.made(
        _values(target),
        name=f"t{next(_names)}",
        partition_columns=("g",) if partitioned else (),
        properties=tables.properties | ({"delta.enableChangeDataFeed": "true"} if records_changes else {}),  # type: ignore[operator]
    )
    statement = replace(_plan(condition, keys, whens), skips_equal_rows=skips)
    outcome = merge(tables, log, _values(source), statement, limits=limits)
    assert tables.rows(log) == in_order([tuple(each[name] for name in _COLUMNS) for each in expected])
    assert outcome.rows_inserted is not None and outcome.rows_deleted is not None
    assert outcome.rows_inserted - outcome.rows_deleted == len(expected) - len(target)


@unhurried
@given(
    cases=st.lists(sides, min_size=20, max_size=20),
    statement=statements.filter(lambda drawn: drawn[1]),
    limits=st.sampled_from([Limits(), STEP_BY_STEP]),
    skips=st.booleans(),
)
def test_a_merge_is_refused_if_its_definition_is_ambiguous(
    tables: Tables, cases: list[tuple[list[Row], list[Row]]], statement: Any, limits: Limits, skips: bool
) -> None:
    (condition, matches, keys), *kinds = statement
    whens = [when for kind in kinds for when in kind]
    found = next((case for case in cases if _is_ambiguous(*case, matches, whens)), None)
    if found is None:
        return
    target, source = ([{"c": 1, **each} for each in side] for side in found)
    log = tables.made(_values(target), name=f"t{next(_names)}")  # type: ignore[arg-type]
    refused = replace(_plan(condition, keys, whens), skips_equal_rows=skips)
    with pytest.raises(MultipleSourceRowsError):
        merge(tables, log, _values(source), refused, limits=limits)  # type: ignore[arg-type]
    assert log.snapshot().version == 0
    assert tables.data_files(log) == {add.path for add in log.snapshot().add_files()}


def _is_ambiguous(target: list[Row], source: list[Row], on: On, whens: list[When]) -> bool:
    try:
        merged(target, source, on, whens)
    except Ambiguous:
        return True
    return False


def _plan(condition: str, keys: tuple[KeyEquality, ...], whens: list[When]) -> MergePlan:
    of_case = KeyEquality(Column.of("c"), "s.c")
    return plan(f"t.c = s.c and {condition}", *(when.clause for when in whens), keys=(of_case, *keys))


_COLUMNS = ("c", "k", "g", "v")
_TYPES = ("int", "int", "string", "int")


def _values(rows: list[Row]) -> str:
    """Returns a query for the rows."""
    columns = ", ".join(f"cast({name} as {kind}) {name}" for name, kind in zip(_COLUMNS, _TYPES, strict=True))
    if not rows:
        return f"select {columns} from values (1, 1, '', 1) as x(c, k, g, v) where c = 0"
    listed = ", ".join(f"({', '.join(_literal(each[name]) for name in _COLUMNS)})" for each in rows)
    return f"select {columns} from values {listed} as x(c, k, g, v)"


def _literal(value: Any) -> str:
    return "null" if value is None else repr(value)
