"""`silt run` and `silt rollback` read a RESTORE in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction import lineage, restore
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from dbt.adapters.silt.records.run_history import TableHistory, log_history
from tests.unit.engine.catalog.units_of_work import Works, named

TIME = "2020-01-01T00:00:00+00:00"


def _restored(log: DeltaLog, point: RestorePoint) -> None:
    restore.commit(log, restore.prepare(log, log.snapshot(), point), CommitSettings())


def _undone(log: DeltaLog) -> tuple[set[int], set[int]]:
    """Returns the undone versions as `silt run` and as `silt rollback` read them."""
    history = TableHistory(named("t"), tuple(log_history(log)))
    found = lineage.ancestors(log, log.snapshot().version, lambda _: False)
    undone = {each.commit.version for each in found if each.undone}
    restores = {each.version for each in history.commits if each.back_to is not None}
    return set(history.undone_by()) | restores, undone | restores


@given(st.lists(st.none() | st.tuples(st.integers(0, 99), st.booleans()), max_size=6))
def test_both_commands_find_the_same_undone_versions_in_any_history(steps: Sequence[tuple[int, bool] | None]) -> None:
    works = Works()
    works.create("t", "A", {0: 0})
    for number, step in enumerate(steps, 1):
        if step is None:
            works.append("t", "A", {number: number}, str(number))
        else:
            version = step[0] % (works.log("t").snapshot().version + 1)
            _restored(works.log("t"), RestorePoint(version, TIME if step[1] else None))
    by_run, by_rollback = _undone(works.log("t"))
    assert by_run == by_rollback


def test_a_restore_to_a_time_records_the_restored_version() -> None:
    works = Works()
    works.create("t", "A", {1: 1})
    for number in (2, 3):
        works.append("t", "A", {number: number}, str(number))
    _restored(works.log("t"), RestorePoint(1, TIME))
    assert works.rows() == {"t": {1: 1, 2: 2}}
    assert _undone(works.log("t")) == ({2, 3}, {2, 3})


def test_the_version_of_an_older_restore_to_a_time_is_found_in_the_log() -> None:
    works = Works()
    works.create("t", "A", {1: 1})
    works.append("t", "A", {2: 2})
    _restored(works.log("t"), RestorePoint(0, "9999-01-01T00:00:00+00:00"))
    store, path = works.log("t").store, commit_path(2)
    store.put(path, store.read(path).replace(b',"restoredVersion":0', b""))
    [*_, last] = log_history(works.reopened(2).log("t"))
    assert last.back_to == 1
