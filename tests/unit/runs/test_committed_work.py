"""What an error lists of the units of work that were committed before it."""

from __future__ import annotations

from dbt.adapters.silt.runs.committed_work import (
    CommittedBatches,
    CommittedWork,
    FailedBatches,
    committed_message,
)
from dbt.adapters.silt.runs.response import SiltResponse


def response(table: str, version: int | None, run_id: str = "R1") -> SiltResponse:
    return SiltResponse("OK", run_id=run_id, table=table, table_version=version)


def test_names_the_versions_and_what_to_type() -> None:
    found = committed_message([response("silt.main.orders", 12), response("silt.main.audit", 3, "R1")])
    assert found == (
        "already committed as silt.main.orders@v12, silt.main.audit@v3; a rerun with this run id skips that and does "
        """the rest (`dbt retry`, or the same command with --vars '{"silt_run_id": "R1"}')"""
    )
    assert committed_message([]) is None


def test_of_many_places_the_first_are_named_and_of_one_that_comes_twice_one() -> None:
    found = committed_message([response("silt.main.orders", version // 2) for version in range(2000)])
    assert found is not None
    assert "silt.main.orders@v7 and 992 more; a rerun" in found


def test_a_place_whose_commit_was_cleaned_up_is_the_table() -> None:
    assert "already committed as silt.main.orders; a rerun" in str(
        committed_message([response("silt.main.orders", None)])
    )


def test_an_error_tells_of_its_own_node_and_each_thing_once() -> None:
    committed = CommittedWork()
    committed.note("operation.shop.first", response("a", 1))
    committed.note("operation.shop.second", response("b", 2))
    assert "as b@v2;" in str(committed.take_message("operation.shop.second"))
    assert committed.take_message("operation.shop.second") is None
    assert "as a@v1;" in str(committed.take_all_messages())
    assert committed.take_all_messages() is None


def test_batches_are_told_of_where_one_of_their_model_failed() -> None:
    batches = CommittedBatches()
    for model in ("model.shop.whole", "model.shop.partly"):
        batches.note(model, response(model, 0))
        batches.end(model)
    batches.fail("model.shop.partly", "20260102", "no such column")
    batches.fail("model.shop.nothing")
    assert batches.ended("model.shop.whole") is None
    assert batches.ended("model.shop.nothing") == FailedBatches(None)
    partly = batches.ended("model.shop.partly")
    assert partly is not None and not partly.is_whole
    assert str(partly.message).startswith("batch 20260102: no such column\nalready committed as model.shop.partly@v0;")
    assert batches.ended("model.shop.partly") is None


def test_batches_that_failed_for_one_reason_are_told_of_together_and_of_many_reasons_the_first() -> None:
    batches = CommittedBatches()
    for day, reason in enumerate(("a", "b", "a", "c", "d", "e"), 1):
        batches.fail("model.shop.orders", f"2026010{day}", reason)
    failed = batches.ended("model.shop.orders")
    assert failed == FailedBatches(
        "batch 20260101, 20260103: a\nbatch 20260102: b\nbatch 20260104: c\nand 2 more reasons", is_whole=True
    )
