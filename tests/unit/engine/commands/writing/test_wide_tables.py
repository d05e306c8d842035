"""Wide tables: a statement does not send several messages to Java for each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.rows import update
from dbt.adapters.silt.engine.commands.rows.file_rows import Rows
from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.writing import set_clause
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import Assignment
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

COLUMNS = 300
WIDE = f"select {', '.join(f'cast({number} as bigint) c{number}' for number in range(COLUMNS))}"

Calls = Callable[[], int]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Counts the messages to Java, except for those that release objects; Spark Connect sends none."""
    plain = JavaClient.send_command

    @contextmanager
    def count() -> Iterator[Calls]:
        sent: list[None] = []

        def send(client: JavaClient, command: str, *given: Any, **named: Any) -> Any:
            if not command.startswith(MEMORY_COMMAND_NAME):  # Python releases objects of earlier tests at any time
                sent.append(None)
            return plain(client, command, *given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(JavaClient, "send_command", send)
            yield lambda: len(sent)

    return count


@pytest.mark.parametrize("value", ["cast(7 as bigint)", "7"], ids=["of the column's type", "converted"])
def test_an_update_sends_no_call_for_a_column_that_it_does_not_set(
    tables: Tables, counted: Callable[[], Any], value: str
) -> None:
    log = tables.made(WIDE)
    with counted() as calls:
        update.update(
            tables.spark, tables.target(log), [Assignment(("c1",), value)], Rows("t", "c0 = 0", UNKNOWN), PLAIN
        )
        assert calls() < COLUMNS
    assert tables.rows(log) == [(0, 7, *range(2, COLUMNS))]


def test_columns_of_doubles_that_may_be_zero_or_nan_take_few_calls_too(
    tables: Tables, counted: Callable[[], Any]
) -> None:
    log = tables.made(f"select {', '.join(f'0.0D c{number}' for number in range(COLUMNS))}")
    with counted() as calls:
        update.update(tables.spark, tables.target(log), [Assignment(("c1",), "7.0D")], Rows("t", None, UNKNOWN), PLAIN)
        assert calls() < 6 * COLUMNS
    assert tables.rows(log) == [(0.0, 7.0, *[0.0] * (COLUMNS - 2))]


def test_changing_columns_of_a_wide_frame_keeps_the_other_columns(tables: Tables, counted: Callable[[], Any]) -> None:
    wide = tables.spark.sql(WIDE).withColumn("__silt_mark", F.lit(1))
    columns = {f"c{number}": f"`c{number}`" for number in range(COLUMNS)}
    with counted() as calls:
        found = frames.select(wide, {**columns, "c7": "c8 + 1", "more": "c1 + c2", "c9": F.lit(4)})
        assert found.columns == [*columns, "more"]
        assert calls() < 100
    (row,) = found.collect()
    assert [row[name] for name in ("c6", "c7", "c8", "c9", "more")] == [6, 9, 8, 4, 3]


def test_unusual_column_names_are_changed_correctly(tables: Tables) -> None:
    odd = {"c1": "a.b", "c2": "a`b", "c3": "`c4`", "c5": "select", "c6": "é 日"}
    names = [odd.get(f"c{number}", f"c{number}") for number in range(COLUMNS)]
    columns = {name: quote(name) for name in names}
    made = {name: f"{quote(name)} + 1000" for name in odd.values()}
    found = frames.select(tables.spark.sql(WIDE).toDF(*names), {**columns, **made})
    assert found.columns == names
    assert list(found.collect()[0]) == [number + (1000 if f"c{number}" in odd else 0) for number in range(COLUMNS)]


@pytest.mark.parametrize(
    "case",
    ["another order", "a user's column goes", "a name with another case", "a column of the engine in another place"],
)
def test_other_selections_from_many_columns_are_correct_too(tables: Tables, case: str) -> None:
    names = [f"c{number}" for number in range(COLUMNS)]
    if case == "another order":
        names.reverse()
    elif case == "a column of the engine in another place":
        names.append("__silt_mark")
        names.insert(0, names.pop())
    elif case == "a user's column goes":
        del names[5]
    else:
        names[3] = "C3"
    wide = tables.spark.sql(WIDE).withColumn("__silt_mark", F.lit(COLUMNS))
    found = frames.select(wide, {name: f"`{name}`" for name in names})
    (row,) = found.collect()
    assert (found.columns, list(row)) == (names, [int(name[1:]) if name[1:].isdigit() else COLUMNS for name in names])


def test_columns_computed_by_functions_are_at_their_positions_among_many_expressions(tables: Tables) -> None:
    log = tables.made(WIDE)
    frame = tables.read(log)
    wanted = {f"c{number}": f"c{number}" for number in reversed(range(COLUMNS))}
    found = frames.select(frame, {**wanted, "c5": frame["c5"] * 2, "more": "c1 + c2"})
    assert found.columns == [*wanted, "more"]
    (row,) = found.collect()
    assert (row["c5"], row["c6"], row["more"]) == (10, 6, 3)


@pytest.mark.parametrize(
    "columns",
    [[("a",), ("b",), ("A",)], [("s",), ("s", "x")], [("s", "x"), ("b",), ("s",)], [("s", "x"), ("S", "X")]],
)
def test_a_column_is_set_once_completely_or_in_parts(columns: list[tuple[str, ...]]) -> None:
    number = PrimitiveType("integer")
    struct = StructType((StructField("x", number), StructField("y", number)))
    schema = StructType((StructField("a", number), StructField("b", number), StructField("s", struct)))
    with pytest.raises(InvalidStatementError, match="is set more than once"):
        set_clause.resolve([Assignment(column, "1") for column in columns], schema, "t", "main.t")
    once = [Assignment(column, "1") for column in (("s", "x"), ("s", "y"), ("a",))]
    assert len(set_clause.resolve(once, schema, "t", "main.t")) == 3
