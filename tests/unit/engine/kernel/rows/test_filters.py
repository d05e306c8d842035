"""Predicates on Arrow columns have the outcomes that `expressions.evaluate` defines."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.rows.filters import is_exact, outcomes
from dbt.adapters.silt.engine.kernel.table.expressions import (
    FALSE,
    NULL,
    TRUE,
    UNKNOWN,
    And,
    Column,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    StartsWith,
    evaluate,
)

NAN = float("nan")
LATE = datetime(2024, 1, 1, tzinfo=timezone.utc)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.int8(), [-128, 0, 127]),
    "i": (pa.int64(), [-(2**63), -1, 0, 1, *range(5, 40), 2**53 + 1, 2**63 - 1]),
    "d": (pa.float64(), [NAN, -NAN, float("inf"), -float("inf"), 0.0, -0.0, 0.1, 1e300, *map(float, range(5, 40))]),
    "f": (pa.float32(), [NAN, 0.0, -0.0, 0.5, 16777216.0, float("inf")]),
    "n": (pa.decimal128(12, 2), [Decimal("0.00"), Decimal("-0.01"), Decimal("9999999999.99"), Decimal("1E+3")]),
    "s": (pa.string(), ["", "a", "ab", "A", "ü", "\uffff", "\U0001f600", *(f"k{n}" for n in range(20))]),
    "t": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "ts": (pa.timestamp("us", "UTC"), [datetime(1969, 12, 31, 23, 59, 59, 999999, timezone.utc), LATE]),
    "ntz": (pa.timestamp("us"), [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    "flag": (pa.bool_(), [True, False]),
}  # fmt: skip
STRUCT = pa.struct([("X", pa.int32())])
ROW = st.fixed_dictionaries(
    {name: st.one_of(st.none(), st.sampled_from(values)) for name, (_, values) in VALUES.items()}
    | {"st": st.one_of(st.none(), st.fixed_dictionaries({"X": st.one_of(st.none(), st.integers(0, 3))}))}
)
COLUMNS = st.sampled_from([(name.upper(),) for name in VALUES] + [("St", "x")])


def values_of(parts: tuple[str, ...]) -> st.SearchStrategy[Any]:
    if len(parts) == 2:
        return st.one_of(st.none(), st.integers(0, 3))
    return st.one_of(st.none(), st.sampled_from(VALUES[parts[0].lower()][1]))


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    parts = draw(COLUMNS)
    column, value = Column(parts), values_of(parts)
    kind = draw(st.sampled_from(["compare", "in", "many", "null", "not null", "starts"]))
    if kind == "compare":
        operators = ["=", "!=", "<", "<=", ">", ">=", "<=>"]
        return Comparison(draw(st.sampled_from(operators)), column, draw(value))
    if kind in ("in", "many"):
        some, most = (17, 30) if kind == "many" else (0, 4)
        return In(column, tuple(draw(st.lists(value, min_size=some, max_size=most))))
    if kind == "starts":
        return StartsWith(Column.of("s"), draw(st.sampled_from(["", "a", "k1", "ü"])))
    return IsNull(column) if kind == "null" else IsNotNull(column)


EXPRESSIONS = st.recursive(
    st.one_of(leaves(), st.sampled_from([TRUE, FALSE, NULL])),
    lambda inner: st.one_of(
        st.builds(lambda parts: And(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(lambda parts: Or(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)


@given(st.lists(ROW, min_size=1, max_size=12), EXPRESSIONS)
def test_a_predicate_on_arrow_columns_has_the_outcome_of_its_definition(
    rows: list[dict[str, Any]], expression: Any
) -> None:
    schema = pa.schema([*((name, kind) for name, (kind, _) in VALUES.items()), ("st", STRUCT)])
    batch = pa.RecordBatch.from_pylist(rows, schema)
    assert is_exact(expression)
    found = outcomes(expression, batch)
    assert found.to_pylist() == [evaluate(expression, row) for row in rows]
    assert outcomes(expression, batch.slice(1)).to_pylist() == found.to_pylist()[1:]


def test_a_predicate_with_an_uncertain_outcome_filters_no_row() -> None:
    assert not is_exact(And((TRUE, Not(UNKNOWN))))
    with pytest.raises(InternalError):
        outcomes(UNKNOWN, pa.record_batch({"a": [1]}))
    with pytest.raises(InternalError, match="`b`"):
        outcomes(IsNull(Column.of("b")), pa.record_batch({"a": [1]}))
