"""One attempt to write a version to a storage that raises given errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import NoSpaceError, NotWrittenError, StorageError, StorageRefusedError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import PutResult
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, serialize
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.transaction.attempt import (
    SETTLING_TRIES,
    Committed,
    Conflict,
    Entry,
    Outcome,
    Unknown,
    attempt,
)
from tests.faulty_store import FaultyStore
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import new_log, put

ENTRY = Entry(serialize([CommitInfo(operation="WRITE", txn_id="own")]), "own")


class Failing(FaultyStore):
    """A store whose writes of version 1 raise the given errors in order and then succeed."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        super().__init__(MemoryStore())
        self.errors = list(errors)
        self.reads = 0

    def around(self, operation: str, path: str, run: Any) -> Any:
        if path == commit_path(1):
            self.reads += operation == "read"
            if operation == "put_if_absent" and self.errors:
                raise self.errors.pop(0)
        return run()


def attempted(*errors: Exception) -> tuple[Outcome, DeltaLog]:
    """Attempts to write version 1 while the first writes fail with these errors; returns the outcome and the log."""
    log = new_log(Failing(errors))
    return attempt(log, log.store.pin(LOG_FOLDER), 1, ENTRY), log


def test_a_version_that_was_created_is_not_read() -> None:
    outcome, log = attempted()
    assert outcome == Committed()
    assert isinstance(log.store, Failing) and log.store.reads == 0


def test_a_first_write_without_space_raises_the_error() -> None:
    with pytest.raises(NoSpaceError):
        attempted(NoSpaceError("full"))


def test_a_write_without_space_after_a_lost_answer_is_retried() -> None:
    outcome, _ = attempted(StorageError("lost"), NoSpaceError("full"))
    assert outcome == Committed()


def test_a_refused_write_is_retried_because_an_earlier_request_may_have_succeeded() -> None:
    outcome, _ = attempted(StorageRefusedError("expired"))
    assert outcome == Committed()


def test_an_unknown_outcome_states_the_first_error_and_the_last_refusal() -> None:
    first, refused = StorageError("lost"), NotWrittenError("full")
    outcome, _ = attempted(first, StorageError("lost again"), refused, *[StorageError("later")] * SETTLING_TRIES)
    assert isinstance(outcome, Unknown)
    assert outcome.error is first
    assert outcome.refused is refused


def test_a_refusal_after_a_lost_answer_is_stated_after_it() -> None:
    first, refused = StorageError("lost"), StorageRefusedError("expired")
    outcome, _ = attempted(first, *[refused] * SETTLING_TRIES)
    assert isinstance(outcome, Unknown)
    assert (outcome.error, outcome.refused) == (first, refused)


def test_a_refusal_that_is_the_first_error_is_stated_once() -> None:
    refused = StorageRefusedError("expired")
    outcome, _ = attempted(*[refused] * SETTLING_TRIES)
    assert outcome == Unknown(refused, None)


def test_the_writes_of_an_attempt_wait_longer_each_time() -> None:
    outcome, log = attempted(*[StorageError("lost")] * SETTLING_TRIES)
    assert isinstance(outcome, Unknown)
    quick, quick_log = attempted(StorageError("lost"))
    assert quick == Committed()
    assert log.clock.now_ms() - quick_log.clock.now_ms() > 5000


def test_a_version_of_another_writer_is_a_conflict() -> None:
    log = new_log()
    put(log, 1, CommitInfo(operation="WRITE", txn_id="other"))
    assert attempt(log, log.store.pin(LOG_FOLDER), 1, ENTRY) == Conflict()


def test_an_attempt_has_an_unknown_outcome_if_an_existing_version_cannot_be_found() -> None:
    class Hidden(FaultyStore):
        def around(self, operation: str, path: str, run: Any) -> Any:
            hidden = operation == "put_if_absent" and path == commit_path(1)
            return PutResult.EXISTS if hidden else run()

    log = new_log(Hidden(MemoryStore()))
    outcome = attempt(log, log.store.pin(LOG_FOLDER), 1, ENTRY)
    assert isinstance(outcome, Unknown)
    assert "reported that 00000000000000000001.json exists" in outcome.error.problem
