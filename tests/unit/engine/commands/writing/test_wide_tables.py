"""Wide tables: a statement does not talk to Java several times for each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.clientserver import JavaClient

from dbt.adapters.silt.engine.commands.rows import update
from dbt.adapters.silt.engine.commands.rows.selection import Rows
from dbt.adapters.silt.engine.commands.spark import projection
from dbt.adapters.silt.engine.commands.writing import set_clause
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import Assignment
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

COLUMNS = 300
WIDE = f"select {', '.join(f'cast({number} as bigint) c{number}' for number in range(COLUMNS))}"

Calls = Callable[[], int]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Counts the messages to Java; over Spark Connect there are none."""
    plain = JavaClient.send_command

    @contextmanager
    def count() -> Iterator[Calls]:
        sent: list[None] = []

        def send(*given: Any, **named: Any) -> Any:
            sent.append(None)
            return plain(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(JavaClient, "send_command", send)
            yield lambda: len(sent)

    return count


@pytest.mark.parametrize("value", ["cast(7 as bigint)", "7"], ids=["of the column's type", "converted"])
def test_an_update_takes_few_calls_for_each_column(tables: Tables, counted: Callable[[], Any], value: str) -> None:
    log = tables.made(WIDE)
    with counted() as calls:
        update.update(
            tables.spark, tables.target(log), [Assignment(("c1",), value)], Rows("t", "c0 = 0", UNKNOWN), PLAIN
        )
        assert calls() < 4 * COLUMNS
    assert tables.rows(log) == [(0, 7, *range(2, COLUMNS))]


def test_doubles_that_may_be_zero_or_nan_take_few_calls_too(tables: Tables, counted: Callable[[], Any]) -> None:
    log = tables.made(f"select {', '.join(f'0.0D c{number}' for number in range(COLUMNS))}")
    with counted() as calls:
        update.update(tables.spark, tables.target(log), [Assignment(("c1",), "7.0D")], Rows("t", None, UNKNOWN), PLAIN)
        assert calls() < 6 * COLUMNS
    assert tables.rows(log) == [(0.0, 7.0, *[0.0] * (COLUMNS - 2))]


def test_columns_made_by_functions_stand_in_their_place_among_many_texts(tables: Tables) -> None:
    log = tables.made(WIDE)
    frame = tables.read(log)
    wanted = {f"c{number}": f"c{number}" for number in reversed(range(COLUMNS))}
    found = projection.select(frame, {**wanted, "c5": frame["c5"] * 2, "more": "c1 + c2"})
    assert found.columns == [*wanted, "more"]
    (row,) = found.collect()
    assert (row["c5"], row["c6"], row["more"]) == (10, 6, 3)


@pytest.mark.parametrize(
    "columns",
    [[("a",), ("b",), ("A",)], [("s",), ("s", "x")], [("s", "x"), ("b",), ("s",)], [("s", "x"), ("S", "X")]],
)
def test_a_column_is_set_once_in_whole_or_in_parts(columns: list[tuple[str, ...]]) -> None:
    number = PrimitiveType("integer")
    struct = StructType((StructField("x", number), StructField("y", number)))
    schema = StructType((StructField("a", number), StructField("b", number), StructField("s", struct)))
    with pytest.raises(InvalidStatementError, match="is set more than once"):
        set_clause.resolve([Assignment(column, "1") for column in columns], schema, "t", "main.t")
    once = [Assignment(column, "1") for column in (("s", "x"), ("s", "y"), ("a",))]
    assert len(set_clause.resolve(once, schema, "t", "main.t")) == 3
