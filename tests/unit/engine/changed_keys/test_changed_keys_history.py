"""Random queries and random histories of their inputs: a table by changed keys always equals a full build.

SILT_KEYS_HISTORIES is the number of pairs of a query and a history; SILT_KEYS_SEED the first seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.unit.engine.house import House

HISTORIES = int(os.environ.get("SILT_KEYS_HISTORIES", "20"))
SEED = int(os.environ.get("SILT_KEYS_SEED", "1"))
STEPS = 3
TABLES = {"a": "k, g, v", "b": "k, g, w", "d": "g, label", "e": "k, w"}
KEYS = ("k", "g")
"""The columns that have the type of the key; in `e`, a type that Spark widens to it, if there is one."""


@dataclass(frozen=True)
class Values:
    """The type of the keys, and its values as literals, in ascending order.

    Attributes:
        narrow: a type that Spark widens to this one, and its values.
    """

    type: str
    literals: tuple[str, ...]
    narrow: Values | None = None

    def of(self, table: str) -> Values:
        """Returns the type of the keys of a table."""
        return self.narrow if table == "e" and self.narrow is not None else self

    def one_of(self, chance: random.Random, column: str) -> str:
        """Returns a literal of a column, which may be null."""
        return chance.choice(("null", *(self.literals if column in KEYS else map(str, range(6)))))

    def condition(self, chance: random.Random, names: Sequence[str]) -> str:
        """Returns a condition of a column, which may be null for a row."""
        name = chance.choice(names)
        low, middle = self.literals[1:3] if name in KEYS else ("2", "3")
        return chance.choice(
            (f"{name} > {low}", f"{name} is not null", f"{name} <=> {middle} or {name} < {low}", "true")
        )


TYPES = (
    Values("int", ("1", "2", "3", "4", "5")),
    Values(
        "bigint",
        ("-9223372036854775808", "0", "1", "9007199254740993", "9223372036854775807"),
        Values("int", ("-2147483648", "0", "1", "2", "2147483647")),
    ),
    Values("string", ("''", "' '", "'A'", "'a\\'b'", "'ä😀'")),
    Values(
        "date", ("date'0001-01-01'", "date'1969-12-31'", "date'2024-02-29'", "date'2024-03-01'", "date'9999-12-31'")
    ),
    Values(
        "timestamp",
        (
            "timestamp'0002-01-01 00:00:00Z'",
            "timestamp'1969-12-31 23:59:59.999999Z'",
            "timestamp'2024-03-31 00:30:00Z'",
            "timestamp'2024-03-31 00:30:00.000001Z'",
            "timestamp'9999-12-30 23:59:59.999999Z'",
        ),
        Values("date", ("date'0001-01-03'", "date'1970-01-01'", "date'2024-02-29'", "date'2024-03-31'", "null")),
    ),
    Values(
        "decimal(38, 2)",
        ("-999999999999999999999999999999999999.99", "0.00", "0.01", "1.50", "99999999999.99"),
        Values("decimal(9, 2)", ("-1.00", "0.00", "0.01", "1.50", "9999999.99")),
    ),
    Values("double", ("double('-inf')", "-0.0d", "0.1d", "1e300d", "double('nan')")),
    Values("char(3)", ("' '", "'A'", "'a'", "'a b'", "'ä😀'")),
    Values("binary", ("x''", "x'00'", "x'61'", "x'6100'", "x'ff'")),
)
PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.enableChangeDataFeed' = 'true'",
    "'delta.columnMapping.mode' = 'name'",
    "'delta.enableRowTracking' = 'true'",
    "'delta.enableTypeWidening' = 'true'",
)


def rows(chance: random.Random, values: Values, table: str, count: int) -> str:
    names, values = TABLES[table].split(", "), values.of(table)
    listed = ", ".join(f"({', '.join(values.one_of(chance, name) for name in names)})" for _ in range(count))
    return f"insert into {table} ({TABLES[table]}) values {listed}"


def relation(chance: random.Random, values: Values, table: str) -> str:
    """A table, or a subquery that keeps its columns."""
    names = TABLES[table].split(", ")
    where = values.condition(chance, names)
    return chance.choice(
        (table, f"(select * from {table} where {where})", f"(select distinct {TABLES[table]} from {table})")
    )


def joined(chance: random.Random, values: Values) -> str:
    on = chance.choice(("x.k = y.k", "x.k <=> y.k", "x.k = y.k and x.g < y.g", "x.g = y.g", "x.k = y.g"))
    kind = chance.choice(("join", "left join", "right join", "full join", "left semi join", "left anti join"))
    second = relation(chance, values, "b")
    key = {"right join": "y.k", "full join": "coalesce(x.k, y.k)"}.get(kind, "x.k")
    more = "" if "semi" in kind or "anti" in kind else ", y.w, y.g as h"
    return f"select {key} as k, x.v, x.g{more} from {relation(chance, values, 'a')} x {kind} {second} y on {on}"


def with_dimension(chance: random.Random, values: Values) -> str:
    kind = chance.choice(("join", "left join", "left semi join"))
    label = ", d.label" if "semi" not in kind else ""
    return f"select x.k, x.v, x.g{label} from {relation(chance, values, 'a')} x {kind} d on x.g = d.g"


def shared(chance: random.Random, plain: str) -> str:
    """A table expression, or a view, that is read by several keys, or by the key and as a whole."""
    chosen = chance.choice(
        (
            "select x.k, y.v, x.g from c x join c y on x.k = y.g",
            "select x.k, x.v, y.k as g from c x left join c y on x.k <=> y.g",
            "select x.g as k, x.v, y.g from c x left join c y on x.g = y.k",
            "select k, v, g from c union all select g as k, v, k as g from c",
            "select k, v, g from c union select g as k, max(v) as v, g from c group by g",
            "select k, v, g from c where exists (select 1 from c y where y.g = c.k)",
            "select x.k, y.v, x.g from c x left join c y on x.v = y.v",
            "select k, v, (select max(g) from c) as g from c",
        )
    )
    return chance.choice((f"with c as ({plain}) {chosen}", chosen))


def base(chance: random.Random, values: Values) -> str:
    plain = f"select k, v, g from {relation(chance, values, 'a')}"
    both, where = chance.choice(("union", "union all")), values.condition(chance, ("k", "g", "w"))
    return chance.choice(
        (
            plain,
            f"select k, v, g from a {both} select k, w as v, g from b where {where}",
            f"select k, v, g from a {both} select k, w as v, null as g from e",
            f"select k, w as v, k as g from e {both} select k, v, g from a",
            joined(chance, values),
            with_dimension(chance, values),
            f"with c as ({plain}) select c.k, c.v, e.g from c join c e on c.k = e.k",
            shared(chance, plain),
            shared(chance, plain),
            "select k, v, g from a where g in (select g from d)",
            "select k, v, e.x as g from a lateral view explode(array(g, k)) e as x",
        )
    )


def query(chance: random.Random, values: Values) -> str:
    inner = base(chance, values)
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


def change(chance: random.Random, values: Values) -> str:
    table = chance.choice(("a", "a", "b", "b", "d", "e"))
    names, values = TABLES[table].split(", "), values.of(table)
    name = chance.choice(names)
    where = values.condition(chance, names)
    return chance.choice(
        (
            rows(chance, values, table, 2),
            rows(chance, values, table, 1),
            f"update {table} set {name} = {values.one_of(chance, name)} where {where}",
            f"delete from {table} where {where}",
            f"optimize {table}",
            f"create or replace table {table} as select * from {table} where {where}",
            f"insert overwrite {table} select * from {table}",
            f"merge into {table} t using (select distinct {names[0]} from {table} where {where}) s "
            f"on t.{names[0]} = s.{names[0]} when matched then delete",
            f"alter table {table} add column more_{chance.randrange(10**6)} int",
            "restore",
        )
    )


def restored(house: House, chance: random.Random) -> str:
    table = chance.choice(("a", "b"))
    log = house.log(table)
    chosen = log.snapshot_at(chance.randint(1, log.snapshot().version))
    if chosen.properties.enable_change_data_feed and chosen.properties.column_mapping_mode != "none":
        # The mapping of columns cannot change together with rows if the table then records its changes.
        return f"restore table {table} to version as of {log.snapshot().version}"
    return f"restore table {table} to version as of {chosen.version}"


def created(chance: random.Random, values: Values, table: str) -> str:
    names, values = TABLES[table].split(", "), values.of(table)
    columns = ", ".join(f"{name} {values.type if name in KEYS else 'int'}" for name in names)
    # An empty string cannot be stored in a partition column.
    partitions = "" if values.type in ("string", "binary") else chance.choice(("", "", f" partitioned by ({names[0]})"))
    properties = chance.sample(PROPERTIES, chance.randint(0, 2))
    given = f" tblproperties ({', '.join(properties)})" if properties else ""
    return f"create table {table} ({columns}){partitions}{given}"


@pytest.mark.parametrize(
    "seed", [SEED, *(pytest.param(SEED + more, marks=pytest.mark.long) for more in range(1, HISTORIES))]
)
def test_each_state_of_a_history_equals_a_full_build(house: House, seed: int) -> None:
    chance = random.Random(seed)
    values = chance.choice(TYPES)
    for table in TABLES:
        house.sql(created(chance, values, table))
        house.sql(rows(chance, values, table, 6))
    house.sql(f"create view c as select k, v, g from {relation(chance, values, 'a')}")
    text = query(chance, values)
    house.sql(f"create table t changed keys (k) or replace all as {text}")
    for step in range(STEPS):
        for _ in range(chance.randint(1, 3)):
            done = change(chance, values)
            house.sql(restored(house, chance) if done == "restore" else done)
        house.sql(f"insert into t by name replace changed keys (k) or replace all {text}")
        found, expected = house.rows("select * from t"), house.rows(text)
        assert repr(found) == repr(expected), f"step {step} of seed {seed}: {text}"
