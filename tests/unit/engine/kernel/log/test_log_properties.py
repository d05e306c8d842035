"""After any checkpoints, compactions and clean-ups of a log, a version has the state that its commits define."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log import checkpoint_write
from dbt.adapters.silt.engine.kernel.log.checkpoint_write import file_rows, header_rows, rows
from dbt.adapters.silt.engine.kernel.log.cleanup import clean_up
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.log_segment import list_log
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    serialize,
)
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, SIDECAR_FOLDER
from tests.examples import examples
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore
from tests.unit.engine.kernel.log.test_compaction import compaction_path
from tests.unit.engine.kernel.log_builder import NaiveTable, new_log, observed, put, reopened, without_tombstones

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
PROPERTIES = {
    "delta.logRetentionDuration": "interval 2 days",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpointInterval": "1000",
}
WITH_DOMAINS = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint", "domainMetadata"))
WITHOUT_DOMAINS = Protocol(3, 7, ("v2Checkpoint",), ("v2Checkpoint",))

NAMES = ["a", "b%20c", "p=1/d", "p=%25/é"]
ADDS = st.builds(
    AddFile,
    path=st.sampled_from(NAMES),
    partition_values=st.just({}),
    size=st.integers(1, 9),
    modification_time=st.just(1),
    stats=st.sampled_from([None, '{"numRecords":3,"nullCount":{"id":1}}']),
)
REMOVES = st.builds(RemoveFile, path=st.sampled_from(NAMES), deletion_timestamp=st.none())
TRANSACTIONS = st.builds(SetTransaction, st.sampled_from("xy"), st.integers(0, 9), st.just(1))
DOMAINS = st.builds(DomainMetadata, st.sampled_from(["d", "e"]), st.sampled_from(["1", "2"]), st.booleans())


def _thing(action: Action) -> tuple[str, str]:
    name = next(getattr(action, key) for key in ("path", "app_id", "domain") if hasattr(action, key))
    return ("file" if isinstance(action, AddFile | RemoveFile) else action.key), name


def commits(with_domains: bool) -> st.SearchStrategy[list[Action]]:
    kinds = [ADDS, ADDS, REMOVES, TRANSACTIONS, *([DOMAINS] if with_domains else [])]
    return st.lists(st.one_of(kinds), max_size=3, unique_by=_thing)  # type: ignore[arg-type]


@dataclass
class Table:
    """A log under test, and the expected state of each of its versions."""

    log: DeltaLog
    clock: FixedClock
    naive: NaiveTable = field(default_factory=NaiveTable)
    versions: list[NaiveTable] = field(default_factory=lambda: [NaiveTable()])
    commits: list[list[Action]] = field(default_factory=lambda: [[]])

    def commit(self, actions: Sequence[Action]) -> None:
        now = self.clock.now_ms()
        timed = [replace(each, deletion_timestamp=now) if isinstance(each, RemoveFile) else each for each in actions]
        put(self.log, len(self.versions), CommitInfo(timestamp=now, operation="WRITE"), *timed)
        self.naive.apply(timed)
        self.commits.append(timed)
        self.versions.append(
            NaiveTable(*map(dict, (self.naive.files, self.naive.removed, self.naive.transactions, self.naive.domains)))  # type: ignore[arg-type]
        )

    def wait(self, days: int) -> None:
        self.clock.at_ms += days * DAY_MS

    def checkpoint(self, kind: str) -> None:
        CHECKPOINTS[kind](self, reopened(self.log).snapshot())

    def compact(self, length: int) -> None:
        """Compacts the newest commits as delta-spark does: without expired actions or removed domains."""
        last = len(self.versions) - 1
        first = last - length + 1
        if first < 1:
            return
        found: dict[tuple[str, str], Action] = {}
        for actions in self.commits[first : last + 1]:
            found.update({_thing(action): action for action in actions})
        oldest = self.clock.at_ms - WEEK_MS
        unexpired = [action for action in found.values() if not _is_expired(action, oldest)]
        self.log.store.put(compaction_path(first, last), serialize(unexpired))

    def clean(self) -> None:
        clean_up(self.log.store, reopened(self.log).snapshot(), self.clock.at_ms)

    def refresh(self) -> None:
        self.check(self.log.snapshot(), len(self.versions) - 1)

    def check(self, snapshot: Snapshot, version: int) -> None:
        assert snapshot.version == version
        assert observed(snapshot) == without_tombstones(self.versions[version])

    def check_all(self) -> None:
        """Checks that a new reader and an old reader agree on the newest version, and that each older version is right
        or gone.
        """
        newest = len(self.versions) - 1
        fresh = reopened(self.log)
        self.check(fresh.snapshot(), newest)
        self.check(self.log.snapshot(), newest)
        earliest = list_log(self.log.store, "t").earliest or 0
        for version in range(newest + 1):
            try:
                self.check(fresh.snapshot_at(version), version)
            except VersionNotFoundError:
                assert version < earliest
        self.check_tombstones(fresh, newest)

    def check_tombstones(self, fresh: DeltaLog, newest: int) -> None:
        found = set(fresh.tombstones(fresh.snapshot())["path"].to_pylist())
        removed = self.versions[newest].removed
        live = {
            path for (path, _), each in removed.items() if (each.deletion_timestamp or 0) > self.clock.at_ms - WEEK_MS
        }
        assert live <= found <= {path for path, _ in removed}


def _is_expired(action: Action, oldest_ms: int) -> bool:
    if isinstance(action, RemoveFile):
        return (action.deletion_timestamp or 0) <= oldest_ms
    return isinstance(action, DomainMetadata) and action.removed


def _write(table: Table, name: str, found: Any) -> None:
    sink = io.BytesIO()
    pq.write_table(found, sink)
    table.log.store.put(f"{LOG_FOLDER}/{name}", sink.getvalue())


def _ours(policy: str, part_actions: int = 50_000) -> Callable[[Table, Snapshot], None]:
    def write(table: Table, snapshot: Snapshot) -> None:
        configuration = {**snapshot.metadata.configuration, "delta.checkpointPolicy": policy}
        asking = replace(snapshot, metadata=replace(snapshot.metadata, configuration=configuration))
        live = checkpoint_write.live_tombstones(table.log.tombstones(snapshot), table.clock.at_ms - WEEK_MS)
        with mock.patch.object(checkpoint_write, "PART_ACTIONS", part_actions):
            checkpoint_write.write_checkpoint(table.log.store, asking, live, table.clock)

    return write


def _multi_part(table: Table, snapshot: Snapshot) -> None:
    found = rows([header_rows(snapshot), file_rows(snapshot, table.log.tombstones(snapshot))])
    half = found.num_rows // 2
    for number, part in enumerate((found.slice(0, half), found.slice(half)), start=1):
        _write(table, f"{snapshot.version:020d}.checkpoint.{number:010d}.{2:010d}.parquet", part)


def _json(table: Table, snapshot: Snapshot) -> None:
    """Writes the header in JSON, and the files in one sidecar."""
    table.log.store.make_folder(SIDECAR_FOLDER)
    sidecar = f"{table.clock.new_id()}.parquet"
    _write(table, f"_sidecars/{sidecar}", file_rows(snapshot, table.log.tombstones(snapshot)))
    header: list[Action] = [snapshot.protocol, snapshot.metadata, *snapshot.transactions.values()]
    pointer = {"sidecar": {"path": sidecar, "sizeInBytes": 1, "modificationTime": 1}}
    about = {"checkpointMetadata": {"version": snapshot.version}}
    data = serialize([*header, *snapshot.domains.values()]) + "\n".join(map(json.dumps, (pointer, about))).encode()
    table.log.store.put(f"{LOG_FOLDER}/{snapshot.version:020d}.checkpoint.{table.clock.new_id()}.json", data)


def _broken(table: Table, snapshot: Snapshot) -> None:
    name = f"{LOG_FOLDER}/{snapshot.version:020d}.checkpoint.{table.clock.new_id()}.parquet"
    table.log.store.put(name, b"PAR1 cut")


CHECKPOINTS: Mapping[str, Callable[[Table, Snapshot], None]] = {
    "classic": _ours("classic"),
    "V2": _ours("v2"),
    "V2 with sidecars": _ours("v2", part_actions=1),
    "in parts": _multi_part,
    "JSON": _json,
    "broken": _broken,
}


def steps(with_domains: bool) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    one = st.one_of(
        st.tuples(st.just("commit"), commits(with_domains)),
        st.tuples(st.just("commit"), commits(with_domains)),
        st.tuples(st.just("checkpoint"), st.sampled_from(sorted(CHECKPOINTS))),
        st.tuples(st.just("compact"), st.integers(2, 4)),
        st.tuples(st.just("wait"), st.sampled_from([8, 3, 1])),
        st.tuples(st.just("clean")),
        st.tuples(st.just("refresh")),
    )
    return st.lists(one, max_size=20)


@given(st.booleans().flatmap(lambda domains: st.tuples(st.just(domains), steps(domains))))
@settings(max_examples=examples(40), deadline=None)
def test_every_version_has_the_state_that_its_commits_define(case: tuple[bool, list[tuple[Any, ...]]]) -> None:
    with_domains, todo = case
    clock = FixedClock()
    protocol = WITH_DOMAINS if with_domains else WITHOUT_DOMAINS
    made = new_log(MemoryStore(clock), PROPERTIES, (), protocol)
    table = Table(DeltaLog(made.store, "t", clock), clock)
    table.commit([AddFile(name, {}, 1, 1) for name in NAMES])
    for name, *arguments in todo:
        getattr(table, name)(*arguments)
    table.check_all()
