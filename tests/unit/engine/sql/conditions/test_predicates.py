"""The predicates that conditions imply for a table's rows: alone, in queries, and in the ON of a MERGE."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.table import expressions as ex
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation, to_predicate
from dbt.adapters.silt.engine.sql.conditions.pruning import pruning_predicates
from dbt.adapters.silt.engine.sql.query.references import scanned, table_references
from dbt.adapters.silt.engine.statements.resolve.merge_keys import MergeSides, merge_keys
from tests.unit.engine.sql.sql_fixtures import pairs
from tests.unit.engine.sql.sql_soup import openings, soups

ZONE = "America/New_York"
LONG, STRING = PrimitiveType("long"), PrimitiveType("string")


def _struct(**types: object) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in types.items()))  # type: ignore[arg-type]


SCHEMA = StructType(
    (
        *_struct(
            i=PrimitiveType("integer"),
            l=LONG,
            b=PrimitiveType("boolean"),
            s=STRING,
            d=PrimitiveType("date"),
            ts=PrimitiveType("timestamp"),
            ntz=PrimitiveType("timestamp_ntz"),
            f=PrimitiveType("float"),
            x=PrimitiveType("double"),
            dec=DecimalType(10, 2),
            st=_struct(a=LONG, b=_struct(c=LONG)),
            arr=ArrayType(LONG),
            m=MapType(STRING, LONG),
            current_date=LONG,
        ),
        StructField("cs", PrimitiveType("string collate UNICODE_CI")),
        StructField("cc", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
    )
)
OTHER = _struct(i=LONG, k=LONG, z=LONG)


def said(condition: str) -> str:
    """Returns the predicate of a condition for the rows of silt.db.t."""
    return _shown(to_predicate(condition, SCHEMA, [("silt", "db", "t")], ZONE))


def pruned(query: str) -> str:
    """Returns the predicates of a query for the rows of t, u and v, which are known, by reference; w is unknown."""
    known = {
        reference: Relation(
            SCHEMA if reference.parts[-1] == "t" else OTHER,
            ("silt", "db", "t") if reference.parts == ("t",) else ("silt", *reference.parts[-2:]),
        )
        for reference in table_references(query)
        if reference.parts[-1] in "tuv"
    }
    found = pruning_predicates(scanned(query), known, ZONE)
    shown = [
        f"{'.'.join(r.parts)} at {r.start}: {_shown(e)}" for r, e in sorted(found.items(), key=lambda p: p[0].start)
    ]
    return "\n".join(shown) or "nothing"


def keys(condition: str) -> str:
    """Returns the keys of a MERGE into silt.db.t from main.s, which has the columns i and q."""
    sides = MergeSides(OTHER, [("silt", "db", "t")], [("main", "s")], ["i", "q"])
    found = merge_keys(condition, sides, ZONE)
    lines = [f"{'.'.join(k.column.parts)} {'<=>' if k.null_safe else '='} {k.source}" for k in found.keys]
    return "\n".join((*lines, f"target: {_shown(found.target)}"))


def _shown(expression: ex.Expression) -> str:
    match expression:
        case ex.And(parts):
            return "(" + " and ".join(map(_shown, parts)) + ")"
        case ex.Or(parts):
            return "(" + " or ".join(map(_shown, parts)) + ")"
        case ex.Not(part):
            return f"not {_shown(part)}"
        case ex.Comparison(operator, column, value):
            return f"{'.'.join(column.parts)} {operator} {_value(value)}"
        case ex.In(column, values):
            return f"{'.'.join(column.parts)} in ({', '.join(map(_value, values))})"
        case ex.IsNull(column):
            return f"{'.'.join(column.parts)} is null"
        case ex.StartsWith(column, prefix):
            return f"{'.'.join(column.parts)} starts with {prefix!r}"
        case ex.Constant():
            return {ex.TRUE: "true", ex.UNKNOWN: "?"}[expression]
    raise AssertionError(expression)


def _value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, date | Decimal) else repr(value)


@pytest.mark.parametrize(("condition", "expected"), pairs("predicates"))
def test_a_condition_implies_its_predicate(condition: str, expected: str) -> None:
    assert said(condition) == expected


@pytest.mark.parametrize(("query", "expected"), pairs("pruning"))
def test_a_query_implies_a_predicate_for_each_of_its_tables(query: str, expected: str) -> None:
    assert pruned(query) == expected


@pytest.mark.parametrize(("condition", "expected"), pairs("merge_keys"))
def test_the_condition_of_a_merge_implies_its_keys(condition: str, expected: str) -> None:
    assert keys(condition) == expected


def test_a_session_in_an_unknown_time_zone_implies_nothing_about_local_times() -> None:
    unknown = to_predicate("ts = '2024-01-01 00:00:00'", SCHEMA, [], "Nowhere/Nothing")
    assert unknown == ex.UNKNOWN
    assert to_predicate("ts = '2024-01-01 00:00:00Z'", SCHEMA, [], "Nowhere/Nothing") != ex.UNKNOWN


def test_columns_of_an_unknown_source_belong_to_no_table() -> None:
    sides = MergeSides(OTHER, [("t",)], [("s",)], None)
    found = merge_keys("k = q and t.i = s.i and z = 1", sides, "UTC")
    assert [key.source for key in found.keys] == ["s.i"]
    assert found.target == ex.TRUE


def test_a_condition_nested_too_deeply_implies_nothing() -> None:
    assert to_predicate("(" * 2000 + "i = 1" + ")" * 2000, SCHEMA, [], "UTC") == ex.UNKNOWN
    assert to_predicate("not " * 2000 + "i = 1", SCHEMA, [], "UTC") == ex.UNKNOWN


@given(soups() | openings())
def test_reading_predicates_of_any_text_fails_only_with_a_silt_error(text: str) -> None:
    try:
        to_predicate(text, SCHEMA, [("t",)], ZONE)
        relations = {reference: Relation(SCHEMA) for reference in table_references(text)}
        pruning_predicates(scanned(text), relations, ZONE)
        merge_keys(text, MergeSides(SCHEMA, [("t",)], [("s",)], ["a"]), ZONE)
    except SiltError:
        return
