"""Which units of work a rerun with the same id repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.records.command_result import CommandResult, Ending
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.records.units import Unit
from dbt.adapters.silt.runs.done_again import is_repeatable, usual_decision
from dbt.adapters.silt.runs.logical_run.recorded_end import last_failures, with_upstream


def entry(name: str, started_at: str, *failed: str, run_id: str = "night", finished: bool = True) -> RunEntry:
    result = CommandResult(Ending.FAILED if failed else Ending.SUCCESS, failed=failed) if finished else None
    return RunEntry(name, run_id, "dbt build", "/shop", started_at, finished=finished, result=result)


def test_the_failures_are_those_of_the_last_finished_command_of_the_run() -> None:
    failed = entry("1", "2026-03-01T03:00:00", "test.shop.a")
    killed = entry("2", "2026-03-01T07:00:00", finished=False)
    other = entry("3", "2026-03-01T08:00:00", "test.shop.b", run_id="day")
    good = entry("4", "2026-03-01T09:00:00")
    assert last_failures([failed, killed, other], "night") == ("test.shop.a",)
    assert last_failures([failed, killed, other, good], "night") == ()
    assert last_failures([killed], "night") == ()


def test_a_command_updates_only_the_failures_of_its_own_nodes() -> None:
    failed = entry("1", "2026-03-01T03:00:00", "test.shop.a", "test.shop.b", "model.shop.late")
    results = [
        {"unique_id": "test.shop.a", "status": "pass"},
        {"unique_id": "test.shop.c", "status": "fail"},
        {"unique_id": "model.shop.late", "status": "skipped"},
    ]
    result = CommandResult.of(Ending.FAILED, results, earlier=last_failures([failed], "night"))
    later = replace(entry("2", "2026-03-01T07:00:00"), result=result)
    assert set(last_failures([failed, later], "night")) == {"test.shop.b", "test.shop.c", "model.shop.late"}


def test_only_ancestors_of_a_failure_are_upstream() -> None:
    parents = {"test": ["orders"], "orders": ["stg", "seed"], "stg": ["source"], "totals": ["orders"]}
    assert with_upstream(["test"], lambda each: parents.get(each, [])) == {"test", "orders", "stg", "seed", "source"}


@pytest.mark.parametrize(
    ("config", "repeatable"),
    [
        ({"materialized": "table"}, True),
        ({"materialized": "seed"}, True),
        ({"materialized": "snapshot"}, True),
        ({"materialized": "incremental"}, False),
        ({"materialized": "incremental", "unique_key": "id"}, True),
        ({"materialized": "incremental", "incremental_strategy": "append", "unique_key": "id"}, False),
        ({"materialized": "incremental", "incremental_strategy": "merge"}, False),
        ({"materialized": "incremental", "incremental_strategy": "delete+insert", "unique_key": ["a", "b"]}, True),
        ({"materialized": "incremental", "incremental_strategy": "delete+insert"}, False),
        ({"materialized": "incremental", "unique_key": "id", "incremental_predicates": ["day > 3"]}, False),
        ({"materialized": "incremental", "unique_key": "id", "predicates": "day > 3"}, False),
        ({"materialized": "incremental", "incremental_strategy": "insert_overwrite"}, True),
        ({"materialized": "incremental", "incremental_strategy": "replace_where"}, True),
        ({"materialized": "incremental", "incremental_strategy": "microbatch"}, True),
        ({"materialized": "incremental", "unique_key": "id", "merge_clauses": {"when_matched": [{}]}}, False),
        ({"materialized": "incremental", "unique_key": "id", "merge_update_set_expressions": {"n": "t.n + 1"}}, False),
        ({"materialized": "incremental", "incremental_strategy": "of_the_project", "unique_key": "id"}, False),
    ],
)
def test_a_write_is_repeatable_if_repeating_it_has_no_further_effect(config: dict[str, Any], repeatable: bool) -> None:
    assert is_repeatable({"config": config}) is repeatable


@pytest.mark.parametrize(
    ("code", "repeatable"),
    [
        ("select * from main.shop.stg", True),
        ("select * from main.shop.stg -- not main.shop.orders", True),
        ("select * from main.shop.stg where ts > (select max(ts) from `main`.`shop`.`Orders`)", False),
        ("with old as (select * from shop.orders) select s.id, s.n + old.n from stg s join old using (id)", False),
        ("select * from other.orders", True),
        ("select * from identifier('main.shop.orders')", False),
    ],
)
@pytest.mark.parametrize("materialized", ["table", "incremental"])
def test_a_write_that_reads_its_own_table_is_not_repeatable(materialized: str, code: str, repeatable: bool) -> None:
    config = {"materialized": materialized, "unique_key": "id"}
    model = {"config": config, "compiled_code": code, "relation_name": "`main`.`shop`.`orders`"}
    assert is_repeatable(model) is repeatable


@pytest.mark.parametrize("code", ["dbt.this", "dbt.this.identifier"])
def test_python_that_names_its_own_table_is_not_repeatable(code: str) -> None:
    source = f"def model(dbt, session):\n    return session.table({code})\n"
    model = {"config": {"materialized": "table"}, "language": "python", "raw_code": source}
    assert not is_repeatable(model)
    assert is_repeatable({**model, "raw_code": source.replace(code, "'stg'")})


@pytest.mark.parametrize(
    ("recorded", "asked", "version", "statements"),
    [(1, 1, 1, None), (2, 1, 1, None), (1, 2, 2, None), (3, 1, 1, 3), (3, 2, 4, 4), (4, 2, 2, 4), (4, 1, 1, 4)],
)
def test_the_version_of_a_unit_takes_repeated_work_into_account(
    recorded: int, asked: int, version: int, statements: int | None
) -> None:
    decision = usual_decision(Unit("unit", asked, "night"), recorded)
    assert (decision.unit.version, decision.statements_version) == (version, statements)
