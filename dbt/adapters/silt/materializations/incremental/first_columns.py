"""Checks the columns that an incremental model's configuration names, on the run that creates its table.

Later runs check them when they write their statement; the first run writes the query's rows unchanged, so a wrong key
would be found only when the table exists and is full. A key that names a column twice has no effect on the rows, so
later runs accept it; the first run rejects it as a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.materializations.incremental.config import named_twice
from dbt.adapters.silt.materializations.incremental.config_columns import column_named, qualified, without_quotes
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list
from dbt.adapters.silt.materializations.incremental.merge_clauses import Sides, merge_clauses

Config = Mapping[str, Any]

_SIMILAR = 0.85

_BY_COLUMNS: Mapping[str, Sequence[str]] = {
    "merge": ("merge_on_using_columns", "unique_key"),
    "delete+insert": ("unique_key",),
    "changed_keys": ("unique_key", "group_key"),
}
"""The configs that name the columns by which a strategy finds its rows; the first config that is set applies."""


def names_columns(config: Config, strategy: str) -> bool:
    """Returns whether the strategy reads columns that the configuration names."""
    return _is_merge(config, strategy) or bool(_keys(config, strategy)[1])


def check_predicates(config: Config, strategy: str) -> None:
    """Checks that the strategy has the predicates that it needs in every run after the first.

    Raises:
        CompilationError: if it has no predicates.
    """
    if strategy == "replace_where" and not as_list(config.get("predicates") or config.get("incremental_predicates")):
        raise CompilationError(
            "The incremental strategy 'replace_where' needs `incremental_predicates`: the condition that is true for "
            "the rows to replace"
        )


def check_columns(config: Config, strategy: str, columns: Sequence[str]) -> None:
    """Checks that the query has every column that the strategy reads.

    Args:
        config: the model's whole configuration.
        strategy: a strategy of the adapter, or `default`.
        columns: columns of the model's query, in its order.

    Raises:
        CompilationError: if a config names anything else, or a column twice.
    """
    for problem in named_twice(config):
        raise CompilationError(problem)
    setting, keys = _keys(config, strategy)
    for key in keys:
        qualified(key, columns, "DBT_INTERNAL_DEST", setting)
    if _is_merge(config, strategy):
        merge_clauses(config, Sides(columns, columns))


def exclusion_warning(config: Config, columns: Sequence[str]) -> str | None:
    """Returns the warning that `merge_exclude_columns` names a column which the table lacks, but almost has.

    Other unknown names cause no warning: a project may exclude the same columns in all of its models.
    """
    for text in as_list(config.get("merge_exclude_columns")):
        near = [] if column_named(text, columns) else near_names(without_quotes(text.strip()), columns, 1, _SIMILAR)
        if near:
            return (
                f"`merge_exclude_columns` names {text}, which is not one of the columns {', '.join(columns)}, so "
                f"`{near[0]}` is updated: did you mean `{near[0]}`?"
            )
    return None


def _keys(config: Config, strategy: str) -> tuple[str, list[str]]:
    """Returns the config that names the columns, and its values."""
    for setting in _BY_COLUMNS.get(_chosen(config, strategy), ()):
        named = as_list(config.get(setting))
        if named:
            return setting, named
    return "", []


def _is_merge(config: Config, strategy: str) -> bool:
    return _chosen(config, strategy) == "merge"


def _chosen(config: Config, strategy: str) -> str:
    if strategy != "default":
        return strategy
    return "merge" if config.get("unique_key") else "append"
