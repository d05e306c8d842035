"""A week of 30 branches over 100 tables, with nightly runs, OPTIMIZE and VACUUM: no branch loses a row."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import needed, untracked
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.memory_store import MemoryStore
from tests.unit.engine.catalog.branches.test_branch_names import append, create
from tests.unit.engine.kernel.log_builder import add, paths

DAY_MS = 24 * 60 * 60 * 1000
EXPIRE_DAYS = 2
"""How long a third of the branches is kept without use; nothing uses them again."""

Rows = Mapping[str, frozenset[str]]
"""The files whose rows a table has, by the table's name: OPTIMIZE keeps the names of the files that it merges."""


@dataclass
class Week:
    """The warehouse and, as a model, the rows of each table: of the base, and of each branch."""

    tables: int
    store: Store
    clock: FixedClock
    chance: random.Random
    base: dict[str, frozenset[str]] = field(default_factory=dict)
    branches: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    merged: int = 0

    @property
    def catalog(self) -> Catalog:
        return Catalog({"silt": self.store}, self.clock)

    def begin(self) -> None:
        self.catalog.create_schema("silt", "main")
        for number in range(self.tables):
            create(self.catalog, _name(f"t{number}"), "first")
            self.base[f"t{number}"] = frozenset({"first"})

    def day(self, day: int, new: int) -> None:
        for number in range(new):
            self._begin_branch(f"b{day}_{number}", expires=number % 3 == 0)
        for name in self.chance.sample(sorted(self.branches), min(max(len(self.branches) - 2, 0), 2)):
            self._end_branch(name)
        self._run(day)
        self.clock.at_ms += DAY_MS
        for number in range(self.tables):
            self._vacuum(self.catalog.table(_name(f"t{number}")))
        branch_attempts.delete_old_branches(self.store, self.clock)
        self.check()

    def _begin_branch(self, name: str, expires: bool) -> None:
        self.catalog.named_branches("silt").create(name, "ann", EXPIRE_DAYS if expires else 14)
        own = dict(self.base)
        if expires:
            self.left.add(name)
        else:
            self.branches[name] = own
        inside = self._inside(name)
        for table in self.chance.sample(sorted(own), 4):
            append(inside.table(_name(table)), name)
            own[table] = own[table] | {name}

    def _end_branch(self, name: str) -> None:
        known = self.catalog.named_branches("silt")
        own = self.branches.pop(name)
        if self.chance.random() < 0.5:
            known.delete(known.find(name))
            return
        known.merge(name)
        self.merged += 1
        self.base = {table: self.base[table] | (own[table] & {name}) for table in self.base}

    def _run(self, day: int) -> None:
        """Appends to some tables, replaces the rows of others, and optimizes others."""
        names = self.chance.sample(sorted(self.base), max(3, self.tables // 2))
        for number, table in enumerate(names):
            log, path = self.catalog.table(_name(table)), f"day-{day}"
            if number % 3 == 0:
                append(log, path)
                self.base[table] = self.base[table] | {path}
            else:
                is_replaced = number % 3 == 1
                self._rewrite(log, path, is_replaced)
                self.base[table] = frozenset({path})

    def _rewrite(self, log: DeltaLog, path: str, changes_rows: bool) -> None:
        snapshot = log.snapshot()
        log.store.put(path, b"data")
        gone = tuple(each.remove(self.clock.now_ms(), changes_rows) for each in snapshot.add_files())
        operation = Operation("WRITE" if changes_rows else "OPTIMIZE")
        changes = Changes(operation, (replace(add(path), data_change=changes_rows),), gone)
        commit(log, snapshot, changes, ReadSet(whole_table=True), CommitSettings())

    def _vacuum(self, log: DeltaLog) -> None:
        """Deletes the files that no version of the last hour and no branch needs."""
        cutoff, snapshot = self.clock.now_ms() - 3_600_000, log.snapshot()
        held = [path for files in self.catalog.held_files(log).values() for path in files]
        garbage = untracked(log.store, snapshot, needed(log, snapshot, cutoff, held), cutoff)
        log.store.delete_all([each.path for each in garbage.files])

    def check(self) -> None:
        """Checks that the base and each branch have their rows, and that all of their files exist."""
        self._check("the base", self.catalog, self.base)
        for name, rows in self.branches.items():
            self._check(name, self._inside(name), rows)

    def _check(self, name: str, catalog: Catalog, rows: Rows) -> None:
        for table in self.chance.sample(sorted(rows), min(len(rows), 12)):
            log = catalog.table(_name(table))
            found = paths(log)
            assert found == rows[table], f"{name}: {table}"
            assert all(log.store.status(each) is not None for each in found), f"{name}: {table} has lost a file"

    def _inside(self, name: str) -> Catalog:
        catalog = self.catalog
        return catalog.on_branch("silt", catalog.named_branches("silt").named(name))

    def bytes_of_branches(self) -> int:
        return sum(each.size for each in self.store.files_below("_branches"))


def _name(table: str) -> RelationName:
    return RelationName("silt", "main", table)


@pytest.mark.parametrize(
    ("tables", "new", "days"),
    [(12, 3, 4), pytest.param(100, 5, 7, marks=pytest.mark.long)],
    ids=["a few", "30 branches and 100 tables"],
)
@pytest.mark.parametrize("make", [MemoryStore, MemoryObjectStore], ids=["folders", "objects"])
def test_no_branch_loses_a_row_in_a_week(make: type[MemoryStore], tables: int, new: int, days: int) -> None:
    clock = FixedClock()
    week = Week(tables, make(clock), clock, random.Random(1))
    week.begin()
    most = 0
    for day in range(days):
        week.day(day, new if day < 6 else 0)
        most = max(most, week.bytes_of_branches())
    assert week.merged and most < 30 * 40_000, f"the branches take {most} bytes"
    week.clock.at_ms += EXPIRE_DAYS * DAY_MS
    week.day(days, 0)
    known = {each.name for each in week.catalog.named_branches("silt").all()}
    assert known == set(week.branches) and not known & week.left
    for name in list(week.branches):
        week._end_branch(name)
    assert not week.catalog.named_branches("silt").all()
    week.check()


def test_a_vacuum_that_knows_no_branches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catalog, "held_files", lambda *_: {})
    with pytest.raises(AssertionError, match="has lost a file"):
        test_no_branch_loses_a_row_in_a_week(MemoryStore, 12, 3, 4)
