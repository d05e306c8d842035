"""The result of a dbt command: its counts, and the names of failed nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.records.command_result import CommandResult, Ending, node_name, results_of_command


def result(unique_id: str, status: str, **response: Any) -> dict[str, Any]:
    return {"unique_id": unique_id, "status": status, "adapter_response": response}


def test_a_result_counts_each_outcome_and_names_the_failed_nodes() -> None:
    results = [
        result("model.shop.orders", "success", skipped=True),
        result("model.shop.customers", "success"),
        result("model.shop.late", "error"),
        result("model.shop.held", "skipped"),
        result("model.shop.batches", "partial success"),
        result("test.shop.unique_orders_id.0a1b2c3d4e", "fail"),
        result("test.shop.no_debts", "runtime error"),
        result("test.shop.few", "warn"),
        result("test.shop.all", "pass"),
        result("exposure.shop.page", "no-op"),
    ]
    found = CommandResult.of(Ending.FAILED, results)
    assert found.counts == {"pass": 2, "warn": 1, "error": 4, "skip": 1, "reused": 1}
    assert tuple(map(node_name, found.failed)) == ("late", "batches", "unique_orders_id", "no_debts")


@pytest.mark.parametrize(
    ("unique_id", "name"),
    [
        ("model.shop.orders", "orders"),
        ("model.shop.orders.v2", "orders.v2"),
        ("unit_test.shop.orders.is_paid", "orders.is_paid"),
        ("test.shop.unique_orders_id.0a1b2c3d4e", "unique_orders_id"),
        ("operation.shop.shop-on-run-end-0", "shop-on-run-end-0"),
        ("orders", "orders"),
    ],
)
def test_the_name_of_a_node_is_in_its_unique_id(unique_id: str, name: str) -> None:
    assert node_name(unique_id) == name


def test_a_result_is_unchanged_by_writing_and_reading() -> None:
    found = CommandResult.of(Ending.FAILED, [result("model.shop.late", "error")], "no\n  connection", ("test.shop.a",))
    assert found.problem == "no connection"
    assert CommandResult.from_json(json.loads(json.dumps(found.to_json()))) == found
    bare = CommandResult(Ending.SUCCESS)
    assert CommandResult.from_json(bare.to_json()) == bare


def test_the_size_of_a_result_is_bounded() -> None:
    results = [result(f"model.shop.m{number}", "error") for number in range(10_000)]
    found = CommandResult.of(Ending.FAILED, results, "x" * 10_000)
    assert found.counts["error"] == 10_000
    assert len(json.dumps(found.to_json())) < 10_000


def test_the_results_of_another_command_are_not_returned(tmp_path: Path) -> None:
    assert results_of_command(tmp_path, "I1") == ()
    document = {"metadata": {"invocation_id": "I1"}, "results": [result("model.shop.late", "error")]}
    (tmp_path / "run_results.json").write_text(json.dumps(document))
    assert results_of_command(tmp_path, "I1") == document["results"]
    assert results_of_command(tmp_path, "I2") == ()


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"metadata": {"invocation_id": "I1"}}'])
def test_a_file_that_is_not_a_dbt_artifact_raises_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "run_results.json").write_text(content)
    with pytest.raises(ValueError):
        results_of_command(tmp_path, "I1")
