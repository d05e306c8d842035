"""Real processes that publish transactions over tables and names, and are killed.

Transaction k appends a row to one table, replaces a view and a function, and turns a view into a table and a table into
nothing, or back. After each kill the database must show exactly the state after some transaction.

`python -m tests.publication.processes FOLDER_OR_URL` is such a process; `--kills 200` runs and kills many.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from dbt.adapters.silt.engine.catalog.branches import Branch
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.documents import Function, View
from dbt.adapters.silt.engine.catalog.names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentModificationError,
    RelationExistsError,
    RelationNotFoundError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.opening import open_store
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.unit.engine.kernel.log_builder import METADATA, PROTOCOL, add, paths

ROWS, VIEW, TURNING, COMING, FUNCTION = (
    RelationName("silt", "main", each) for each in ("rows", "v", "turning", "coming", "f")
)
_CREATE = Changes(Operation("CREATE TABLE"), protocol=PROTOCOL, metadata=METADATA)
_LONGEST_LIFE_S = 0.5


def opened(place: str) -> Catalog:
    return Catalog({"silt": open_store(place)})


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


def run(place: str) -> None:
    """Publishes transactions until the process is killed."""
    catalog = opened(place)
    while True:
        number = found(catalog)[0] + 1
        branch = catalog.new_branch("silt")
        try:
            _change(catalog, branch, number)
            branch.publish()
        except (ConcurrentModificationError, RelationExistsError, RelationNotFoundError):
            branch.discard()  # the transaction of a killed process was completed first


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
    first = Changes(_CREATE.operation, (add(str(number)),), protocol=PROTOCOL, metadata=METADATA)
    commit(log, None, first, ReadSet(), CommitSettings())
    catalog.publish_table(name, log, replace_view=True)


def _append(log: DeltaLog, number: int) -> None:
    log.store.put(str(number), b"data")
    reads = ReadSet(whole_table=True)
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (add(str(number)),)), reads, CommitSettings())


def kill_many(place: str, kills: int, seed: int, environment: Mapping[str, str] | None = None) -> int:
    """Kills processes at random moments; returns the number of published transactions.

    Raises:
        AssertionError: if the names show different transactions, or a row is lost or doubled.
    """
    chance = random.Random(seed)
    create(place)
    for _ in range(kills):
        before = found(opened(place))[0]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.publication.processes", place], env=environment, stdin=subprocess.DEVNULL
        )
        while process.poll() is None and found_rows(place) == before:
            time.sleep(0.005)
        time.sleep(chance.random() * _LONGEST_LIFE_S)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        shown = found(opened(place))
        assert len(set(shown)) == 1, f"the names show the transactions {shown}"
    return found(opened(place))[0]


def found_rows(place: str) -> int:
    """Returns the number of transactions, as a reader beside the process sees it."""
    return len(paths(opened(place).table(ROWS))) - 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", nargs="?")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.kills is None:
        run(given.place)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = given.place or str(Path(folder) / "warehouse")
        print(f"{given.kills} kills, {kill_many(place, given.kills, given.seed)} transactions, 0 faults")


if __name__ == "__main__":
    main()
