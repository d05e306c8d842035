"""Random histories of a warehouse with Spark: a reused table holds the rows that building it again would write.

`silt.reuse` skips CREATE OR REPLACE TABLE ... AS. After each build, the rows of every table are compared with the rows
of its query at that moment. The variable REUSE_SEEDS names the seeds: REUSE_SEEDS=17 repeats a failure, and
REUSE_SEEDS=0-199 tries many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.unit.engine.house import House, opened

_LONG = "0-19"
_STEPS = 8


def _seeds(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


SEEDS = list(_seeds(os.environ.get("REUSE_SEEDS", _LONG)))


@dataclass
class History:
    """A warehouse with two inputs, a view, a function, and three tables that are built from them."""

    house: House
    drawn: random.Random
    bound: int = 50
    added: int = 1
    variants: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("a", "b", "c"), 0))
    reused: int = 0
    built: int = 0

    def begin(self) -> None:
        self.house.sql("set silt.reuse = unchanged")
        for name in ("r0", "r1"):
            self.house.sql(f"create table {name} as select int(id) id, int(id % 3) v from range(6)")
        self.define_view()
        self.define_function()

    def define_view(self) -> None:
        self.house.sql(f"create or replace view seen as select * from r0 where id < {self.bound}")

    def define_function(self) -> None:
        self.house.sql(f"create or replace function plus(x int) returns int return x + {self.added}")

    def query(self, name: str) -> str:
        kept = f"id <> {self.variants[name]}"
        return {
            "a": f"select id, v, main.plus(v) w from seen where {kept}",
            "b": f"select a.id, a.w, r1.v from a left join r1 on a.id = r1.id and r1.{kept}",
            "c": f"select v, count(*) n, sum(w) w from b where {kept} or id is null group by v",
        }[name]

    def build(self, name: str) -> bool:
        """Builds a table, and returns whether it was reused."""
        by = "write differences by (v)" if name == "c" else ""
        row = self.house.sql(f"create or replace table {name} {by} as {self.query(name)}").first()
        assert row is not None
        assert self.house.rows(f"select * from {name}") == self.house.rows(self.query(name)), f"{name} is wrong"
        return bool(row["skipped"])

    def build_all(self) -> list[bool]:
        """Builds all tables, sometimes in one transaction."""
        is_transaction = self.drawn.random() < 0.3
        if is_transaction:
            self.house.sql("begin")
        found = [self.build(name) for name in self.variants]
        if is_transaction:
            self.house.sql("commit")
        self.reused += sum(found)
        self.built += len(found) - sum(found)
        return found

    def step(self) -> str:
        """Changes something, and returns what."""
        change = self.drawn.choice(
            [self.rows, self.rows, self.layout, self.definition, self.code, self.foreign, self.whole, self.together]
        )
        return change()

    def rows(self) -> str:
        table, number = self.drawn.choice(("r0", "r1")), self.drawn.randint(0, 9)
        return self.run(
            f"insert into {table} values ({number}, {number % 3})",
            f"delete from {table} where id = {number}",
            f"update {table} set v = {number} where id < 2",
            f"update {table} set v = v",
            f"merge skip equal rows into {table} t using (select {number} id, 1 v) s on t.id = s.id "
            "when matched then update set * when not matched then insert *",
        )

    def layout(self) -> str:
        table = self.drawn.choice(("r0", "r1", "a", "b", "c"))
        return self.run(
            f"optimize {table}",
            f"alter table {table} set tblproperties ('seen' = '{self.drawn.randint(0, 9)}')",
            f"comment on table {table} is 'a comment'",
            f"delete from {table} where false",
        )

    def definition(self) -> str:
        self.bound, self.added = self.drawn.choice((3, 50)), self.drawn.choice((1, 2))
        self.define_view()
        self.define_function()
        return f"view below {self.bound}, function + {self.added}"

    def code(self) -> str:
        name = self.drawn.choice(list(self.variants))
        self.variants[name] = self.drawn.randint(0, 2)
        return f"{name} without {self.variants[name]}"

    def foreign(self) -> str:
        """Another writer changes a table that is built."""
        return self.run("delete from a where id = 1", "insert into b values (99, 1, 1)", "update c set n = 0")

    def whole(self) -> str:
        table = self.drawn.choice(("r0", "r1"))
        version = self.drawn.randint(0, self.house.log(table).snapshot().version)
        recreated = f"create table {table} as select int(id) id, int(id % 2) v from range(5)"
        if self.drawn.random() < 0.3:
            self.house.sql(f"drop table {table}")
            return self.run(recreated)
        return self.run(
            f"restore table {table} to version as of {version}",
            f"create or replace table {table} as select * from {table}",
            recreated.replace("create", "create or replace", 1),
            f"truncate table {table}",
        )

    def together(self) -> str:
        """Changes and builds several tables in one transaction."""
        done = []
        self.house.sql("begin")
        for _ in range(self.drawn.randint(2, 5)):
            if self.drawn.random() < 0.5:
                name = self.drawn.choice(list(self.variants))
                done.append(f"{'reused' if self.build(name) else 'built'} {name}")
            else:
                done.append(self.drawn.choice([self.rows, self.rows, self.layout, self.definition, self.foreign])())
        end = self.drawn.choice(("commit", "commit", "commit", "rollback"))
        self.house.sql(end)
        return f"in one transaction: {done}, {end}"

    def run(self, *statements: str) -> str:
        statement = self.drawn.choice(statements)
        self.house.sql(statement)
        return statement


def told(history: History, steps: int, after: Callable[[str], None] = lambda _: None) -> None:
    history.begin()
    history.build_all()
    assert history.build_all() == [True, True, True]
    for _ in range(steps):
        after(history.step())
        history.build_all()
        if history.drawn.random() < 0.3:
            assert history.build_all() == [True, True, True], "nothing changed, and a table was built"


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long if seed else ()) for seed in SEEDS])
def test_a_reused_table_holds_the_rows_of_its_query(house: House, seed: int) -> None:
    history = History(opened(house.warehouse.spark, house.place), random.Random(seed))
    steps: list[str] = []
    try:
        told(history, _STEPS, steps.append)
    except AssertionError as error:
        raise AssertionError(f"after {steps}: {error}") from error
    assert history.reused and history.built
