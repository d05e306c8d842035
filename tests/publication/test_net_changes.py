"""A branch changes and moves rows in every order: a reader of changes sees exactly what was changed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication import net_changes
from dbt.adapters.silt.engine.kernel.publication.branch_changes import changes_on
from dbt.adapters.silt.engine.kernel.publication.publish import publish
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.transaction.changes import RESTORE_OPERATION, Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.memory_store import MemoryStore
from tests.publication.tables import Process, create
from tests.publication.test_planted_bugs import fails
from tests.unit.engine.kernel.log_builder import add

LONGEST = 3
SEPARATOR = "+"
"""A file is named after its rows; the end of the name distinguishes files with equal rows."""


def rows_of(path: str) -> list[str]:
    return path.split("@")[0].split(SEPARATOR)


def rows(log: DeltaLog) -> Counter[str]:
    return Counter(row for each in log.snapshot().add_files() for row in rows_of(each.path))


def change(log: DeltaLog, operation: str, adds: list[str], removes: list[AddFile], moves: bool = False) -> None:
    base, now = log.snapshot(), str(log.snapshot().version)
    new = [replace(add(f"{path}@{now}"), data_change=not moves) for path in adds]
    for each in new:
        log.store.put(each.path, b"data")
    gone = tuple(each.remove(1, data_change=not moves) for each in removes)
    commit(log, base, Changes(Operation(operation), tuple(new), gone), ReadSet(), CommitSettings())


def insert(log: DeltaLog, number: int) -> None:
    change(log, "WRITE", [f"new{number}"], [])


def delete(log: DeltaLog, number: int) -> None:
    """Deletes a row of the first file that has several rows, or the first file."""
    files = sorted(log.snapshot().add_files(), key=lambda each: (-len(rows_of(each.path)), each.path))
    if files:
        left = rows_of(files[0].path)[1:]
        change(log, "DELETE", [SEPARATOR.join(left)] if left else [], files[:1])


def optimize(log: DeltaLog, number: int) -> None:
    """Merges the two files with the fewest rows."""
    files = sorted(log.snapshot().add_files(), key=lambda each: (len(rows_of(each.path)), each.path))[:2]
    if len(files) == 2:
        merged = SEPARATOR.join(row for each in files for row in rows_of(each.path))
        change(log, "OPTIMIZE", [merged], files, moves=True)


def restore(log: DeltaLog, number: int) -> None:
    """Restores the version before the newest."""
    newest, then = log.snapshot(), log.snapshot_at(log.snapshot().version - 1)
    now, earlier = ({each.path: each for each in each.add_files()} for each in (newest, then))
    back = tuple(replace(earlier[path], data_change=True) for path in earlier.keys() - now.keys())
    gone = tuple(now[path].remove(1) for path in now.keys() - earlier.keys())
    commit(log, newest, Changes(Operation(RESTORE_OPERATION), back, gone), ReadSet(), CommitSettings())


STEPS = (insert, delete, optimize, restore)


def orders() -> Iterator[tuple[Callable[[DeltaLog, int], None], ...]]:
    for length in range(1, LONGEST + 1):
        yield from itertools.product(STEPS, repeat=length)
    for first, last in itertools.product(STEPS, STEPS):  # rows that are moved more than once
        yield first, optimize, optimize, last


def story(steps: tuple[Callable[[DeltaLog, int], None], ...]) -> None:
    store = MemoryStore()
    create(store)
    process = Process(store, 1)
    for each in ("one", "two", "three"):
        change(process.logs["a"], "WRITE", [each], [])
    before, base = rows(process.logs["a"]), process.logs["a"].snapshot().version
    branch = process.branch()["a"]
    for number, step in enumerate(steps):
        step(branch, number)
    expected, found = rows(branch), changes_on(branch)
    publish(process.register, [branch])
    log = Process(store, 2).logs["a"]
    assert rows(log) == expected
    net: Counter[str] = Counter()
    for each in log.commits(base + 1):  # type: ignore[assignment]
        for action in each.actions:  # type: ignore[attr-defined]
            sign = 1 if isinstance(action, AddFile) else -1
            if getattr(action, "data_change", False):
                net.update(dict.fromkeys(rows_of(action.path), sign))
    difference = Counter(expected)
    difference.subtract(before)
    assert {row: each for row, each in net.items() if each} == {row: each for row, each in difference.items() if each}
    if set(steps) == {optimize} and found is not None:
        assert found.changes.changes_no_data()


def all_stories() -> None:
    for steps in orders():
        story(steps)


def test_a_reader_of_changes_sees_what_a_branch_has_changed_and_not_what_it_has_moved() -> None:
    all_stories()


def keeps_the_flags(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(net_changes._Files, "linked_to", lambda *_: set())


def links_only_neighbours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(net_changes._Files, "linked_to", lambda files, commits: set(files._neighbours(set(commits))))


def links_only_later_commits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        net_changes._Files, "_neighbours", lambda files, found: (new for old, new in files.links if old in found)
    )


@pytest.mark.parametrize("plant", [keeps_the_flags, links_only_neighbours, links_only_later_commits])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert fails(all_stories)
