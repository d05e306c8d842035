"""Row ids of added files, and their high-water mark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, InternalError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, DomainMetadata, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import (
    PRESERVED_TAG,
    ROW_TRACKING_DOMAIN,
    enabled,
    high_water_mark,
    keeps_row_ids,
)
from tests.examples import examples
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore

TRACKED = Protocol(1, 7, None, ("rowTracking", "domainMetadata", "appendOnly"))
METADATA = Metadata("id", StructType((StructField("a", PrimitiveType("long")),)).to_json())


def new_table(protocol: Protocol = TRACKED, **configuration: str) -> DeltaLog:
    store = MemoryStore()
    store.make_folder(LOG_FOLDER)
    log = DeltaLog(store, "t", clock=FixedClock())
    metadata = replace(METADATA, configuration={f"delta.{key}": value for key, value in configuration.items()})
    settings = CommitSettings()
    commit(log, None, Changes(Operation("CREATE TABLE"), metadata=metadata, protocol=protocol), ReadSet(), settings)
    return log


def file(log: DeltaLog, path: str, rows: int) -> AddFile:
    log.store.put(path, b"data")
    return AddFile(path, {}, 1, 0, stats=json.dumps({"numRecords": rows}))


def put(log: DeltaLog, base: Snapshot, adds: Sequence[AddFile], removed: Sequence[AddFile] = ()) -> int:
    changes = Changes(Operation("WRITE"), tuple(adds), tuple(each.remove(1) for each in removed))
    return commit(log, base, changes, ReadSet(), CommitSettings()).version


def added(log: DeltaLog) -> dict[str, tuple[int, AddFile]]:
    """Returns each added file with the version of its commit."""
    found = {}
    for version in range(log.snapshot().version + 1):
        for action in next(iter(log.commits(version))).actions:
            if isinstance(action, AddFile):
                found[action.path] = (version, action)
    return found


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.tuples(st.lists(st.integers(1, 5), max_size=3), st.integers(0, 3), st.booleans()), max_size=8))
def test_no_two_rows_have_the_same_id(steps: list[tuple[list[int], int, bool]]) -> None:
    log = new_table()
    for number, (sizes, back, removes) in enumerate(steps):
        # With an older base, the commit follows winners that moved the high-water mark.
        base = log.snapshot_at(max(0, log.snapshot().version - (0 if removes else back)))
        gone = base.add_files()[:1] if removes else []
        put(log, base, [file(log, f"{number}-{index}", rows) for index, rows in enumerate(sizes)], gone)
    ids: list[int] = []
    for version, each in added(log).values():
        assert each.base_row_id is not None and each.default_row_commit_version == version
        ids.extend(range(each.base_row_id, each.base_row_id + json.loads(each.stats or "")["numRecords"]))
    assert sorted(ids) == list(range(len(ids)))
    assert high_water_mark(log.snapshot().domains) == len(ids) - 1


def test_a_file_that_is_added_again_keeps_its_ids() -> None:
    log = new_table()
    put(log, log.snapshot(), [file(log, "a", 10)])
    put(log, log.snapshot(), [file(log, "b", 5)])
    (a,) = [each for each in log.snapshot().add_files() if each.path == "a"]
    put(log, log.snapshot(), [], [a])
    put(log, log.snapshot(), [replace(a, data_change=True)])
    (_, again) = added(log)["a"]
    assert (again.base_row_id, again.default_row_commit_version) == (0, 1)
    assert high_water_mark(log.snapshot().domains) == 14


def test_a_commit_records_whether_rows_kept_their_ids() -> None:
    log = new_table()
    put(log, log.snapshot(), [file(log, "a", 10)])
    put(log, log.snapshot(), [file(log, "b", 9)], log.snapshot().add_files())
    put(log, log.snapshot(), [], log.snapshot().add_files())
    told = []
    for version in (1, 2, 3):
        (info,) = [each for each in next(iter(log.commits(version))).actions if isinstance(each, CommitInfo)]
        told.append(info.extra["tags"][PRESERVED_TAG])
    assert told == ["true", "false", "true"]


def test_rewritten_rows_keep_their_ids_if_the_table_has_columns_for_them() -> None:
    names = {"rowTracking.materializedRowIdColumnName": "i", "rowTracking.materializedRowCommitVersionColumnName": "v"}
    for asked, keeps in (({}, "false"), (names, "false"), ({**names, "enableRowTracking": "true"}, "true")):
        log = new_table(**asked)  # type: ignore[arg-type]
        put(log, log.snapshot(), [file(log, "a", 10)])
        put(log, log.snapshot(), [file(log, "b", 9)], log.snapshot().add_files())
        (info,) = [each for each in next(iter(log.commits(2))).actions if isinstance(each, CommitInfo)]
        assert info.extra["tags"][PRESERVED_TAG] == keeps
        assert keeps_row_ids(log.snapshot()) is (keeps == "true")


@pytest.mark.parametrize(
    ("protocol", "configuration"),
    [(Protocol(1, 2), {}), (TRACKED, {"rowTrackingSuspended": "true"})],
)
def test_files_of_tables_that_do_not_track_rows_have_no_ids(protocol: Protocol, configuration: dict[str, str]) -> None:
    log = new_table(protocol, **configuration)
    put(log, log.snapshot(), [file(log, "a", 10)])
    (add,) = log.snapshot().add_files()
    assert (add.base_row_id, add.default_row_commit_version) == (None, None)
    assert ROW_TRACKING_DOMAIN not in log.snapshot().domains


def test_a_file_without_a_number_of_rows_is_not_committed() -> None:
    log = new_table()
    with pytest.raises(InternalError, match="number of rows"):
        put(log, log.snapshot(), [replace(file(log, "a", 1), stats=None)])
    assert log.snapshot().version == 0


def test_an_invalid_high_water_mark_raises_corrupt_log_error() -> None:
    for text in ("", "{}", '{"rowIdHighWaterMark":"many"}', "[]"):
        with pytest.raises(CorruptLogError):
            high_water_mark({ROW_TRACKING_DOMAIN: DomainMetadata(ROW_TRACKING_DOMAIN, text)})


def test_row_tracking_is_enabled_only_if_every_row_has_an_id() -> None:
    asked = replace(METADATA, configuration={"delta.enableRowTracking": "true"})
    told = enabled(asked, [], iter("ab").__next__, "t").configuration
    assert told["delta.rowTracking.materializedRowIdColumnName"] == "_row-id-col-a"
    assert told["delta.rowTracking.materializedRowCommitVersionColumnName"] == "_row-commit-version-col-b"
    assert enabled(replace(METADATA, configuration=told), [], iter("").__next__, "t").configuration == told
    assert enabled(METADATA, [], iter("").__next__, "t") is METADATA
    with pytest.raises(UnsupportedStatementError, match="no ids"):
        enabled(asked, [AddFile("a", {}, 1, 0)], iter("ab").__next__, "t")
