"""The incremental strategies and snapshots on lists of rows, written from the words of docs/models alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from tests.random_projects.project import Node
from tests.random_projects.values import Row, as_key, key_of

Rows = Sequence[Row]
T = TypeVar("T")


class Undecided(Exception):
    """The documentation does not say what happens."""


class Refused(Exception):
    """The documentation says that the write is an error. Nothing is written."""


def append(node: Node, table: Rows, new: Rows) -> list[Row]:
    return [*table, *new]


def merge(node: Node, table: Rows, new: Rows) -> list[Row]:
    gone = {key_of(row, node.key) for row in new if row.get("_change_type") == "delete"}
    upserted = [_without_kind(row) for row in new if row.get("_change_type") != "delete"]
    return _merged(node, [row for row in table if key_of(row, node.key) not in gone], upserted)


def _without_kind(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "_change_type"}


def _merged(node: Node, table: Rows, new: Rows) -> list[Row]:
    if not node.key:
        return append(node, table, new)
    by_key: dict[Any, list[int]] = defaultdict(list)
    for place, row in enumerate(new):
        by_key[key_of(row, node.key)].append(place)
    result: list[Row] = []
    matched: set[int] = set()
    for old in table:
        in_range = node.predicate is None or node.predicate.of(old) is True
        places = by_key.get(key_of(old, node.key), []) if in_range else []
        matched.update(places)
        updates = [new[place] for place in places if _changes(node, old, new[place])]
        if len(updates) > 1:
            raise Refused("more than one row of the query for a row of the table")
        if updates:
            result.append({**old, **_updated(node, old, updates[0])})
        elif places or not node.deletes:
            result.append(old)
    added = [row for place, row in enumerate(new) if place not in matched]
    return result if node.skipped == "not_matched" else result + added


def _changes(node: Node, old: Row, new: Row) -> bool:
    column = node.changed_only
    return node.skipped != "matched" and (not column or as_key(old[column]) != as_key(new[column]))


def _updated(node: Node, old: Row, new: Row) -> Row:
    """The new values; fields of a struct that the query does not return keep theirs."""
    names = node.updated or [name for name in new if name not in node.kept]
    return {name: {**(old[name] or {}), **new[name]} if isinstance(new[name], dict) else new[name] for name in names}


def delete_insert(node: Node, table: Rows, new: Rows) -> list[Row]:
    if not node.key:
        return append(node, table, new)
    keys = {key_of(row, node.key) for row in new}

    def is_kept(row: Row) -> bool:
        return key_of(row, node.key) not in keys or (node.predicate is not None and node.predicate.of(row) is not True)

    return [*filter(is_kept, table), *new]


def insert_overwrite(node: Node, table: Rows, new: Rows) -> list[Row]:
    if not node.partition_by:
        return list(new)
    partitions = {key_of(row, node.partition_by) for row in new}
    return [*(row for row in table if key_of(row, node.partition_by) not in partitions), *new]


def replace_where(node: Node, table: Rows, new: Rows) -> list[Row]:
    condition = node.predicate
    assert condition is not None
    if any(condition.of(row) is not True for row in new):
        raise Refused("a row of the query for which the condition is not true")
    return [*(row for row in table if condition.of(row) is not True), *new]


def changed_keys(node: Node, table: Rows, new: Rows) -> list[Row]:
    return list(new)


STRATEGIES: Final[dict[str, Callable[[Node, Rows, Rows], list[Row]]]] = {
    "append": append,
    "merge": merge,
    "delete+insert": delete_insert,
    "insert_overwrite": insert_overwrite,
    "replace_where": replace_where,
    "changed_keys": changed_keys,
}


def replace_window(table: Rows, new: Rows, start: datetime) -> list[Row]:
    """A batch of `microbatch` of the day that begins at `start`."""

    def is_inside(row: Row) -> bool:
        return row["at"] is not None and start <= row["at"] < start + timedelta(days=1)

    if not all(map(is_inside, new)):
        raise Refused("a row outside of the window")
    return [*(row for row in table if not is_inside(row)), *new]


def spelled(row: Mapping[str, T], columns: Iterable[str]) -> dict[str, T]:
    """Returns a row, or types by column, with the names of a table's columns, which may be in other letters."""
    names = {name.lower(): name for name in columns}
    return {names.get(name.lower(), name): value for name, value in row.items()}


def columns_after(node: Node, table: dict[str, str], query: dict[str, str]) -> dict[str, str]:
    """The table's columns after a write of the query's, by `on_schema_change`."""
    missing = [name for name in table if name not in query]
    added = {name: kind for name, kind in query.items() if name not in table}
    others = {name: kind for name, kind in query.items() if name in table and kind != table[name]}
    if node.on_schema_change == "fail" and (missing or added or others):
        raise Refused("the columns differ")
    if node.on_schema_change == "ignore":
        lacking = [name for name, kind in others.items() if fields(table[name]).keys() - fields(kind).keys()]
        if missing or (lacking and node.strategy == "merge"):
            raise Refused("the query must return every column of the table")
        if any(fields(kind).keys() - fields(table[name]).keys() for name, kind in others.items()):
            raise Refused("the table must have every field of the query")
        return table
    if node.on_schema_change == "append_new_columns":
        return table | {name: _with_fields(table[name], kind) for name, kind in others.items()} | added
    return {name: kind for name, kind in table.items() if name in query} | others | added


def fields(kind: str) -> dict[str, str]:
    """The fields of a struct of plain types, by name; empty for another type."""
    if not kind.startswith("struct<"):
        return {}
    return dict(each.split(":") for each in kind.removeprefix("struct<").removesuffix(">").split(","))


def _with_fields(kind: str, query: str) -> str:
    """A struct with the new fields of the query's; another type as it is."""
    both = fields(kind) | {name: each for name, each in fields(query).items() if name not in fields(kind)}
    return f"struct<{','.join(f'{name}:{each}' for name, each in both.items())}>" if both else kind


def fit(value: Any, kind: str) -> Any:
    """A value of a struct with the fields of a type, of which missing fields are null; another value as it is."""
    return {name: value.get(name) for name in fields(kind)} if isinstance(value, dict) else value


START: Final = "dbt_valid_from"
END: Final = "dbt_valid_to"
UPDATED: Final = "dbt_updated_at"
DELETED: Final = "dbt_is_deleted"


def snapshot(node: Node, table: Rows, new: Rows, now: datetime) -> list[Row]:
    """The versions after a run at `now`."""
    keys = [key_of(row, node.key) for row in new]
    if len(set(keys)) < len(keys):
        raise Refused("two rows with one key")
    versions: dict[Any, list[Row]] = defaultdict(list)
    for row in table:
        versions[key_of(row, node.key)].append(row)
    for key, row in zip(keys, new, strict=True):
        updated = row["at"] if node.timed or not node.checked else now
        added = {**row, START: updated, END: None, UPDATED: updated, DELETED: "False"}
        versions[key] = _seen(node, versions[key], added, now)
    for key in versions.keys() - set(keys):
        versions[key] = _missing(node, versions[key], now)
    return [row for rows in versions.values() for row in rows]


def _seen(node: Node, rows: list[Row], new: Row, now: datetime) -> list[Row]:
    if not rows:
        return [new]
    current = next((row for row in rows if row[END] is None), None)
    if current is None:
        ended = max(moment for row in rows for moment in (row[START], row[END]) if moment is not None)
        return [*rows, {**new, START: new[START] if _is_later(new[START], ended) else max(now, ended)}]
    if current.get(DELETED) != "True" and not _differs(node, current, new):
        return rows
    start = new[START] if _is_later(new[START], current[START]) else _latest(now, current[START])
    others = [row for row in rows if row is not current]
    return [*others, {**current, END: start}, {**new, START: start}]


def _differs(node: Node, current: Row, new: Row) -> bool:
    if node.checked:
        return key_of(current, node.checked) != key_of(new, node.checked)
    return _is_later(new[UPDATED], current[UPDATED])


def _missing(node: Node, rows: list[Row], now: datetime) -> list[Row]:
    current = next((row for row in rows if row[END] is None), None)
    if current is None or current.get(DELETED) == "True" or node.deletes not in ("invalidate", "new_record"):
        return rows
    end = _latest(now, current[START])
    closed = [*(row for row in rows if row is not current), {**current, END: end}]
    if node.deletes == "invalidate":
        return closed
    return [*closed, {**current, START: end, END: None, UPDATED: now, DELETED: "True"}]


def _is_later(new: datetime | None, old: datetime | None) -> bool:
    return new is not None and (old is None or new > old)


def _latest(now: datetime, start: datetime | None) -> datetime:
    return now if start is None else max(now, start)
