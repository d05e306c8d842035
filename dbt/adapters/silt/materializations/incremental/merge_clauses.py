"""Builds the WHEN clauses of a model's MERGE from its configuration.

The keys of both adapters are converted to dbt-duckdb's `merge_clauses`; dbt-databricks' keys are shorthand for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from dbt.adapters.silt.materializations.incremental.config_columns import column_named, required_column
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import (
    BY_SOURCE,
    MATCH_SQL,
    MATCHED,
    NOT_MATCHED,
    Given,
    as_list,
    expressions,
)


@dataclass(frozen=True)
class WhenClause:
    """`WHEN match [AND condition] THEN action`, each as Spark SQL."""

    match: str
    action: str
    condition: str | None = None


@dataclass(frozen=True)
class Sides:
    """The two sides of a MERGE.

    Attributes:
        columns: the table's columns that the model's rows are written to.
        given: the model's columns, in its own order; needed only if a clause maps columns by position.
        target: the alias of the table.
        source: the alias of the model's rows.
        gone: the condition for rows of the model that only name a key to delete; None if every row is written.
    """

    columns: Sequence[str]
    given: Sequence[str] = ()
    target: str = "DBT_INTERNAL_DEST"
    source: str = "DBT_INTERNAL_SOURCE"
    gone: str | None = None

    def value(self, column: str) -> str:
        """Returns the model's value of a column."""
        return f"{self.source}.{quote(column)}"


def merge_clauses(config: Given, sides: Sides) -> list[WhenClause]:
    """Returns the clauses of a checked configuration, in MERGE's order.

    Raises:
        CompilationError: if a named column does not exist, or no clause does anything.
    """
    found = [
        clause
        for kind, given in _configured(config).items()
        for clause in _without_nothing(MATCH_SQL[kind], [(each, _action(kind, each, sides)) for each in given])
    ]
    if sides.gone is not None:
        found = _with_deletes(found, sides.gone)
    if not found:
        raise CompilationError("The configuration of this merge does nothing: no row is updated, inserted or deleted")
    return found


def unwritten_columns(config: Given, columns: Sequence[str]) -> list[str]:
    """Returns the model's columns that no clause of a checked configuration writes to the table."""
    sides = Sides(columns, columns)
    written: set[str] = set()
    for kind, given in _configured(config).items():
        for each in given:
            if each.get("action") == "insert":
                written.update(name for name, _ in _inserted(each, sides))
            elif each.get("action") == "update":
                written.update(name for name, _ in _assigned(kind, each, sides))
    return [name for name in columns if name not in written]


def _with_deletes(clauses: Sequence[WhenClause], gone: str) -> list[WhenClause]:
    """Returns the clauses, extended so that rows with deleted keys are deleted and not inserted."""
    kept = f"not ({gone})"
    return [
        WhenClause(MATCH_SQL[MATCHED], "delete", gone),
        *(
            replace(each, condition=_all_of([kept, *([each.condition] if each.condition else [])]))
            if each.match == MATCH_SQL[NOT_MATCHED]
            else each
            for each in clauses
        ),
    ]


def is_by_position(config: Given) -> bool:
    """Returns whether a clause maps the model's columns by position."""
    lists = (config.get("merge_clauses") or {}).values()
    return any(each.get("mode") == "by_position" for given in lists for each in given)


def is_on(value: Any) -> bool:
    """Returns whether a setting, given as a boolean or a string, is true."""
    return str(value).strip().lower() == "true"


def _configured(config: Given) -> dict[str, list[Given]]:
    """Returns the clauses of each kind."""
    own = config.get("merge_clauses") or {}
    kinds: dict[str, list[Given]] = {MATCHED: [], NOT_MATCHED: [], BY_SOURCE: []}
    kinds[MATCHED] = list(own.get(MATCHED, _default_matched(config)))
    for each in own.get(NOT_MATCHED, _default_not_matched(config)):
        kinds[BY_SOURCE if str(each.get("by", "")).lower() == "source" else NOT_MATCHED].append(each)
    kinds[BY_SOURCE] += own.get(BY_SOURCE, _default_by_source(config))
    return kinds


def _default_matched(config: Given) -> list[Given]:
    if is_on(config.get("skip_matched_step")):
        return []
    update = {
        "include": as_list(config.get("merge_update_columns")),
        "exclude": as_list(config.get("merge_exclude_columns")),
        "set_expressions": config.get("merge_update_set_expressions") or {},
    }
    condition = config.get("matched_condition") or config.get("merge_update_condition")
    given = {"action": "update", "mode": "explicit", "update": update, "condition": condition}
    return [{**given, "setting": "merge_update_columns"}]


def _default_not_matched(config: Given) -> list[Given]:
    if is_on(config.get("skip_not_matched_step")):
        return []
    condition = config.get("not_matched_condition") or config.get("merge_insert_condition")
    return [{"action": "insert", "condition": condition}]


def _default_by_source(config: Given) -> list[Given]:
    action = config.get("not_matched_by_source_action")
    return [{"sql": action.strip(), "condition": config.get("not_matched_by_source_condition")}] if action else []


def _without_nothing(match: str, clauses: Sequence[tuple[Given, str | None]]) -> Iterator[WhenClause]:
    """Drops clauses without an action, which SQL cannot express; the conditions of later clauses exclude their rows."""
    left: list[str] = []
    for given, action in clauses:
        conditions = as_list(given.get("condition"))
        if action is not None:
            yield WhenClause(match, action, _all_of([*left, *conditions]))
        elif not conditions:
            return
        else:
            left.append(f"not coalesce({_all_of(conditions)}, false)")


def _action(kind: str, given: Given, sides: Sides) -> str | None:
    """Returns the SQL of a clause's action, or None if it does nothing."""
    if "sql" in given:
        return str(given["sql"])
    match given["action"]:
        case "delete":
            return "delete"
        case "insert":
            return _insert(_inserted(given, sides))
        case "update":
            assigned = _assigned(kind, given, sides)
            return (
                "update set " + ", ".join(f"{quote(name)} = {value}" for name, value in assigned) if assigned else None
            )
        case "error":
            return _error(kind, given, sides)
        case _:
            return None


def _assigned(kind: str, given: Given, sides: Sides) -> list[tuple[str, str]]:
    """Returns the columns that an update sets, with their values."""
    if given.get("mode") == "by_position":
        return _by_position(sides)
    values = {
        required_column(name, sides.columns, "set_expressions"): _literal(each)
        for name, each in expressions(given).items()
    }
    if kind == BY_SOURCE:
        return list(values.items())
    update = given.get("update", {})
    setting = given.get("setting", "update.include")
    included = [required_column(each, sides.columns, setting) for each in as_list(update.get("include"))]
    excluded = {column_named(each, sides.columns) for each in as_list(update.get("exclude"))}
    columns = [each for each in included or sides.columns if each not in excluded and each not in values]
    return [*values.items(), *((each, sides.value(each)) for each in columns)]


def _inserted(given: Given, sides: Sides) -> list[tuple[str, str]]:
    """Returns the columns of an insert, with their values."""
    match given.get("mode"):
        case "explicit":
            columns = [
                required_column(each, sides.columns, "insert.columns") for each in as_list(given["insert"]["columns"])
            ]
            return list(zip(columns, map(_literal, as_list(given["insert"]["values"])), strict=True))
        case "by_position":
            return _by_position(sides)
        case _:
            return [(each, sides.value(each)) for each in sides.columns]


def _by_position(sides: Sides) -> list[tuple[str, str]]:
    if len(sides.columns) != len(sides.given):
        raise CompilationError(
            f"A clause of `merge_clauses` is `by_position`, but the model returns {len(sides.given)} columns and "
            f"the table has {len(sides.columns)}: return as many, or use `mode: by_name`"
        )
    return [(column, sides.value(name)) for column, name in zip(sides.columns, sides.given, strict=True)]


def _insert(values: Sequence[tuple[str, str]]) -> str:
    return f"insert ({', '.join(quote(name) for name, _ in values)}) values ({', '.join(value for _, value in values)})"


def _error(kind: str, given: Given, sides: Sides) -> str:
    """Returns an action that fails, by setting a column to `raise_error`."""
    message = (
        given.get("error_message") or f"a row was found that is {MATCH_SQL[kind]}, which `merge_clauses` calls an error"
    )
    raised = f"raise_error({string_literal(str(message))})"
    first, *others = sides.columns
    if kind == NOT_MATCHED:
        return _insert([(first, raised), *((each, sides.value(each)) for each in others)])
    return f"update set {quote(first)} = {raised}"


def _all_of(conditions: Sequence[str]) -> str | None:
    return " and ".join(f"({each})" for each in conditions) if conditions else None


def _literal(value: Any) -> str:
    """Returns a configured value as SQL: a string is an expression, any other YAML value is a literal."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
