"""The handle of a connection and its cursor: statements, tags of their jobs, and cancellation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.records.units import Unit
from dbt.adapters.silt.runs.fetch import fetchable
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.session.handle import OpenSession, SiltHandle, Submission  # type: ignore[attr-defined]
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings


@pytest.mark.connect(gate=True)
def test_jobs_are_tagged_during_a_statement_only(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(spark, str(tmp_path))
    handle = handle_of(spark, warehouse, TaggedRunner(("model.shop.orders", "daily")))
    with handle.busy("select 1"):
        assert spark.getTags() == {"model.shop.orders", "daily"}
    assert spark.getTags() == set()


def test_a_cancelled_connection_stops_its_jobs_and_runs_nothing_more(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    warehouse = Warehouse(session, str(tmp_path))
    handle = handle_of(session, warehouse, TaggedRunner(()))
    cursor = handle.cursor()
    cursor.execute("select count(*) from range(100000000000000) where hash(id) = 0")
    with ThreadPoolExecutor(1) as thread:
        endless = thread.submit(cursor.drain)
        handle.cancel()
        with pytest.raises(DbtRuntimeError, match="cancelled"):
            endless.result(timeout=60)
    with pytest.raises(DbtRuntimeError, match="cancelled"):
        handle.cursor().execute("select 1")


def test_submitted_statements_are_run_unchanged_the_last_as_the_unit_and_the_others_as_its_parts() -> None:
    runner = RememberingRunner()
    cursor = handle_of(None, None, runner).cursor()
    unit = Unit("silt/shop/model.shop.orders/R1/main", 1, "R1")
    given = Submission("set a = 1; begin select 1; end", unit, replace_tables=True)
    cursor.execute(f"/* opens /* another */\n{given.text}", given)
    parts = unit.part(1), unit.part(2), unit
    assert runner.ran == list(zip(("set a = 1", "begin select 1", "end"), parts, (True, True, True), strict=True))
    cursor.execute("begin select 1; end")
    assert runner.ran[3:] == [("begin select 1; end", None, False)]


def test_values_for_parameters_of_a_statement_are_refused() -> None:
    runner = RememberingRunner()
    with pytest.raises(DbtRuntimeError, match="no bindings"):
        handle_of(None, None, runner).cursor().execute("select ?", (1,))
    assert runner.ran == []


@pytest.mark.connect(gate=True)
def test_arrays_and_maps_without_a_type_are_fetched_as_text(spark: SparkSession) -> None:
    """Arrow has no maps with untyped keys."""
    frame = spark.sql("select map() as m, array() as a, array(map()) as l, named_struct('x', null) as s, null as n")
    assert fetchable(frame).toArrow().to_pylist() == [{"m": "{}", "a": "[]", "l": "[{}]", "s": "{}", "n": None}]
    assert fetchable(frame.limit(0)).toArrow().to_pylist() == []


def test_another_session_is_opened_if_spark_has_ended_before_the_first_statement() -> None:
    opened: list[list[bool]] = []

    def opening() -> OpenSession:
        ended = [False]
        opened.append(ended)
        return OpenSession(SessionPool(SessionSettings()), None, len(opened), is_lost=lambda: ended[0])  # type: ignore[arg-type]

    runner = RememberingRunner()
    handle = SiltHandle(opening, runner)  # type: ignore[arg-type]
    assert handle.opened().warehouse == 1  # type: ignore[comparison-overlap]
    opened[0][0] = True
    handle.cursor().execute("select 1")
    opened[1][0] = True
    handle.cursor().execute("select 2")
    assert runner.warehouses == [2, 2], "a statement may depend on the session of an earlier statement"


def handle_of(session: Any, warehouse: Any, runner: Any) -> SiltHandle:
    return SiltHandle(lambda: OpenSession(SessionPool(SessionSettings()), session, warehouse), runner)


class RememberingRunner:
    """Runs nothing, and records the statements."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, Unit | None, bool]] = []
        self.warehouses: list[Any] = []

    def run(
        self, warehouse: Warehouse, text: str, own_unit: Unit | None = None, *, replace_tables: bool = False
    ) -> tuple[Result, SiltResponse]:
        self.ran.append((text, own_unit, replace_tables))
        self.warehouses.append(warehouse)
        return Result(), SiltResponse("OK", code="OK")

    def job_tags(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class TaggedRunner:
    """Runs statements whose jobs have these tags."""

    tags: tuple[str, ...]

    def run(
        self, warehouse: Warehouse, text: str, own_unit: Unit | None = None, *, replace_tables: bool = False
    ) -> tuple[Result, SiltResponse]:
        result = warehouse.execute(text, own_unit and own_unit.txn, replace_tables=replace_tables)  # type: ignore[arg-type]
        return result, SiltResponse("OK", code="OK")

    def job_tags(self) -> tuple[str, ...]:
        return self.tags
