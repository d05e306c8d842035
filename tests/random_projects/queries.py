"""The queries of random models, as SQL, as Python code for Spark, and in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from tests.random_projects.values import CORE, Condition, Row, as_key, as_stored, in_order


@dataclass(frozen=True)
class Extra:
    """A further column that a query may return."""

    column: str
    kind: str
    sql: str
    of: Callable[[Row], Any]

    @property
    def selected(self) -> str:
        return f"{self.sql} as `{self.column.replace('`', '``')}`"


EXTRAS: Final = {
    "e1": Extra("e1", "int", "cast(k as int)", lambda row: row["k"]),
    "wide e1": Extra("e1", "bigint", "k", lambda row: row["k"]),
    "E1": Extra("E1", "int", "cast(k as int)", lambda row: row["k"]),
    "order": Extra("order", "bigint", "k", lambda row: row["k"]),
    "odd": Extra("Größe.`cm`", "string", "g", lambda row: row["g"]),
    "e2": Extra("e2", "string", "concat(g, '-', cast(k as string))", lambda row: _joined(row["g"], row["k"])),
    "e3": Extra("e3", "decimal(12,2)", "cast(n * 2 as decimal(12,2))", lambda row: _doubled(row["n"])),
    "s of a": Extra("s", "struct<a:bigint>", "named_struct('a', k)", lambda row: {"a": row["k"]}),
    "s of a, b": Extra(
        "s", "struct<a:bigint,b:string>", "named_struct('a', k, 'b', g)", lambda row: {"a": row["k"], "b": row["g"]}
    ),
    "s of c, a": Extra(
        "s", "struct<c:date,a:bigint>", "named_struct('c', d, 'a', k)", lambda row: {"c": row["d"], "a": row["k"]}
    ),
}
"""The further columns by name; some have the same name in the table, or in other letters, and different types."""

Rows = Sequence[Row]


def _joined(text: str | None, key: int | None) -> str | None:
    return None if text is None or key is None else f"{text}-{key}"


def _doubled(value: Decimal | None) -> Decimal | None:
    return None if value is None else value * 2


@dataclass(frozen=True)
class Query:
    """A query over one or two relations.

    Attributes:
        base: `scan` and `group` have one input, `union` and `join` two; `changes` and `upserts` read the changes of one
            table, with the type of each change as the column `c` or `_change_type`.
        extras: the names of the further columns that it returns.
        newest: whether a run that finds the table selects only rows with a newer `d` than its newest.
    """

    base: str
    inputs: tuple[str, ...]
    where: Condition | None = None
    extras: tuple[str, ...] = ()
    newest: bool = False

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of the columns of a table with these rows."""
        changed = {"c": "string"} if self.base == "changes" else {}
        return CORE | {EXTRAS[name].column: EXTRAS[name].kind for name in self.extras} | changed

    def sql(self, reference: Callable[[str], str]) -> str:
        """The text of the query in a model; `reference` returns the Jinja of an input."""
        kind = {"changes": ["_change_type as c"], "upserts": ["_change_type"]}.get(self.base, [])
        columns = ", ".join([*CORE, *(EXTRAS[name].selected for name in self.extras), *kind])
        text = f"select {columns} from ({_base_sql(self.base, [reference(name) for name in self.inputs])}) q"
        text += f"\nwhere {self.where.sql()}" if self.where else "\nwhere true"
        if self.newest:
            text += "\n{% if is_incremental() %} and d > (select max(d) from {{ this }}) {% endif %}"
        return text

    def python(self, reference: Callable[[str], str]) -> str:
        """The body of a Python model, for `scan` and `union`."""
        frames = [f"{reference(name)}.select({', '.join(map(repr, CORE))})" for name in self.inputs]
        columns = [*CORE, *(EXTRAS[name].selected for name in self.extras)]
        where = f".where({self.where.sql()!r})" if self.where else ""
        return f"    return {'.unionAll('.join(frames)}{')' * (len(frames) - 1)}{where}.selectExpr(*{columns!r})\n"

    def rows(self, rows_of: Callable[[str], Rows], table: Rows | None = None) -> list[Row]:
        """The rows of the query; `table` has those of the model's table if the run is incremental."""
        return self.of(_BASES[self.base](*map(rows_of, self.inputs)), table)

    def of(self, found: list[Row], table: Rows | None = None) -> list[Row]:
        """The rows of the query from those of its base."""
        if self.where:
            found = [row for row in found if self.where.of(row) is True]
        if self.newest and table is not None:
            newest = max((row["d"] for row in table if row["d"] is not None), default=None)
            found = [row for row in found if newest is not None and row["d"] is not None and row["d"] > newest]
        return [
            _core(row) | {EXTRAS[name].column: EXTRAS[name].of(row) for name in self.extras} | self._kind(row)
            for row in found
        ]

    def _kind(self, row: Row) -> dict[str, Any]:
        """The type of a change."""
        names = {"changes": ("c",), "upserts": ("_change_type",)}.get(self.base, ())
        return {name: row[name] for name in names}


def _base_sql(base: str, names: list[str]) -> str:
    columns = ", ".join(CORE)
    if base == "scan":
        return f"select {columns} from {names[0]}"
    if base in ("changes", "upserts"):
        options = ", as='upserts'" if base == "upserts" else ""
        return f"select * from {{{{ silt_changes({names[0].strip('{} ')}{options}) }}}}"
    if base == "union":
        return f"select {columns} from {names[0]} union all select {columns} from {names[1]}"
    if base == "group":
        return (
            "select k, max(g) as g, max(d) as d, max(at) as at, cast(sum(n) as decimal(10,2)) as n, "
            f"cast(count(*) as double) as x from {names[0]} group by k"
        )
    return (
        "select a.k, a.g, a.d, a.at, cast(coalesce(b.n, 0) as decimal(10,2)) as n, a.x "
        f"from {names[0]} a left join (select k, sum(n) as n from {names[1]} group by k) b on a.k = b.k"
    )


def _core(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in CORE}


def _union(left: Rows, right: Rows) -> list[Row]:
    return [*left, *right]


def _groups(rows: Rows) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(as_key(row["k"]), []).append(row)
    return groups


def _group(rows: Rows) -> list[Row]:
    return [
        {"k": key, **{name: _largest(some, name) for name in ("g", "d", "at")}, "n": _sum(some), "x": float(len(some))}
        for key, some in _groups(rows).items()
    ]


def _join(left: Rows, right: Rows) -> list[Row]:
    sums = {key: _sum(some) for key, some in _groups(right).items() if key is not None}
    return [dict(row) | {"n": sums.get(row["k"]) or Decimal("0.00")} for row in left]


def _largest(rows: Rows, column: str) -> Any:
    return max((row[column] for row in rows if row[column] is not None), key=in_order, default=None)


def _sum(rows: Rows) -> Decimal | None:
    values = [row["n"] for row in rows if row["n"] is not None]
    return sum(values, Decimal("0.00")) if values else None


_BASES: Final[dict[str, Callable[..., list[Row]]]] = {
    "scan": list,
    "union": _union,
    "group": _group,
    "join": _join,
}


def changes(before: Rows, after: Rows) -> list[Row]:
    """The rows that one commit deleted and inserted, with the type of the change as `c`."""
    old, new = (Counter(map(_as_tuple, rows)) for rows in (before, after))
    return [
        *({**_core(row), "c": "delete"} for row in _some(before, old - new)),
        *({**_core(row), "c": "insert"} for row in _some(after, new - old)),
    ]


def upserts(before: Rows, after: Rows) -> list[Row]:
    """The newest row of each `k` that has changed, with the type of the change as `_change_type`."""
    changed = changes(before, after)
    newest = {row["k"]: row for row in sorted(changed, key=lambda row: row["c"])}
    kinds = {"insert": "upsert", "delete": "delete"}
    return [{**_core(row), "_change_type": kinds[row["c"]]} for row in newest.values()]


def _as_tuple(row: Row) -> tuple[str, ...]:
    return tuple(as_stored(row[name]) for name in CORE)


def _some(rows: Rows, wanted: Counter[tuple[str, ...]]) -> Iterator[Row]:
    left = Counter(wanted)
    for row in rows:
        if left[_as_tuple(row)] > 0:
            left[_as_tuple(row)] -= 1
            yield row
