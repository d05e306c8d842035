"""Converts the rows of two readers to one form, so that rows with the same meaning are equal."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Returns the rows in an order that depends on them alone; instants in UTC, maps as lists of pairs."""
    return sorted((_plain(row) for row in table.to_pylist()), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.timezone.utc)
    return value
