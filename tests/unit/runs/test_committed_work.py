"""An error message lists the units of work that were committed before the error."""

from __future__ import annotations

from dbt.adapters.silt.runs.committed_work import CommittedBatches, CommittedWork, FailedBatches, committed_message
from dbt.adapters.silt.runs.response import SiltResponse


def response(table: str, version: int | None, run_id: str = "R1") -> SiltResponse:
    return SiltResponse("OK", run_id=run_id, table=table, table_version=version)


def test_the_message_names_the_versions_and_the_commands_to_continue() -> None:
    found = committed_message([response("silt.main.orders", 12), response("silt.main.audit", 3, "R1")])
    assert found == (
        "already committed as silt.main.orders@v12, silt.main.audit@v3; a rerun with this run id skips that and does "
        """the rest (`dbt retry`, or the same command with --vars '{"silt_run_id": "R1"}')"""
    )
    assert committed_message([]) is None


def test_the_first_of_many_commits_are_named_each_once() -> None:
    found = committed_message([response("silt.main.orders", version // 2) for version in range(2000)])
    assert found is not None
    assert "silt.main.orders@v7 and 992 more; a rerun" in found


def test_a_commit_without_a_known_version_is_named_by_its_table() -> None:
    assert "already committed as silt.main.orders; a rerun" in str(
        committed_message([response("silt.main.orders", None)])
    )


def test_an_error_lists_only_its_own_nodes_commits_and_each_once() -> None:
    committed = CommittedWork()
    committed.note("operation.shop.first", response("a", 1))
    committed.note("operation.shop.second", response("b", 2))
    assert "as b@v2;" in str(committed.take_message("operation.shop.second"))
    assert committed.take_message("operation.shop.second") is None
    assert "as a@v1;" in str(committed.take_all_messages())
    assert committed.take_all_messages() is None


def test_committed_batches_are_listed_if_another_batch_of_their_model_failed() -> None:
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


def test_failed_batches_are_grouped_by_reason_and_only_the_first_reasons_are_named() -> None:
    batches = CommittedBatches()
    for day, reason in enumerate(("a", "b", "a", "c", "d", "e"), 1):
        batches.fail("model.shop.orders", f"2026010{day}", reason)
    failed = batches.ended("model.shop.orders")
    assert failed == FailedBatches(
        "batch 20260101, 20260103: a\nbatch 20260102: b\nbatch 20260104: c\nand 2 more reasons", is_whole=True
    )
