"""Tables whose rows are the names of files, changed by transactions and by other writers, which can be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication.publish import publish
from dbt.adapters.silt.engine.kernel.publication_marks import publication_of
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.engine.kernel.storage.store import PutResult, Store
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.branch_log import BranchLog
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.faulty_store import FaultyStore
from tests.fixed_clock import FixedClock
from tests.unit.engine.kernel.log_builder import add, new_log

T = TypeVar("T")
NAMES = ("a", "b")
WRITE = Operation("WRITE")
Rows = Mapping[str, frozenset[str]]


class Killed(BaseException):
    """The process has ended: none of its code runs any more."""


class DyingStore(FaultyStore):
    """A store whose process is killed at a write.

    Args:
        writes: the number of writes before that write.
        fate: what becomes of that write: `lost`, `done` or `late`, which means that `arrive` does it.
    """

    def __init__(self, inner: Store, writes: int, fate: str = "lost") -> None:
        super().__init__(inner)
        self.life = _Life(writes, fate)

    def around(self, operation: str, path: str, run: Callable[[], T]) -> T:
        if self.life.is_over:
            raise Killed
        if operation not in ("put_if_absent", "put", "delete"):
            return run()
        self.life.writes -= 1
        if self.life.writes >= 0:
            return run()
        self.life.is_over = True
        if self.life.fate == "done":
            run()
        elif self.life.fate == "late":
            self.life.held = run
        raise Killed

    def arrive(self) -> None:
        """Does the write that was late."""
        if self.life.held is not None:
            self.life.held()


@dataclass
class _Life:
    writes: int
    fate: str
    is_over: bool = False
    held: Callable[[], Any] | None = None


def create(store: Store, names: Iterable[str] = NAMES) -> None:
    """Creates the tables, each with the row `old`."""
    for name in names:
        log = new_log(store.child(f"main/{name}"))
        log.store.put("old", b"data")
        assert log.store.put_if_absent(commit_path(1), serialize([CommitInfo(), add("old")])) is PutResult.CREATED


@dataclass
class Process:
    """A process with handles of its own.

    Args:
        store: the warehouse.
        seed: distinguishes its ids and times.
    """

    store: Store
    seed: int
    settles: bool = True
    register: Publications = field(init=False)
    logs: dict[str, DeltaLog] = field(init=False)

    def __post_init__(self) -> None:
        clock = FixedClock(1_700_000_000_000 + self.seed, seed=self.seed)
        self.register = Publications(self.store, clock, at_once=1)
        self.logs = {name: DeltaLog(self.store.child(f"main/{name}"), name, clock) for name in NAMES}
        for log in self.logs.values():
            log.publications = self.register if self.settles else None

    def rows(self) -> Rows:
        """The rows of a consistent cut."""
        cut = consistent_cut(self.logs.values())
        return {log.name: frozenset(snapshot.files["path"].to_pylist()) for log, snapshot in cut.items()}

    def branch(self) -> dict[str, BranchLog]:
        """The tables on a branch that nothing has used."""
        number = self.register.clock.new_id()
        folders = {name: self.store.child(f"_branches/{number}/{name}") for name in NAMES}
        return {name: BranchLog(self.logs[name], folders[name]) for name in NAMES}

    def publish(self, row: str, *, replaces: Iterable[str] = (), names: Iterable[str] = NAMES) -> dict[str, int]:
        """Adds a row to each table, in a transaction, which replaces all rows of some of them."""
        branch = self.branch()
        for name in names:
            _write(branch[name], row, replaces=name in replaces)
        return publish(self.register, [branch[name] for name in names])

    def publish_with_read(self, branch: Mapping[str, BranchLog], row: str) -> dict[str, int]:
        """Adds a row to the table `b`, because of all rows of the table `a`, which the branch has read."""
        branch["a"].note(ReadSet(whole_table=True))
        _write(branch["b"], row, replaces=False)
        return publish(self.register, list(branch.values()))

    def write(self, name: str, row: str, *, replaces: bool = False) -> None:
        """Adds a row to a table, as a statement of this package, which is repeated after a conflict."""
        while True:
            try:
                _write(self.logs[name], row, replaces=replaces)
            except ConcurrentModificationError:
                continue
            return

    def append_as_another_engine(self, name: str, row: str) -> None:
        """Adds a row to a table without knowing publications."""
        store = self.store.child(f"main/{name}")
        store.put(row, b"data")
        version = 1
        while store.put_if_absent(commit_path(version), serialize([CommitInfo(operation="WRITE"), add(row)])) is (
            PutResult.EXISTS
        ):
            version += 1


def _write(log: DeltaLog, row: str, *, replaces: bool) -> None:
    log.store.put(row, b"data")
    base = log.snapshot()
    removes = tuple(each.remove(1) for each in base.add_files()) if replaces else ()
    reads = ReadSet(whole_table=replaces)
    commit(log, base, Changes(WRITE, (add(row),), removes), reads, CommitSettings())


def has_whole(rows: Rows, row: str) -> bool:
    """Whether a row that a transaction adds to all tables is in all of them; fails if it is in some."""
    found = {row in each for each in rows.values()}
    assert len(found) == 1, f"{row} is in a part of the tables: {rows}"
    return found.pop()


def check_put_once(store: Store) -> None:
    """Fails if a publication has two commits in a table."""
    for name in NAMES:
        log = DeltaLog(store.child(f"main/{name}"), name)
        found = [publication_of(each.info) for each in log.commits()]
        published = [each for each in found if each is not None]
        assert len(set(published)) == len(published), f"a publication was put twice in {name}"
