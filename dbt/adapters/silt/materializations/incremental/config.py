"""Checks the configuration of an incremental model: values, and configs that contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig

from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.materializations.incremental.changed_keys import UNSUPPORTED_CHOICES, changed_keys_problems
from dbt.adapters.silt.materializations.incremental.config_columns import without_quotes
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list, clause_problems
from dbt.adapters.silt.materializations.incremental.merge_clauses import is_on


@dataclass
class IncrementalConfig(AdapterConfig):
    """The configuration of incremental models, with the config keys of dbt-databricks and of dbt-duckdb.

    Conditions and expressions are Spark SQL, in which the table is `DBT_INTERNAL_DEST` (`target_alias`) and the model
    is `DBT_INTERNAL_SOURCE` (`source_alias`).

    Attributes:
        incremental_predicates: conditions on the rows of the table that a write reads; for `replace_where`, on the
            rows that it replaces.
        predicates: dbt's older key for `incremental_predicates`.
        merge_update_columns: the columns that are updated; by default all columns.
        merge_exclude_columns: the columns that are not updated.
        skip_equal_rows: whether a merge leaves a row alone if an update would set the values that it has.
        on_missing_changes: `fail` (the default) or `full_refresh`, if the changes that `silt_changes` would read are
            missing.

        matched_condition: the condition for updating a matched row.
        not_matched_condition: the condition for inserting a row of the model that matches no row of the table.
        not_matched_by_source_action: `delete`, or `update set column = expression, ...`, for rows of the
            table that match no row of the model.
        not_matched_by_source_condition: the condition for applying `not_matched_by_source_action` to a row.
        skip_matched_step: whether updates are skipped.
        skip_not_matched_step: whether inserts are skipped.
        source_alias: an alias of the model in conditions and expressions.
        target_alias: an alias of the table in conditions and expressions.
        merge_with_schema_evolution: whether new columns of the model are added to the table.

        merge_clauses: `when_matched`, `when_not_matched` and `when_not_matched_by_source`, each a list of clauses with
            `action`, `condition`, `mode` and the keys of the action.
        merge_update_condition: the same as `matched_condition`.
        merge_insert_condition: the same as `not_matched_condition`.
        merge_update_set_expressions: column -> expression for its new value.
        merge_on_using_columns: the columns on which rows match, instead of `unique_key`.
        merge_returning_columns: no effect, since a run shows no rows.

        group_key: the columns of the key of `changed_keys` if several rows may have the same key; else `unique_key`.
        key_columns: the name of a table -> the column, or the list of columns, that holds the key of `changed_keys`.
            The column is looked up in the query, and must exist there.
        on_unsupported_query: `fail` (the default) or `full_refresh`, if `changed_keys` cannot compute the rows of some
            keys alone.
    """

    predicates: list[str] | str | None = None
    incremental_predicates: list[str] | str | None = None
    merge_update_columns: list[str] | str | None = None
    merge_exclude_columns: list[str] | str | None = None
    skip_equal_rows: bool | str | None = None
    on_missing_changes: str | None = None

    matched_condition: str | None = None
    not_matched_condition: str | None = None
    not_matched_by_source_action: str | None = None
    not_matched_by_source_condition: str | None = None
    skip_matched_step: bool | str | None = None
    skip_not_matched_step: bool | str | None = None
    source_alias: str | None = None
    target_alias: str | None = None
    merge_with_schema_evolution: bool | str | None = None

    merge_clauses: dict[str, Any] | None = None
    merge_update_condition: str | None = None
    merge_insert_condition: str | None = None
    merge_update_set_expressions: dict[str, Any] | None = None
    merge_on_using_columns: list[str] | str | None = None
    merge_returning_columns: list[str] | str | None = None

    group_key: list[str] | str | None = None
    key_columns: dict[str, Any] | None = None
    on_unsupported_query: str | None = None


DATABRICKS = (
    "matched_condition",
    "not_matched_condition",
    "not_matched_by_source_action",
    "not_matched_by_source_condition",
    "skip_matched_step",
    "skip_not_matched_step",
    "source_alias",
    "target_alias",
    "merge_with_schema_evolution",
)
DUCKDB = (
    "merge_clauses",
    "merge_update_condition",
    "merge_insert_condition",
    "merge_update_set_expressions",
    "merge_on_using_columns",
)
_INSTEAD_OF_CLAUSES = (
    "merge_update_condition",
    "merge_insert_condition",
    "merge_update_columns",
    "merge_exclude_columns",
    "merge_update_set_expressions",
)
_WITHOUT_MERGE = ("append", "delete+insert", "insert_overwrite", "replace_where", "changed_keys", "microbatch")
_ON_SCHEMA_CHANGE = ("ignore", "fail", "append_new_columns", "sync_all_columns")
_ON_MISSING_CHANGES = ("fail", "full_refresh")


def problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Yields the reasons why an incremental model's configuration cannot be used, each as a sentence.

    Args:
        config: the model's whole configuration, by dbt's names.
    """
    given = {name: value for name, value in config.items() if value is not None}
    for name, (is_right, what) in _SHAPES.items():
        if name in given and not is_right(given[name]):
            yield f"`{name}` must be {what}, but is {given[name]!r}{_TAKEN_BACK if _is_empty(given[name]) else ''}"
    yield from _contradictions(given)
    yield from _of_no_partition(given)
    yield from changed_keys_problems(given)
    if "merge_clauses" in given:
        yield from clause_problems(given["merge_clauses"])


def blank_names(config: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yields a problem for each of these configs that is a blank string, or a list with a blank string."""
    for name in names:
        value = config.get(name)
        texts = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(each, str) and not each.strip() for each in texts):
            yield f"`{name}` is {value!r}, which contains an empty name{_TAKEN_BACK}"


def named_twice(given: Mapping[str, Any]) -> Iterator[str]:
    """Yields a problem for each list of columns that names a column twice, in any case and quotes."""
    for name in ("unique_key", "merge_on_using_columns", "merge_update_columns"):
        texts = given.get(name) if _is_list(given.get(name)) else None
        seen = [without_quotes(each.strip()).lower() for each in as_list(texts)]
        twice = sorted({each for each in seen if seen.count(each) > 1})
        if twice:
            yield f"`{name}` names {listed(twice)} twice: name each column once"


def _is_empty(value: Any) -> bool:
    return value == [] or value == () or (isinstance(value, str) and not value.strip())


def _contradictions(given: Mapping[str, Any]) -> Iterator[str]:
    """Yields the problems of keys that contradict each other."""
    databricks, duckdb = ([name for name in names if _is_set(given, name)] for names in (DATABRICKS, DUCKDB))
    if databricks and duckdb:
        yield (
            f"{listed(databricks)} of dbt-databricks and {listed(duckdb)} of dbt-duckdb cannot be given together: "
            "use the keys of one of them"
        )
    if _is_set(given, "merge_update_columns") and _is_set(given, "merge_exclude_columns"):
        yield "`merge_update_columns` and `merge_exclude_columns` cannot be given together: name one of them"
    replaced = [name for name in _INSTEAD_OF_CLAUSES if _is_set(given, name)]
    if _is_set(given, "merge_clauses") and replaced:
        yield f"{listed(replaced)} cannot be given together with `merge_clauses`: put it into the clauses"
    strategy = given.get("incremental_strategy")
    if _is_set(given, "skip_equal_rows") and strategy in _WITHOUT_MERGE:
        yield (
            f"`skip_equal_rows` is for `incremental_strategy: merge`, and `{strategy}` compares no rows: set that "
            "strategy, or leave `skip_equal_rows` out"
        )
    if "not_matched_by_source_condition" in given and "not_matched_by_source_action" not in given:
        yield "`not_matched_by_source_condition` needs `not_matched_by_source_action`: `delete`, or `update set ...`"
    if all(is_on(given.get(name)) for name in ("skip_matched_step", "skip_not_matched_step")):
        if "not_matched_by_source_action" not in given:
            yield "with `skip_matched_step` and `skip_not_matched_step` there is nothing to do: leave one of them out"


def _of_no_partition(given: Mapping[str, Any]) -> Iterator[str]:
    """Yields an empty partition list for `insert_overwrite`: it would replace the whole table."""
    names = ("partition_by", "liquid_clustered_by")
    if given.get("incremental_strategy") == "insert_overwrite" and not any(given.get(name) for name in names):
        for name in names:
            if given.get(name) in ([], ()):
                yield (
                    f"`{name}` is empty, and `insert_overwrite` would replace the whole table: name the columns whose "
                    "partitions it replaces, or leave it out if the whole table is meant"
                )


def _is_set(given: Mapping[str, Any], name: str) -> bool:
    """Returns whether a key has a value, other than an empty or false value by which a project resets it."""
    value = given.get(name)
    return value not in (None, False, "", [], {}) and str(value).lower() != "false"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_list(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list | tuple) and all(_is_text(each) for each in value))


def _is_filled_list(value: Any) -> bool:
    return _is_list(value) and bool(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or str(value).strip().lower() in ("true", "false")


def _is_action(value: Any) -> bool:
    words = value.split() if isinstance(value, str) else []
    lower = [word.lower() for word in words]
    return lower == ["delete"] or (lower[:2] == ["update", "set"] and len(words) > 2)


def _is_alias(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _is_expressions(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(each, str | int | float) for name, each in value.items()
    )


def _is_key_columns(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_is_text(name) and _is_filled_list(each) for name, each in value.items())


_TEXT = (_is_text, "a condition in SQL")
_LIST = (_is_list, "a string or a list of strings")
_FILLED_LIST = (_is_filled_list, "a string or a list of at least one string")
_FLAG = (_is_flag, "true or false")
_ALIAS = (_is_alias, "a name")

_TAKEN_BACK = ": leave it out; null removes the value that the project sets"

_SHAPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "on_schema_change": (lambda value: value in _ON_SCHEMA_CHANGE, f"one of {listed(_ON_SCHEMA_CHANGE)}"),
    "on_missing_changes": (lambda value: value in _ON_MISSING_CHANGES, f"one of {listed(_ON_MISSING_CHANGES)}"),
    "unique_key": _FILLED_LIST,
    "predicates": _LIST,
    "incremental_predicates": _LIST,
    "merge_update_columns": _FILLED_LIST,
    "merge_exclude_columns": _LIST,
    "skip_equal_rows": _FLAG,
    "matched_condition": _TEXT,
    "not_matched_condition": _TEXT,
    "not_matched_by_source_action": (_is_action, "`delete` or `update set column = expression, ...`"),
    "not_matched_by_source_condition": _TEXT,
    "skip_matched_step": _FLAG,
    "skip_not_matched_step": _FLAG,
    "source_alias": _ALIAS,
    "target_alias": _ALIAS,
    "merge_with_schema_evolution": _FLAG,
    "merge_clauses": (lambda value: isinstance(value, Mapping), "a dictionary of lists of clauses"),
    "merge_update_condition": _TEXT,
    "merge_insert_condition": _TEXT,
    "merge_update_set_expressions": (_is_expressions, "a dictionary of columns and their expressions"),
    "merge_on_using_columns": _FILLED_LIST,
    "merge_returning_columns": _LIST,
    "group_key": _FILLED_LIST,
    "key_columns": (_is_key_columns, "a dictionary of tables, each with a column or a list of columns"),
    "on_unsupported_query": (lambda value: value in UNSUPPORTED_CHOICES, f"one of {listed(UNSUPPORTED_CHOICES)}"),
}
