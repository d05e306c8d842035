"""Commits whose base does not allow them, and the creation of a table whose outcome is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, ConcurrentDropError, StorageError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import DROPPED_PROPERTY, Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, new_log

WRITE = Changes(Operation("WRITE"))


def test_a_commit_based_on_the_version_that_dropped_the_table_is_refused() -> None:
    log = new_log()
    base = log.snapshot()
    dropped = replace(base, metadata=replace(base.metadata, configuration={DROPPED_PROPERTY: "true"}))
    with pytest.raises(ConcurrentDropError, match="dropped") as caught:
        commit(log, dropped, WRITE, ReadSet(), CommitSettings())
    assert caught.value.version == base.version
    assert log.store.status(commit_path(1)) is None


def test_a_creation_whose_answers_are_all_lost_has_an_unknown_outcome() -> None:
    store = FaultyStore(MemoryStore(), [Fault("put_if_absent", FaultKind.FAIL_BEFORE, "*.json")])
    log = DeltaLog(store, "t", FixedClock())
    store.make_folder(LOG_FOLDER)
    create = Changes(Operation("CREATE TABLE"), metadata=METADATA, protocol=PROTOCOL)
    with pytest.raises(CommitStateUnknownError, match="version 0") as caught:
        commit(log, None, create, ReadSet(), CommitSettings())
    assert isinstance(caught.value.__cause__, StorageError)
    assert caught.value.details == {"version": 0}
