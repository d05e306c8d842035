"""Checks the columns that an incremental model's configuration names, on the run that makes its table.

Later runs check them as they write their statement; the first one writes the query's rows as they are, and a wrong key
would show when the table is there and full. A key that names a column twice is an oversight that changes no row, so a
table that is there goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.config import named_twice
from dbt.adapters.silt.materializations.incremental.config_columns import qualified
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list
from dbt.adapters.silt.materializations.incremental.merge_clauses import Sides, merge_clauses

Config = Mapping[str, Any]

_BY_COLUMNS: Mapping[str, Sequence[str]] = {
    "merge": ("merge_on_using_columns", "unique_key"),
    "delete+insert": ("unique_key",),
}
"""The configs that name the columns by which a strategy finds its rows; the first that is set counts."""


def names_columns(config: Config, strategy: str) -> bool:
    """Whether the strategy reads columns that the configuration names."""
    return _is_merge(config, strategy) or bool(_keys(config, strategy)[1])


def check_predicates(config: Config, strategy: str) -> None:
    """Passes if the strategy has the predicates that it needs in every run but the first.

    Raises:
        CompilationError: it has none.
    """
    if strategy == "replace_where" and not as_list(config.get("predicates") or config.get("incremental_predicates")):
        raise CompilationError(
            "The incremental strategy 'replace_where' needs `incremental_predicates`: the condition that is true for "
            "the rows to replace"
        )


def check_columns(config: Config, strategy: str, columns: Sequence[str]) -> None:
    """Passes where every column that the strategy reads is one of the query's.

    Args:
        config: the model's whole configuration.
        strategy: the adapter's own strategy, or `default`.
        columns: those of the model's query, in its order.

    Raises:
        CompilationError: a config names something else, or a column twice.
    """
    for problem in named_twice(config):
        raise CompilationError(problem)
    setting, keys = _keys(config, strategy)
    for key in keys:
        qualified(key, columns, "DBT_INTERNAL_DEST", setting)
    if _is_merge(config, strategy):
        merge_clauses(config, Sides(columns, columns))


def _keys(config: Config, strategy: str) -> tuple[str, list[str]]:
    """The config that names the columns, and what it names."""
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
