"""Checks the configuration of the strategy `changed_keys`, and writes its clause (decision 0089)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import listed
from dbt.adapters.silt.materializations.incremental.config_columns import quoted_name
from dbt.adapters.silt.materializations.incremental.merge_clause_checks import as_list

STRATEGY: Final = "changed_keys"
CONFIGS: Final = ("group_key", "key_columns", "on_unsupported_query")
UNSUPPORTED_CHOICES: Final = ("fail", "full_refresh")

_OTHERS: Final = ("incremental_predicates", "predicates")
_IS_INCREMENTAL: Final = re.compile(r"\bis_incremental\s*\(")


def changed_keys_problems(given: Mapping[str, Any]) -> Iterator[str]:
    """Yields the reasons why the configuration of `changed_keys` cannot be used.

    Args:
        given: the configs of an incremental model that are set.
    """
    if given.get("incremental_strategy") != STRATEGY:
        for name in (each for each in CONFIGS if each in given):
            yield f"`{name}` is for `incremental_strategy: {STRATEGY}`: set that strategy, or leave `{name}` out"
        return
    keys = [name for name in ("unique_key", "group_key") if name in given]
    if len(keys) != 1:
        yield (f"`{STRATEGY}` needs either `unique_key`, the columns that tell the rows apart, or `group_key`")
    unused = [name for name in _OTHERS if name in given]
    if unused:
        yield f"{listed(unused)} cannot be given together with `{STRATEGY}`, which finds the rows to replace by itself"


def changed_keys_clause(model: Mapping[str, Any]) -> str:
    """Returns the clause CHANGED KEYS of a model's statement.

    Raises:
        CompilationError: if the model is not a plain SELECT.
    """
    if model.get("language") != "sql" or _IS_INCREMENTAL.search(str(model.get("raw_code"))):
        raise CompilationError(
            f"`{model.get('name')}` with `{STRATEGY}` must be a plain SELECT, as for a table: in SQL, and without "
            "`is_incremental()`"
        )
    config = model["config"]
    clause = f"changed keys ({_columns(config.get('unique_key') or config.get('group_key'))})"
    inputs = [f"{_name(name)} ({_columns(columns)})" for name, columns in (config.get("key_columns") or {}).items()]
    if inputs:
        clause += f" mapped to {', '.join(inputs)}"
    return clause + (" or replace all" if config.get("on_unsupported_query") == "full_refresh" else "")


def _columns(columns: Any) -> str:
    return ", ".join(quoted_name(each) for each in as_list(columns))


def _name(name: str) -> str:
    return ".".join(quoted_name(part) for part in name.split("."))
