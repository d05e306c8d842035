"""Checks the config key `merge_clauses` of a model; `config` checks the other keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from dbt.adapters.silt.engine.kernel.identifiers import listed

Given: TypeAlias = Mapping[str, Any]
"""A clause as configured."""

MATCHED, NOT_MATCHED, BY_SOURCE = "when_matched", "when_not_matched", "when_not_matched_by_source"
MATCH_SQL = {MATCHED: "matched", NOT_MATCHED: "not matched", BY_SOURCE: "not matched by source"}
_ACTIONS = {
    MATCHED: ("update", "delete", "do_nothing", "error"),
    NOT_MATCHED: ("insert", "do_nothing", "error"),
    BY_SOURCE: ("update", "delete", "do_nothing", "error"),
}
_MODES = ("by_name", "by_position", "star", "explicit")
_KEYS = frozenset("action condition mode by update insert set_expressions error_message".split())
_UPDATE_KEYS = frozenset(("include", "exclude", "set_expressions"))
_INSERT_KEYS = frozenset(("columns", "values"))


def clause_problems(clauses: Any) -> Iterator[str]:
    """Yields the problems of a configured `merge_clauses`, with the names that its user gave."""
    if not isinstance(clauses, Mapping):
        return
    for kind, given in clauses.items():
        if kind not in MATCH_SQL:
            yield f"`merge_clauses` may have {listed(MATCH_SQL)}, not `{kind}`"
        elif not isinstance(given, list | tuple) or not given:
            yield f"`merge_clauses.{kind}` must be a list of at least one clause"
        else:
            for number, each in enumerate(given, 1):
                yield from (
                    f"clause {number} of `merge_clauses.{kind}` {what}" for what in _clause_problems(kind, each)
                )
    if not clauses:
        yield f"`merge_clauses` must have one of {listed(MATCH_SQL)}"


def expressions(given: Given) -> Any:
    """Returns the values that a clause assigns to columns, from either of its two keys."""
    return given.get("set_expressions") or given.get("update", {}).get("set_expressions") or {}


def as_list(value: Any) -> list[Any]:
    """Returns a list, or a single value as a list; an empty list for None and an empty string."""
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _clause_problems(kind: str, given: Any) -> Iterator[str]:
    if not isinstance(given, Mapping):
        yield f"must be a dictionary, but is {given!r}"
        return
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        yield f"may have {listed(sorted(_KEYS))}, not {listed(unknown)}"
    side, action = str(given.get("by", "target")).lower(), given.get("action")
    if side not in ("source", "target") or ("by" in given and kind != NOT_MATCHED):
        yield "has a `by`, which only a `when_not_matched` clause may have: `source` or `target`"
        return
    kind = BY_SOURCE if side == "source" else kind
    if action not in _ACTIONS[kind]:
        hint = " (unmatched rows of the table need `by: source`)" if action in ("update", "delete") else ""
        yield f"has the action {action!r}, but {MATCH_SQL[kind]} takes {listed(_ACTIONS[kind])}{hint}"
    if given.get("mode", "by_name") not in _MODES:
        yield f"has the mode {given['mode']!r}, but the modes are {listed(_MODES)}"
    if not _is_condition(given.get("condition")):
        yield f"has a `condition` that is not SQL: {given['condition']!r}"
    if action == "update":
        yield from _update_problems(kind, given)
    if action == "insert":
        yield from _insert_problems(given)


def _is_condition(value: Any) -> bool:
    """Returns whether it is SQL, a nonempty list of SQL, or absent: an empty condition would hold for every row."""
    if value is None:
        return True
    conditions = value if isinstance(value, list | tuple) else [value]
    return bool(conditions) and all(isinstance(each, str) and each.strip() for each in conditions)


def _update_problems(kind: str, given: Given) -> Iterator[str]:
    update = given.get("update", {})
    if not isinstance(update, Mapping) or set(update) - _UPDATE_KEYS:
        yield f"has an `update` that is not a dictionary of {listed(sorted(_UPDATE_KEYS))}"
        return
    if update.get("include") in ([], (), ""):
        yield "has an `update.include` that is empty: name columns, or leave it out to update all"
    values = expressions(given)
    if not isinstance(values, Mapping) or not all(isinstance(each, str | int | float) for each in values.values()):
        yield "has `set_expressions` that are not a dictionary of columns and their expressions"
    elif kind == BY_SOURCE and not values:
        yield "updates rows that no row of the model matches, and therefore needs `set_expressions`"
    if kind == MATCHED and given.get("mode", "by_name") != "explicit" and (update or values):
        yield "names the columns to update, which needs `mode: explicit`"


def _insert_problems(given: Given) -> Iterator[str]:
    insert = given.get("insert", {})
    if not isinstance(insert, Mapping) or set(insert) - _INSERT_KEYS:
        yield f"has an `insert` that is not a dictionary of {listed(sorted(_INSERT_KEYS))}"
        return
    columns, values = as_list(insert.get("columns")), as_list(insert.get("values"))
    if given.get("mode", "by_name") == "explicit":
        if not columns or len(columns) != len(values):
            yield f"inserts {len(values)} `values` into {len(columns)} `columns`: name each column with its value"
    elif columns or values:
        yield "names the columns to insert, which needs `mode: explicit`"
