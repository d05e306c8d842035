"""The grammar of CHANGED KEYS, a clause of INSERT and of CREATE TABLE (decision 0089)."""

from __future__ import annotations

from dbt.adapters.silt.engine.sql.ast import ChangedKeys, Name
from dbt.adapters.silt.engine.sql.cursor import Cursor


def changed_keys(cursor: Cursor) -> ChangedKeys:
    """Parses (columns) [MAPPED TO input (columns), ...] [OR REPLACE ALL], after CHANGED KEYS."""
    columns = cursor.listed(Cursor.column)
    inputs = cursor.separated(_input) if cursor.take("MAPPED", "TO") else ()
    return ChangedKeys(columns, inputs, cursor.take("OR", "REPLACE", "ALL"))


def _input(cursor: Cursor) -> tuple[Name, tuple[str, ...]]:
    return cursor.name(), cursor.listed(Cursor.column)
