"""Real processes that publish transactions over tables and names, and are killed at any of their writes.

Transaction k appends a row to one table, replaces a view and a function, and turns a view into a table and a table into
nothing, or back. After each kill the database must show exactly the state after some transaction, and so must each cut
of the readers that read it all the time.

`python -m tests.publication.processes --kills 200` kills that many, with `--cloud s3` in an object store.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    RelationExistsError,
    RelationNotFoundError,
    SiltError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.cloud.servers import running_s3
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add, paths

ROWS, VIEW, TURNING, COMING, FUNCTION = (
    RelationName("silt", "main", each) for each in ("rows", "v", "turning", "coming", "f")
)
_CREATE = Changes(Operation("CREATE TABLE"), protocol=PROTOCOL, metadata=METADATA)
_STORAGE = "PUBLICATION_STORAGE"
"""The environment variable with the settings of the object store, as JSON."""


def opened(place: str) -> Catalog:
    given = os.environ.get(_STORAGE)
    return Catalog({"silt": open_store(place, None if given is None else StorageSettings(**json.loads(given)))})


def found(catalog: Catalog) -> list[int]:
    """Returns the number of the transaction that each name shows."""
    catalog = catalog.for_statement()
    rows = sorted(int(path) for path in paths(catalog.table(ROWS)))
    assert rows == list(range(len(rows))), f"rows are lost or doubled: {rows}"
    newest = rows[-1]
    shown = [newest, int(catalog.view(VIEW).text), int(catalog.function(FUNCTION).body)]
    shown.append(_of_kind(catalog, TURNING, is_table=newest % 2 == 1))
    coming = catalog.find(COMING)
    is_there = coming is not None
    assert is_there is (newest % 2 == 1), f"after transaction {newest} a table is {'' if is_there else 'not '}there"
    if is_there:
        shown.append(int(next(iter(paths(catalog.table(COMING))))))
    return shown


def _of_kind(catalog: Catalog, name: RelationName, is_table: bool) -> int:
    entry = catalog.find(name)
    assert entry is not None and (entry.kind is RelationKind.TABLE) is is_table, f"{name} is {entry}"
    return int(next(iter(paths(catalog.table(name))))) if is_table else int(catalog.view(name).text)


def create(place: str) -> None:
    """Creates the database in the state after transaction 0."""
    catalog = opened(place)
    catalog.create_schema("silt", "main")
    _create(catalog, ROWS, 0)
    for name in (VIEW, TURNING):
        catalog.put_view(View(name, "0"))
    catalog.put_function(Function(FUNCTION, (), "0"))


def run(place: str, transactions: int | None = None) -> None:
    """Publishes transactions until the process is killed, or a number of them."""
    catalog, left = opened(place), transactions
    while left is None or left > 0:
        number = found(catalog)[0] + 1
        branch = catalog.new_branch("silt")
        try:
            _change(catalog, branch, number)
            branch.publish()
        except (ConcurrentModificationError, RelationExistsError, RelationNotFoundError):
            branch.discard()  # the transaction of a killed process was completed first
        else:
            left = None if left is None else left - 1


def _change(catalog: Catalog, branch: Branch, number: int) -> None:
    inside = catalog.on_branch("silt", branch)
    _append(inside.table(ROWS), number)
    inside.put_view(View(VIEW, str(number)), replace=True)
    inside.put_function(Function(FUNCTION, (), str(number)), replace=True)
    if number % 2 == 1:
        _create(inside, TURNING, number)
        _create(inside, COMING, number)
    else:
        inside.put_view(View(TURNING, str(number)), replace=True, replace_table=True)
        inside.drop_table(COMING)


def _create(catalog: Catalog, name: RelationName, number: int) -> None:
    log = catalog.new_table(name, replace_view=True)
    log.store.put(str(number), b"data")
    metadata = replace(METADATA, id=str(uuid.uuid4()))
    first = Changes(_CREATE.operation, (add(str(number)),), protocol=PROTOCOL, metadata=metadata)
    commit(log, None, first, ReadSet(), CommitSettings())
    catalog.publish_table(name, log, replace_view=True)


def _append(log: DeltaLog, number: int) -> None:
    log.store.put(str(number), b"data")
    reads = ReadSet(whole_table=True)
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (add(str(number)),)), reads, CommitSettings())


_EVENTS = ("os.link", "os.rename", "os.remove", "os.mkdir")
_REQUESTS = ("put", "put_if_absent", "swap_if_unchanged", "delete", "delete_all")


@dataclass
class Steps:
    """Counts the writes of this process, and kills it at one of them.

    Attributes:
        last: the number of the write before which the process is killed; 0 for none.
        tell: called with the kind of that write.
    """

    last: int
    tell: Callable[[object], None]
    reached: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watch(self) -> None:
        """Counts the changes of names in folders, which are the steps that others see, and the writes of a store."""
        sys.addaudithook(lambda event, given: self.take(_of_event(event, given)) if event in _EVENTS else None)
        for name in _REQUESTS:
            setattr(ObjectStore, name, self._counted(name, getattr(ObjectStore, name)))

    def take(self, step: str) -> None:
        with self._lock:
            self.reached += 1
            if self.reached == self.last:
                self.tell(_kind(step))
                os.kill(os.getpid(), signal.SIGKILL)

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(store: ObjectStore, path: Any, *given: Any, **named: Any) -> Any:
            self.take(f"{name} {store.root}/{path}")
            return method(store, path, *given, **named)

        return counted


def _of_event(event: str, given: tuple[Any, ...]) -> str:
    """Returns an audit event with the path of the changed name."""
    target = given[1] if event in ("os.link", "os.rename") else given[0]
    place = os.readlink(f"/proc/self/fd/{given[-1]}") if isinstance(given[-1], int) and given[-1] >= 0 else ""
    return f"{event} {place}/{target}"


def _kind(step: str) -> str:
    """Returns the kind of a step, for the figures."""
    operation, _, path = step.partition(" ")
    places = (
        "_publications",
        "_branches",
        "_delta_log",
        "_catalog.json",
        "_definitions",
        ".next.json",
        ".view",
        ".function",
    )
    return f"{operation} {next((each for each in places if each in path), 'data file')}"


def cut_of(catalog: Catalog) -> tuple[object, ...] | None:
    """Returns what all names show, or None if that changed meanwhile."""
    try:
        first, second = _shown(catalog.for_statement()), _shown(catalog.for_statement())
    except (RelationNotFoundError, RelationExistsError):
        return None
    return first if first == second else None


def _shown(catalog: Catalog) -> tuple[object, ...]:
    turning, coming = catalog.find(TURNING), catalog.find(COMING)
    is_table = turning is not None and turning.kind is RelationKind.TABLE
    return (
        max(int(path) for path in paths(catalog.table(ROWS))),
        int(catalog.view(VIEW).text),
        int(catalog.function(FUNCTION).body),
        is_table,
        int(next(iter(paths(catalog.table(TURNING))))) if is_table else int(catalog.view(TURNING).text),
        None if coming is None else int(next(iter(paths(catalog.table(COMING))))),
    )


def is_whole(cut: tuple[object, ...]) -> bool:
    """Returns whether a cut is the state after one transaction."""
    number = cut[0]
    is_odd = isinstance(number, int) and number % 2 == 1
    return cut == (number, number, number, is_odd, number, number if is_odd else None)


class Readers:
    """Read cuts on threads of their own, until the end of a `with` block.

    Attributes:
        cuts: how many cuts they have read.
        partial: the cuts that show a part of a transaction.
        failures: errors of readers, except for a name that changed meanwhile.
    """

    def __init__(self, place: str, number: int = 2) -> None:
        self._place = place
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._read, daemon=True) for _ in range(number)]
        self.cuts: Counter[object] = Counter()
        self.partial: list[tuple[object, ...]] = []
        self.failures: list[SiltError] = []

    def __enter__(self) -> Readers:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for each in self._threads:
            each.join()

    def _read(self) -> None:
        catalog = opened(self._place)
        while not self._ends.wait(0.01):
            try:
                cut = cut_of(catalog)
            except SiltError as error:
                self.failures.append(error)
                continue
            if cut is not None:
                self.cuts[cut[0]] += 1
                if not is_whole(cut):
                    self.partial.append(cut)


@dataclass(frozen=True)
class Killed:
    """The observations while processes were killed.

    Attributes:
        transactions: the number of published transactions.
        cuts: the number of cuts that readers have read meanwhile.
        steps: how often a process was killed at each kind of step.
    """

    transactions: int
    cuts: int
    steps: Counter[str]

    def __str__(self) -> str:
        listed = "\n".join(f"{times:5}  {step}" for step, times in sorted(self.steps.items()))
        figures = f"{self.steps.total()} kills at {len(self.steps)} kinds of steps, {self.transactions} transactions"
        return f"{listed}\n{figures}, {self.cuts} cuts of 2 readers: 0 partial, 0 lost, 0 doubled"


def kill_many(place: str, kills: int, seed: int) -> Killed:
    """Kills processes at random writes of their transactions.

    Raises:
        AssertionError: if the names show different transactions, to a reader or after a kill, or a row is lost or
            doubled.
    """
    chance, steps = random.Random(seed), Counter[str]()
    create(place)
    most = int(_process(place, transactions=2))
    with Readers(place) as readers:
        for _ in range(kills):
            steps[_process(place, chance.randint(1, most))] += 1
            shown = found(opened(place))
            assert len(set(shown)) == 1, f"the names show the transactions {shown}"
    assert not readers.failures, f"readers have failed: {readers.failures[:3]}"
    assert not readers.partial, f"readers have seen a part of a transaction: {readers.partial[:3]}"
    return Killed(found(opened(place))[0], readers.cuts.total(), steps)


_PROCESSES: Final = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["dbt.adapters.silt.engine.catalog.catalog", "tests.cloud.servers", "tests.unit.engine.kernel.log_builder"]
)


def _process(place: str, last: int = 0, transactions: int | None = None) -> str:
    """Runs a process to its end; returns the kind of the write before which it was killed, or else its writes."""
    answer, question = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_watched, args=(place, last, transactions, question))
    process.start()
    question.close()
    process.join()
    assert process.exitcode == (-signal.SIGKILL if last else 0), f"it ended with {process.exitcode}"
    return str(answer.recv())


def _watched(place: str, last: int, transactions: int | None, question: Connection) -> None:
    steps = Steps(last, question.send)
    steps.watch()
    run(place, transactions)
    question.send(steps.reached)


@contextlib.contextmanager
def _place(given: str | None, cloud: str | None) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if cloud is None:
            yield given or str(folder / "warehouse")
            return
        server = stack.enter_context(running_s3(folder))
        os.environ[_STORAGE] = json.dumps({name: value for name, value in asdict(server.settings).items() if value})
        yield f"{server.base}/publications"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", nargs="?")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cloud", choices=("s3",))
    given = parser.parse_args()
    with _place(given.place, given.cloud) as place:
        print(kill_many(place, given.kills, given.seed))


if __name__ == "__main__":
    main()
