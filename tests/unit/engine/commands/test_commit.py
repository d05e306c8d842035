"""Merged read sets, and the files of a commit that does not succeed."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.commit import commit
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, ConcurrentDeleteReadError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, UNKNOWN
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet, merged_reads
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.fixed_clock import FixedClock
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

WRITE = Operation("WRITE")


def test_read_sets_are_merged() -> None:
    both = merged_reads(ReadSet((TRUE,), frozenset("a")), ReadSet((UNKNOWN,), frozenset("b"), whole_table=True))
    assert both == ReadSet((TRUE, UNKNOWN), frozenset("ab"), whole_table=True)


def test_files_of_a_commit_that_conflicted_are_deleted(tables: Tables) -> None:
    log = tables.made("select 1L id")
    base = log.snapshot()
    (old,) = base.add_files()
    commit(log, base, Changes(WRITE, removes=(old.remove(1),)), ReadSet(whole_table=True), PLAIN)
    found = files.write(tables.spark.range(3), log, base.metadata)
    reads = WriteSettings(reads=ReadSet(paths=frozenset([old.path])))
    with pytest.raises(ConcurrentDeleteReadError):
        commit(log, base, Changes(WRITE, adds=found.adds), ReadSet(), reads, (found,))
    assert len(tables.data_files(log)) == 1


def test_files_of_a_commit_that_may_have_succeeded_are_kept(tables: Tables) -> None:
    log = tables.made("select 1L id")
    silent = DeltaLog(FaultyStore(log.store, [Fault("put_if_absent", FaultKind.FAIL_BEFORE)]), log.name, FixedClock())
    base = silent.snapshot()
    found = files.write(tables.spark.range(3), silent, base.metadata)
    with pytest.raises(CommitStateUnknownError):
        commit(silent, base, Changes(WRITE, adds=found.adds), ReadSet(), PLAIN, (found,))
    assert len(tables.data_files(log)) == 1 + len(found.adds)
