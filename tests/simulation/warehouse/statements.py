"""The statements of the simulation's processes, each with its effect if it runs alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.table.properties import ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult
from tests.simulation.rows_table import Rows, RowsTable
from tests.simulation.warehouse.upkeep import cluster_by, optimize, upkeep

NEW, SHARED = 1000, 5000
Apply = Callable[[Rows], dict[int, int]]
COUNT, NOTE = "silt.rows", "silt.note"
FEATURES: Mapping[str, str] = {
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
    "delta.enableInCommitTimestamps": "true",
}
"""The properties that turn on table features."""


KINDS: Mapping[str, float] = {
    "append": 2,
    "transfer": 2.5,
    "update": 1,
    "delete": 1,
    "delete new": 1,
    "insert the total": 1.5,
    "compact": 2,
    "set a property": 0.5,
    "count the rows": 0.5,
    "append once": 1,
    "append shared": 1,
    "turn on a feature": 0.5,
}
"""The kinds to choose from, with weights."""

UPKEEP: Mapping[str, float] = {"upkeep": 4, "optimize": 1, "cluster by": 0.5}
"""Further kinds to choose from in histories with upkeep."""


@dataclass(frozen=True)
class Statement:
    """A statement on one table.

    Attributes:
        run: runs it on the table.
        apply: its effect on the rows if it runs alone.
        by_row: whether its effect on a row does not depend on other rows.
        keeps_total: whether it keeps the sum of the amounts.
        txn: the transaction identifier of a unit of work, which a rerun skips.
        properties: the table properties that it may set.
        moves_rows: whether it changes no row.
    """

    name: str
    run: Callable[[RowsTable], CommitResult | None]
    apply: Apply
    by_row: bool = True
    keeps_total: bool = False
    txn: str | None = None
    properties: frozenset[str] = frozenset()
    moves_rows: bool = False


def between(low: int, high: int) -> Expression:
    return And((Comparison(">=", Column.of("id"), low), Comparison("<=", Column.of("id"), high)))


def append(rows: Rows) -> Statement:
    return Statement("append", lambda table: table.append(rows), lambda before: {**before, **rows})


def append_once(app_id: str, rows: Rows) -> Statement:
    """A unit of work, which runs only if it is not recorded yet."""

    def run(table: RowsTable) -> CommitResult | None:
        if table.log.snapshot().transaction_version(app_id) is not None:
            return None
        return table.append(rows, SetTransaction(app_id, 1))

    return Statement("append once", run, lambda before: {**before, **rows}, txn=app_id)


def insert_total(key: int) -> Statement:
    return Statement(
        "insert the total",
        lambda table: table.insert_if(TRUE, lambda rows: {key: sum(rows.values())}),
        lambda before: {**before, key: sum(before.values())},
        by_row=False,
    )


def update(low: int, high: int, by: int) -> Statement:
    return Statement(
        "update",
        lambda table: table.rewrite(between(low, high), lambda _, amount: amount * 2 + by),
        lambda before: {key: amount * 2 + by if low <= key <= high else amount for key, amount in before.items()},
    )


def delete(low: int, high: int) -> Statement:
    return Statement(
        "delete",
        lambda table: table.rewrite(between(low, high), lambda *_: None, "DELETE"),
        lambda before: {key: amount for key, amount in before.items() if not low <= key <= high},
    )


def transfer(source: int, target: int, amount: int) -> Statement:
    """Moves an amount between two accounts if both exist."""

    def moved(before: Rows) -> dict[int, int]:
        if not {source, target} <= set(before):
            return dict(before)
        return {**before, source: before[source] - amount, target: before[target] + amount}

    reads = between(min(source, target), max(source, target))
    return Statement(
        "transfer", lambda table: table.rewrite_all(reads, moved, "MERGE"), moved, by_row=False, keeps_total=True
    )


def rearrange(name: str, run: Callable[[RowsTable], CommitResult | None]) -> Statement:
    """A statement that only moves rows to other files, or changes no file."""
    return Statement(name, run, lambda before: dict(before), keeps_total=True, moves_rows=True)


def describe(text: str) -> Statement:
    return Statement(
        "set a property",
        lambda table: table.set_property(NOTE, text),
        lambda before: dict(before),
        keeps_total=True,
        properties=frozenset({NOTE}),
    )


def count_rows() -> Statement:
    return Statement(
        "count the rows",
        lambda table: table.set_property(COUNT, lambda rows: str(len(rows))),
        lambda before: dict(before),
        keeps_total=True,
        properties=frozenset({COUNT}),
    )


def turn_on(key: str, value: str) -> Statement:
    return Statement(
        "turn on a feature",
        lambda table: table.turn_on(key, value),
        lambda before: dict(before),
        keeps_total=True,
        properties=frozenset({key, ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP}),
    )


def by_chance(chance: random.Random, new_key: Callable[[], int], keys: int, kinds: frozenset[str]) -> Statement:
    """Draws a statement on a table that started with the keys from 0 to `keys`; new keys start at NEW.

    Args:
        kinds: the kinds of KINDS and UPKEEP to choose from.
    """
    low = chance.randrange(keys)
    high = low + chance.randrange(4)
    make: Mapping[str, Callable[[], Statement]] = {
        "append": lambda: append({new_key(): chance.randrange(100)}),
        "transfer": lambda: transfer(low, (low + 1 + chance.randrange(keys - 1)) % keys, chance.randrange(50)),
        "update": lambda: update(low, high, chance.randrange(10)),
        "delete": lambda: delete(low, high),
        "delete new": lambda: delete(NEW, SHARED - 1),
        "insert the total": lambda: insert_total(new_key()),
        "compact": lambda: rearrange(
            "compact", partial(RowsTable.compact, files=chance.choice((slice(None), slice(2), slice(-2, None))))
        ),
        "upkeep": lambda: rearrange("upkeep", upkeep),
        "optimize": lambda: rearrange("optimize", optimize),
        "cluster by": lambda: rearrange("cluster by", partial(cluster_by, columns=chance.choice(((), ("id",))))),
        "set a property": lambda: describe(f"note {chance.randrange(1000)}"),
        "count the rows": count_rows,
        "append once": lambda: append_once(f"silt/run/{(key := new_key())}", {key: 7}),
        "turn on a feature": lambda: turn_on(*chance.choice(list(FEATURES.items()))),
        "append shared": lambda: append_once("silt/shared", {SHARED: 7}),
    }
    chosen, weights = sorted(kinds), {**KINDS, **UPKEEP}
    return make[chance.choices(chosen, [weights[kind] for kind in chosen])[0]]()
