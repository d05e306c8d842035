"""Random queries and random histories of their inputs: a table by changed keys always equals a full build.

SILT_KEYS_HISTORIES is the number of pairs of a query and a history; SILT_KEYS_SEED the first seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.unit.engine.house import House

HISTORIES = int(os.environ.get("SILT_KEYS_HISTORIES", "20"))
SEED = int(os.environ.get("SILT_KEYS_SEED", "1"))
STEPS = 3
KEYS = ("null", "1", "2", "3", "4", "5")
TABLES = {"a": "k, g, v", "b": "k, g, w", "d": "g, label"}


def value(chance: random.Random, column: str) -> str:
    if column in ("k", "g"):
        return chance.choice(KEYS)
    return chance.choice(("null", *map(str, range(6))))


def rows(chance: random.Random, table: str, count: int) -> str:
    names = TABLES[table].split(", ")
    return ", ".join(f"({', '.join(value(chance, name) for name in names)})" for _ in range(count))


def condition(chance: random.Random, names: list[str]) -> str:
    name = chance.choice(names)
    return chance.choice((f"{name} > 2", f"{name} is not null", f"{name} <=> 3 or {name} < 2", "true"))


def relation(chance: random.Random, table: str) -> str:
    """A table, or a subquery that keeps its columns."""
    names = TABLES[table].split(", ")
    where = condition(chance, names)
    return chance.choice((table, f"(select * from {table} where {where})", f"(select distinct * from {table})"))


def joined(chance: random.Random) -> str:
    on = chance.choice(("x.k = y.k", "x.k <=> y.k", "x.k = y.k and x.g < y.g", "x.g = y.g", "x.k = y.g"))
    kind = chance.choice(("join", "left join", "right join", "full join", "left semi join", "left anti join"))
    second = relation(chance, "b")
    key = {"right join": "y.k", "full join": "coalesce(x.k, y.k)"}.get(kind, "x.k")
    more = "" if "semi" in kind or "anti" in kind else ", y.w, y.g as h"
    return f"select {key} as k, x.v, x.g{more} from {relation(chance, 'a')} x {kind} {second} y on {on}"


def with_dimension(chance: random.Random) -> str:
    kind = chance.choice(("join", "left join", "left semi join"))
    label = ", d.label" if "semi" not in kind else ""
    return f"select x.k, x.v, x.g{label} from {relation(chance, 'a')} x {kind} d on x.g = d.g"


def base(chance: random.Random) -> str:
    plain = f"select k, v, g from {relation(chance, 'a')}"
    both = chance.choice(("union", "union all"))
    return chance.choice(
        (
            plain,
            f"select k, v, g from a {both} select k, w as v, g from b where {condition(chance, ['k', 'g', 'w'])}",
            joined(chance),
            with_dimension(chance),
            f"with c as ({plain}) select c.k, c.v, e.g from c join c e on c.k = e.k",
            "select k, v, g from a where g in (select g from d)",
            "select k, v, e.x as g from a lateral view explode(array(g, v)) e as x",
        )
    )


def query(chance: random.Random) -> str:
    inner = base(chance)
    return chance.choice(
        (
            inner,
            f"select k, count(*) as n, sum(v) as s, max(g) as m from ({inner}) group by k",
            f"select k, g, min(v) as low from ({inner}) group by k, g having count(*) > 1",
            f"select k, v, g, count(*) over (partition by k) as n, sum(v) over (partition by g, k) as s from ({inner})",
            f"select k, v, g from ({inner}) qualify rank() over (partition by k order by v, g) = 1",
            f"select distinct k, g from ({inner})",
            f"select k, v, sum(v) over (order by v) as s from ({inner})",
        )
    )


def change(chance: random.Random) -> str:
    table = chance.choice(("a", "a", "b", "b", "d"))
    names = TABLES[table].split(", ")
    name = chance.choice(names)
    where = condition(chance, names)
    return chance.choice(
        (
            f"insert into {table} values {rows(chance, table, 2)}",
            f"insert into {table} values {rows(chance, table, 1)}",
            f"update {table} set {name} = {value(chance, name)} where {where}",
            f"delete from {table} where {where}",
            f"optimize {table}",
            f"create or replace table {table} as select * from {table} where {where}",
            f"insert overwrite {table} select * from {table}",
            "restore",
        )
    )


def restored(house: House, chance: random.Random) -> str:
    table = chance.choice(("a", "b"))
    return f"restore table {table} to version as of {chance.randint(1, house.log(table).snapshot().version)}"


@pytest.fixture
def inputs(house: House) -> Iterator[House]:
    for table, columns in TABLES.items():
        typed = ", ".join(f"{name} int" for name in columns.split(", "))
        house.sql(f"create table {table} ({typed})")
    yield house


@pytest.mark.parametrize(
    "seed", [SEED, *(pytest.param(SEED + more, marks=pytest.mark.long) for more in range(1, HISTORIES))]
)
def test_each_state_of_a_history_equals_a_full_build(inputs: House, seed: int) -> None:
    chance, house = random.Random(seed), inputs
    for table in TABLES:
        house.sql(f"insert into {table} values {rows(chance, table, 6)}")
    text = query(chance)
    house.sql(f"create table t changed keys (k) or replace all as {text}")
    for step in range(STEPS):
        for _ in range(chance.randint(1, 3)):
            done = change(chance)
            house.sql(restored(house, chance) if done == "restore" else done)
        house.sql(f"insert into t by name replace changed keys (k) or replace all {text}")
        assert house.rows("select * from t") == house.rows(text), f"step {step} of seed {seed}: {text}"
