"""Checks the strategy of an incremental model: its macro must exist, and it must have a key if it needs a key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.merge_clauses import is_on

STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "replace_where", "microbatch", "changed_keys")

_MACRO = re.compile(r"get_incremental_(\w+)_sql")
_LIKE_ENOUGH = 0.6


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
