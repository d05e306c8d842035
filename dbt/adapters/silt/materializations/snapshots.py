"""Finds the columns that a snapshot's configuration names, and names the columns that dbt adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.identifiers import listed, quote
from dbt.adapters.silt.engine.kernel.near_names import nearest
from dbt.adapters.silt.materializations.incremental.config_columns import (
    column_named,
    qualified,
    required_column,
    without_quotes,
)

_STRATEGY = re.compile(r"snapshot_(\w+)_strategy")


def check_strategy(strategy: str, macros: Iterable[str]) -> None:
    """Checks that a macro exists for the strategy; dbt itself looks for the strategy of a package, `package.name`.

    Args:
        macros: the names of the macros that a snapshot may use.

    Raises:
        CompilationError: if it does not exist.
    """
    known = sorted({match[1] for match in map(_STRATEGY.fullmatch, macros) if match})
    if "." in strategy or strategy in known:
        return
    near = nearest(strategy, known)
    hint = f": did you mean `{near}`?" if near else "."
    raise CompilationError(
        f"`strategy` is {strategy!r}, which is not a strategy of snapshots{hint} Set it to one of {listed(known)}, or "
        f"define the macro snapshot_{strategy}_strategy in the project"
    )


def expression(text: str, columns: Sequence[str], setting: str) -> str:
    """Returns a column in backquotes, or an expression over columns in parentheses.

    Raises:
        CompilationError: if the string of the config `setting` does not name any of the columns.
    """
    name = column_named(text, columns)
    if name is not None:
        return quote(name)
    qualified(text, columns, "source_data", setting)
    return f"({text})"


def compared_columns(texts: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Returns the items of a SELECT for `check_cols`: columns in backquotes; an item with `*` is not changed.

    Raises:
        CompilationError: if a string names no column.
    """
    return [
        text if text.strip().startswith("*") else quote(required_column(text, columns, "check_cols")) for text in texts
    ]


def plain_names(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of dbt's own columns as in the table.

    Args:
        given: dbt's name of each column -> the configured name, with or without quotes.

    Raises:
        CompilationError: if two columns have the same name.
    """
    names = {column: without_quotes(name.strip()) for column, name in given.items()}
    folded = [name.lower() for name in names.values()]
    for column, name in names.items():
        if folded.count(name.lower()) > 1:
            raise CompilationError(
                f"`snapshot_meta_column_names` gives the name {name} to {column} and to another column: "
                "give each column a different name"
            )
    return names


def quoted_names(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of dbt's own columns in backquotes.

    Raises:
        CompilationError: if two columns have the same name.
    """
    return {column: quote(name) for column, name in plain_names(given).items()}
