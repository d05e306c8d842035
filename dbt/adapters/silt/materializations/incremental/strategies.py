"""Checks the strategy of an incremental model: its macro, its key, and the columns that its configuration names.

The columns are checked on the run that creates the table. Later runs check them when they write their statement; the
first run writes the query's rows unchanged, so a wrong key would be found only when the table exists and is full. A key
that names a column twice has no effect on the rows, so later runs accept it; the first run rejects it as a mistake.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.materializations.incremental.changed_keys import STRATEGY as CHANGED_KEYS
from dbt.adapters.silt.materializations.incremental.config import named_twice
from dbt.adapters.silt.materializations.incremental.config_columns import (
    column_named,
    qualified,
    required_column,
    without_quotes,
)
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list
from dbt.adapters.silt.materializations.incremental.merge_clauses import Sides, is_on, merge_clauses

STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "replace_where", "microbatch", CHANGED_KEYS)

_MACRO = re.compile(r"get_incremental_(\w+)_sql")
_LIKE_ENOUGH = 0.6

_Config = Mapping[str, Any]

_SIMILAR = 0.85
_BY_COLUMNS: Mapping[str, Sequence[str]] = {
    "merge": ("merge_on_using_columns", "unique_key"),
    "delete+insert": ("unique_key",),
    CHANGED_KEYS: ("unique_key", "group_key"),
}
"""The configs that name the columns by which a strategy finds its rows; the first config that is set applies."""


def check_strategy(strategy: str, macros: Iterable[str], project: str) -> None:
    """Checks that a macro exists for the strategy.

    Args:
        strategy: the config `incremental_strategy`, or `default`.
        macros: the names of the macros that a model may use.
        project: the name of the project.

    Raises:
        CompilationError: if it does not exist; the message begins like dbt's. If it is `delete_insert`.
    """
    macro = f"get_incremental_{strategy.replace('+', '_')}_sql"
    names = list(macros)
    written = {each.replace("+", "_"): each for each in STRATEGIES if "+" in each}
    if strategy in written:
        # dbt finds the macro by this name, too, but what depends on the strategy would not recognise it.
        raise CompilationError(f"`incremental_strategy` is {strategy!r}: write `{written[strategy]}`")
    if macro in names:
        return
    own = {each.replace("+", "_") for each in STRATEGIES} | {"default"}
    found = [match[1] for match in map(_MACRO.fullmatch, names) if match and match[1] not in own]
    known = [*STRATEGIES, *sorted(found)]
    nearest = difflib.get_close_matches(strategy.lower(), known, 1, _LIKE_ENOUGH)
    hint = f": did you mean `{nearest[0]}`?" if nearest else "."
    raise CompilationError(
        f'dbt could not find an incremental strategy macro with the name "{macro}" in {project}{hint} '
        f"Set `incremental_strategy` to one of {', '.join(known)}, or define that macro in the project"
    )


def key_warning(config: Mapping[str, Any]) -> str | None:
    """Returns the warning for a strategy that matches rows but has no key or condition to match them by, else None.

    Args:
        config: the whole configuration of an incremental model, by dbt's names.
    """
    strategy = config.get("incremental_strategy")
    if strategy not in ("merge", "delete+insert") or config.get("unique_key"):
        return None
    if strategy == "merge" and _chooses_rows_otherwise(config):
        return None
    return (
        f"`{strategy}` without `unique_key` cannot match rows of the table: each run appends all rows of the query. "
        "Set `unique_key`, or `incremental_strategy: append` if that is intended"
    )


def _chooses_rows_otherwise(config: Mapping[str, Any]) -> bool:
    """Returns whether a merge has another condition, or configures the rows that it inserts or other unmatched rows."""
    return any(config.get(name) for name in _OTHER_CHOICES) or is_on(config.get("skip_not_matched_step"))


_OTHER_CHOICES = (
    "merge_on_using_columns",
    "merge_clauses",
    "merge_insert_condition",
    "not_matched_condition",
    "not_matched_by_source_action",
)


def names_columns(config: _Config, strategy: str) -> bool:
    """Returns whether the strategy reads columns that the configuration names."""
    return _is_merge(config, strategy) or bool(keys(config, strategy)[1] or _predicates(config, strategy))


def conditions(config: _Config, strategy: str, columns: Sequence[str]) -> dict[str, str]:
    """Returns the conditions on rows that later runs use, each with the name of its config."""
    found = dict.fromkeys(_predicates(config, strategy), "incremental_predicates")
    if _is_merge(config, strategy):
        target, source = aliases(config)
        clauses = merge_clauses(config, Sides(columns, columns, target, source))
        found |= {each.condition: f"when {each.match}" for each in clauses if each.condition}
    return found


def aliases(config: _Config) -> tuple[str, str]:
    """Returns the aliases of the table and of the query in conditions."""
    target, source = config.get("target_alias"), config.get("source_alias")
    return str(target or "DBT_INTERNAL_DEST"), str(source or "DBT_INTERNAL_SOURCE")


def _predicates(config: _Config, strategy: str) -> list[str]:
    if _chosen(config, strategy) in ("append", CHANGED_KEYS, "insert_overwrite"):
        return []
    return as_list(config.get("predicates") or config.get("incremental_predicates"))


def check_predicates(config: _Config, strategy: str) -> None:
    """Checks that the strategy has the predicates that it needs in every run after the first.

    Raises:
        CompilationError: if it has no predicates.
    """
    if strategy == "replace_where" and not as_list(config.get("predicates") or config.get("incremental_predicates")):
        raise CompilationError(
            "The incremental strategy 'replace_where' needs `incremental_predicates`: the condition that is true for "
            "the rows to replace"
        )


def check_columns(config: _Config, strategy: str, columns: Sequence[str]) -> None:
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
    setting, named = keys(config, strategy)
    for key in named:
        if _chosen(config, strategy) == CHANGED_KEYS:
            required_column(key, columns, setting)
        else:
            qualified(key, columns, "DBT_INTERNAL_DEST", setting)
    if _is_merge(config, strategy):
        merge_clauses(config, Sides(columns, columns))


def exclusion_warning(config: _Config, columns: Sequence[str]) -> str | None:
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


def keys(config: _Config, strategy: str) -> tuple[str, list[str]]:
    """Returns the config that names the columns, and its values."""
    for setting in _BY_COLUMNS.get(_chosen(config, strategy), ()):
        named = as_list(config.get(setting))
        if named:
            return setting, named
    return "", []


def _is_merge(config: _Config, strategy: str) -> bool:
    return _chosen(config, strategy) == "merge"


def _chosen(config: _Config, strategy: str) -> str:
    if strategy != "default":
        return strategy
    return "merge" if config.get("unique_key") else "append"
