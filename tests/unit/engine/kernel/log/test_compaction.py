"""Log compaction files: an optimisation that never changes the result of a read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import MissingLogVersionError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Protocol,
    RemoveFile,
    parse,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, commit_path
from tests.faulty_store import FaultyStore
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log_builder import METADATA, add, new_log, observed, put, reopened

WEEK_MS = 7 * 86_400_000


class Reads(FaultyStore):
    """Records the files that are read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.names: set[str] = set()

    def around(self, operation, path, run):  # type: ignore[no-untyped-def]
        if operation == "read":
            self.names.add(path.rpartition("/")[2])
        return super().around(operation, path, run)


def compaction_path(first: int, last: int) -> str:
    return f"{LOG_FOLDER}/{first:020d}.{last:020d}.compacted.json"


def reconciled(log: DeltaLog, first: int, last: int) -> list[Action]:
    """Returns the reconciled actions of these commits: the last action on each thing."""
    found: dict[object, Action] = {}
    for version in range(first, last + 1):
        for action in parse(log.store.read(commit_path(version))):
            if not isinstance(action, CommitInfo):
                name = next((getattr(action, key) for key in ("path", "app_id", "domain") if hasattr(action, key)), "")
                kind = "file" if isinstance(action, AddFile | RemoveFile) else action.key
                found[kind, name] = action
    return list(found.values())


def compact(log: DeltaLog, first: int, last: int) -> None:
    log.store.put(compaction_path(first, last), serialize(reconciled(log, first, last)))


def busy_log(versions: int = 12) -> DeltaLog:
    """Creates a log in which each version adds a file and removes the file of three versions before."""
    log = new_log(Reads(MemoryStore()))
    for version in range(1, versions + 1):
        gone = [RemoveFile(f"f{version - 3}", log.clock.now_ms())] if version > 3 else []
        put(log, version, CommitInfo(timestamp=log.clock.now_ms(), operation="WRITE"), add(f"f{version}"), *gone)
    return log


def read(log: DeltaLog, version: int = 12) -> tuple[list[str], set[str]]:
    """Returns the files at a version, and the names of the files that were read for it."""
    assert isinstance(log.store, Reads)
    log.store.names.clear()
    snapshot = reopened(log).snapshot_at(version)
    return sorted(snapshot.files["path"].to_pylist()), set(log.store.names)


def test_a_compaction_is_read_instead_of_its_commits() -> None:
    log = busy_log()
    expected, _ = read(log)
    compact(log, 4, 9)
    found, names = read(log)
    assert found == expected
    assert f"{4:020d}.{9:020d}.compacted.json" in names
    assert not names & {f"{version:020d}.json" for version in range(5, 10)}


@pytest.mark.parametrize("version", range(13))
def test_each_version_has_the_state_that_its_commits_define(version: int) -> None:
    log = busy_log()
    expected, _ = read(log, version)
    for first, last in ((0, 3), (2, 5), (4, 9), (4, 6), (5, 12), (10, 11)):
        compact(log, first, last)
    log.checkpoint(log.snapshot_at(5))
    assert read(log, version)[0] == expected


def test_a_compaction_that_overlaps_the_checkpoint_or_exceeds_the_version_is_ignored() -> None:
    log = busy_log()
    log.checkpoint(log.snapshot_at(5))
    compact(log, 4, 8)
    compact(log, 7, 12)
    _, names = read(log, 10)
    assert not any("compacted" in name for name in names)


def test_a_compaction_does_not_replace_a_missing_commit() -> None:
    log = busy_log()
    compact(log, 4, 9)
    log.store.delete(commit_path(6))
    with pytest.raises(MissingLogVersionError, match=f"{6:020d}.json"):
        reopened(log).snapshot()


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "garbage": lambda data: b"\x00\xff" + data,
    "one file twice": lambda data: data + serialize([RemoveFile("f9", 1)]),
    "metadata in its midst": lambda data: data + serialize([METADATA]),
}


@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("damage", sorted(BROKEN))
def test_the_commits_of_a_broken_compaction_are_read_instead(damage: str, first: int) -> None:
    log = busy_log()
    expected, _ = read(log)
    compact(log, first, 9)
    log.store.put(compaction_path(first, 9), BROKEN[damage](log.store.read(compaction_path(first, 9))))
    assert read(log)[0] == expected


def test_a_compaction_that_may_lack_expired_removals_is_not_read() -> None:
    """delta-spark omits them, which would bring files back."""
    log = new_log(Reads(MemoryStore()))
    clock = log.clock
    assert isinstance(clock, FixedClock) and isinstance(log.store, Reads)
    put(log, 1, CommitInfo(timestamp=clock.now_ms()), add("old"))
    put(log, 2, CommitInfo(timestamp=clock.now_ms()), RemoveFile("old", clock.now_ms()))
    clock.at_ms += WEEK_MS + 1_000
    late = DeltaLog(Reads(MemoryStore(clock)), log.name, clock)
    late.store.make_folder(LOG_FOLDER)
    for version in range(3):
        late.store.put(commit_path(version), log.store.read(commit_path(version)))
    put(late, 3, CommitInfo(timestamp=clock.now_ms()), add("new"))
    late.store.put(compaction_path(2, 3), serialize([add("new")]))
    assert reopened(late).snapshot().files["path"].to_pylist() == ["new"]


def test_a_compaction_that_may_lack_removed_domains_is_not_read() -> None:
    log = new_log(protocol=Protocol(1, 7, None, ("domainMetadata",)))
    put(log, 1, CommitInfo(timestamp=log.clock.now_ms()), DomainMetadata("d", "{}"))
    put(log, 2, CommitInfo(timestamp=log.clock.now_ms()), DomainMetadata("d", "{}", removed=True))
    put(log, 3, CommitInfo(timestamp=log.clock.now_ms()), add("new"))
    log.store.put(compaction_path(2, 3), serialize([add("new")]))
    assert reopened(log).snapshot().domains == {}


def test_tombstones_are_those_of_the_commits() -> None:
    log = busy_log()
    expected = sorted(log.tombstones(log.snapshot())["path"].to_pylist())
    adds: list[Action] = [action for action in reconciled(log, 4, 9) if isinstance(action, AddFile)]
    log.store.put(compaction_path(4, 9), serialize(adds))
    fresh = reopened(log)
    assert sorted(fresh.tombstones(log.snapshot())["path"].to_pylist()) == expected


def test_a_compacted_log_can_be_written_like_any_other() -> None:
    log = busy_log()
    compact(log, 0, 12)
    fresh = reopened(log)
    assert fresh.snapshot().version == 12
    put(log, 13, replace(add("more"), size=7))
    assert observed(fresh.snapshot()) == observed(reopened(log).snapshot())
