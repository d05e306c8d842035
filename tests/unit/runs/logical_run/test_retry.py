"""Which run id `dbt retry` uses, and when it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.runs.logical_run.retry import PreviousResults, Retry

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)


def entry(invocation: str, run: str, minutes_ago: int = 10, **fields: Any) -> RunEntry:
    started = (NOW - timedelta(minutes=minutes_ago)).isoformat()
    return replace(RunEntry(invocation, run, "dbt run", "/shop", started, finished=True), **fields)


OWN = entry("I9", "I1", 0, command="dbt retry")


def retry(invocation: str, minutes_ago: int = 5, from_state: bool = False, **fields: Any) -> Retry:
    generated = NOW - timedelta(minutes=minutes_ago)
    return Retry(PreviousResults(invocation, generated, generated, **fields), OWN, from_state)


def check(given: Retry, *entries: RunEntry) -> None:
    given.check(entries, "/shop/target")


def found(given: Retry, entries: Sequence[RunEntry] = (), commits: str | None = None) -> str:
    return given.run_id(entries, lambda _: commits)


class TestRunId:
    def test_a_retry_of_a_retry_uses_the_id_of_the_first_run(self) -> None:
        assert found(retry("I2"), (entry("I1", "R1", 30), entry("I2", "R1", 20, repeats="I1"))) == "R1"

    def test_the_id_is_read_from_the_results_if_the_registry_is_missing(self) -> None:
        assert found(retry("I1", run_ids=("R1",)), commits="C") == "R1"

    def test_the_id_is_read_from_the_recorded_variables_if_they_set_it(self) -> None:
        assert found(retry("I1", variables={"silt_run_id": 7}), commits="C") == "7"

    def test_the_id_is_read_from_the_commits_if_the_results_lack_it(self) -> None:
        assert found(retry("I1"), commits="C") == "C"

    def test_a_retry_is_refused_if_no_run_id_is_found(self) -> None:
        with pytest.raises(InvalidSettingError, match="run id of invocation I1") as refusal:
            found(retry("I1", command="run"))
        assert "`dbt retry --vars '{silt_run_id: I1}'`" in str(refusal.value)

    def test_a_retry_of_an_operation_without_changes_uses_its_invocation_id(self) -> None:
        assert found(retry("I1", command="run-operation")) == "I1"
        with pytest.raises(InvalidSettingError):
            found(retry("I1", command="run-operation", from_state=True))


class TestCheck:
    def test_a_retry_is_refused_if_a_later_run_was_killed_without_results(self) -> None:
        with pytest.raises(InvalidSettingError, match="killed") as refusal:
            check(retry("I1", 20), entry("I1", "R1", 30), entry("I2", "R2", 2, finished=False))
        assert "`dbt run --vars '{silt_run_id: R2}'`" in str(refusal.value)
        assert "`--state /shop/target`" in str(refusal.value)

    def test_incomplete_results_of_a_stopped_run_are_refused(self) -> None:
        with pytest.raises(InvalidSettingError, match="lack the nodes that had not yet run") as refusal:
            check(retry("I2", 1), entry("I1", "R1", 30), entry("I2", "R2", 2, finished=False))
        assert "`dbt run --vars '{silt_run_id: R2}'`" in str(refusal.value)

    def test_complete_results_of_an_interrupted_run_are_accepted(self) -> None:
        check(retry("I2", 1), entry("I1", "R1", 30), entry("I2", "R2", 2, finished=False, has_results=True))

    def test_the_refusal_reports_that_a_later_run_is_still_running(self) -> None:
        with pytest.raises(InvalidSettingError, match="is still running") as refusal:
            check(retry("I1", 20), entry("I2", "R2", 2, finished=False, running=True))
        assert "Continue" not in str(refusal.value)

    def test_the_refusal_does_not_advise_to_continue_a_finished_run(self) -> None:
        with pytest.raises(InvalidSettingError, match="left no results") as refusal:
            check(retry("I1", 20), entry("I2", "R2", 2))
        assert "Continue" not in str(refusal.value)

    @pytest.mark.parametrize(
        ("given", "entries"),
        [
            (retry("I2", 10), (entry("I1", "R1", 30), entry("I2", "R2", 20))),
            (retry("I1", 20), (entry("I1", "R1", 30), entry("I2", "R1", 2, finished=False, repeats="I1"))),
            (retry("T1", 1), (entry("I1", "R1", 30, finished=False),)),
            (retry("I1", 20), (entry("I1", "R1", 30), entry("I9", "R1", 0, finished=False))),
        ],
        ids=["the last run left results", "killed retry of the same", "something newer left results", "its own entry"],
    )
    def test_a_retry_is_allowed(self, given: Retry, entries: tuple[RunEntry, ...]) -> None:
        check(given, *entries)

    def test_a_later_run_with_the_same_id_that_is_not_a_retry_is_refused(self) -> None:
        with pytest.raises(InvalidSettingError, match="killed"):
            check(retry("I1", 20), entry("I1", "P", 30), entry("I2", "P", 2, command="dbt seed", finished=False))


def test_missing_results_are_read_as_none(tmp_path: Path) -> None:
    assert PreviousResults.read(tmp_path) is None


def test_results_name_their_invocation_run_ids_and_relations(tmp_path: Path) -> None:
    (tmp_path / "run_results.json").write_text(
        """{"metadata": {"invocation_id": "I1", "generated_at": "2026-03-01T11:00:00.5Z",
                        "invocation_started_at": "2026-03-01T10:00:00Z"},
            "args": {"which": "run", "vars": {"day": 1}}, "results": [
            {"adapter_response": {"run_id": "R1"}, "relation_name": "`silt`.`main`.`a`"},
            {"adapter_response": {}, "relation_name": null}]}"""
    )
    assert PreviousResults.read(tmp_path) == PreviousResults(
        "I1",
        datetime(2026, 3, 1, 11, 0, 0, 500000, tzinfo=timezone.utc),
        datetime(2026, 3, 1, 10, tzinfo=timezone.utc),
        "run",
        ("R1",),
        ("`silt`.`main`.`a`",),
        {"day": 1},
    )
