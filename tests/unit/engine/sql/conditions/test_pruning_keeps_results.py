"""Rows that a query's predicates exclude do not affect its result: random queries, run by SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN, And, Constant, Expression, Not, Or, evaluate
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.conditions.pruning import pruning_predicates
from dbt.adapters.silt.engine.sql.query.references import Reference, scanned, table_references
from tests.examples import examples

Row = tuple[int | None, ...]
TABLES: Mapping[str, tuple[str, ...]] = {"t": ("a", "b", "c"), "u": ("a", "d", "e"), "v": ("b", "e", "f")}
_VALUES = st.sampled_from((None, 0, 1, 1))
_JOINS = ("join", "left join", "left join", "right join", "full join", "cross join", ",")


@st.composite
def _conditions(draw: st.DrawFn, aliases: Sequence[tuple[str, str]], depth: int = 2, bare: bool = True) -> str:
    """Draws a condition; `bare` allows columns without a qualifier."""
    kinds = ["compare", "compare", "columns", "null", "in", "between"]
    if depth:
        kinds += ["and", "and", "or", "not", "exists", "subquery"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("and", "or"):
        return f"({draw(_conditions(aliases, depth - 1, bare))} {kind} {draw(_conditions(aliases, depth - 1, bare))})"
    if kind == "not":
        return f"not ({draw(_conditions(aliases, depth - 1, bare))})"
    if kind in ("exists", "subquery"):
        return draw(_subqueries(aliases, kind, bare))
    column, number = draw(_columns(aliases, bare)), draw(st.integers(0, 1))
    if kind == "columns":
        return f"{column} = {draw(_columns(aliases, bare))}"
    if kind == "null":
        return f"{column} is {draw(st.sampled_from(('', 'not ')))}null"
    if kind == "in":
        return f"{column} {draw(st.sampled_from(('', 'not ')))}in ({number}, {draw(st.sampled_from(('1', 'null')))})"
    if kind == "between":
        return f"{column} between {number} and {number + 1}"
    return f"{column} {draw(st.sampled_from(('=', '<>', '<', '<=', '>', '>=')))} {number}"


@st.composite
def _subqueries(draw: st.DrawFn, aliases: Sequence[tuple[str, str]], kind: str, bare: bool) -> str:
    table = draw(st.sampled_from(sorted(TABLES)))
    inner = [(f"s{len(aliases)}", table)]
    condition = draw(_conditions([*inner, *aliases], 1, bare))
    query = f"from {table} {inner[0][0]} where {condition}"
    negation = draw(st.sampled_from(("", "not ")))
    if kind == "exists":
        return f"{negation}exists (select 1 {query})"
    return f"{draw(_columns(aliases, bare))} {negation}in (select {draw(_columns(inner, bare))} {query})"


@st.composite
def _columns(draw: st.DrawFn, aliases: Sequence[tuple[str, str]], bare: bool) -> str:
    alias, table = draw(st.sampled_from(list(aliases)))
    column = draw(st.sampled_from(TABLES[table]))
    elsewhere = [other for name, other in aliases if name != alias and column in TABLES[other]]
    return column if bare and not elsewhere and draw(st.booleans()) else f"{alias}.{column}"


@st.composite
def _selects(draw: st.DrawFn, number: int = 0) -> str:
    aliases: list[tuple[str, str]] = []
    sources: list[str] = []
    for position in range(draw(st.integers(1, 3))):
        table = draw(st.sampled_from(sorted(TABLES)))
        aliases.append((f"q{number}{position}", table))
        source = f"{table} {aliases[-1][0]}"
        if position:
            join = draw(st.sampled_from(_JOINS))
            on = "" if join in (",", "cross join") else f" on {draw(_join_conditions(aliases))}"
            source = f" {join} {source}{on}"
        sources.append(source)
    where = f" where {draw(_conditions(aliases, draw(st.integers(0, 2))))}" if draw(st.integers(0, 3)) else ""
    columns = ", ".join(f"{alias}.{column}" for alias, table in aliases[:1] for column in TABLES[table])
    counted = draw(st.booleans())
    return f"select {'count(*), 0, 0' if counted else columns} from {''.join(sources)}{where}"


@st.composite
def _join_conditions(draw: st.DrawFn, aliases: Sequence[tuple[str, str]]) -> str:
    condition = draw(_conditions(aliases, draw(st.integers(0, 1)), bare=False))
    if draw(st.booleans()):
        return condition
    return f"{draw(_columns(aliases[-1:], False))} = {draw(_columns(aliases[:-1], False))} and {condition}"


@st.composite
def _queries(draw: st.DrawFn) -> str:
    first = draw(_selects())
    match draw(st.integers(0, 3)):
        case 1:
            return f"{first} union all {draw(_selects(1))}"
        case 2:
            return f"with w as ({first}) select * from w union all select * from w"
        case 3:
            return f"select * from ({first}) x"
        case _:
            return first


_TABLES = st.fixed_dictionaries(
    {name: st.lists(st.tuples(*(_VALUES for _ in columns)), min_size=1, max_size=3) for name, columns in TABLES.items()}
)


@settings(max_examples=examples(400), deadline=None)
@given(_queries(), _TABLES)
def test_a_query_without_the_excluded_rows_has_the_same_result(query: str, tables: Mapping[str, list[Row]]) -> None:
    references = table_references(query)
    relations = {reference: Relation(_schema(reference)) for reference in references}
    predicates = pruning_predicates(scanned(query), relations, "UTC")
    whole, pruned = dict(tables), query
    for number, reference in reversed(list(enumerate(references))):
        remaining = [row for row in tables[reference.parts[0]] if _may_match(predicates.get(reference), reference, row)]
        whole[f"left_{number}"] = remaining
        pruned = f"{pruned[: reference.start]}left_{number}{pruned[reference.end :]}"
    assert _run(pruned, whole, references) == _run(query, whole, references)


def _schema(reference: Reference) -> StructType:
    columns = TABLES[reference.parts[0]]
    return StructType(tuple(StructField(column, PrimitiveType("long")) for column in columns))


def _may_match(predicate: Expression | None, reference: Reference, row: Row) -> bool:
    if predicate is None:
        return True
    return True in _outcomes(predicate, dict(zip(TABLES[reference.parts[0]], row, strict=True)))


def _outcomes(expression: Expression, row: Mapping[str, int | None]) -> frozenset[bool | None]:
    """Returns the possible outcomes of the expression for the row; UNKNOWN may have any outcome."""
    if isinstance(expression, Constant):
        return expression.possible
    if isinstance(expression, Not):
        return frozenset(None if each is None else not each for each in _outcomes(expression.part, row))
    if isinstance(expression, And | Or):
        constants = [Constant(frozenset({each})) for each in (True, False, None)]
        so_far = frozenset({isinstance(expression, And)})
        for part in expression.parts:
            pairs = [(left, right) for left in so_far for right in _outcomes(part, row)]
            by_outcome = {next(iter(constant.possible)): constant for constant in constants}
            so_far = frozenset(
                evaluate(type(expression)((by_outcome[left], by_outcome[right])), row)  # type: ignore[misc]
                for left, right in pairs
            )
        return so_far
    return frozenset({evaluate(expression, row)})


def _run(query: str, tables: Mapping[str, list[Row]], references: Sequence[Reference]) -> list[str]:
    database = sqlite3.connect(":memory:")
    try:
        for name, rows in tables.items():
            columns = TABLES.get(name) or TABLES[references[int(name.removeprefix("left_"))].parts[0]]
            database.execute(f"create table {name} ({', '.join(columns)})")
            database.executemany(f"insert into {name} values ({', '.join('?' * len(columns))})", rows)
        return sorted(map(repr, database.execute(query).fetchall()))
    finally:
        database.close()


def test_unknown_may_have_any_outcome() -> None:
    assert _outcomes(Not(And((UNKNOWN, Constant(frozenset({True}))))), {}) == {True, False, None}
