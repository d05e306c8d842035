"""The results of a statement in the shell: rows, a change, or an explanation; and its failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa


@dataclass(frozen=True)
class RowsFound:
    """Rows of a query."""

    rows: pa.Table


@dataclass(frozen=True)
class Change:
    """The effect of a statement.

    Attributes:
        text: such as `v12: 4,120 inserted in 3 files`; `OK` if it changes no table.
        document: the same as JSON.
    """

    text: str
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Explanation:
    """A description of how a query is answered.

    Attributes:
        lines: the description for display.
        document: the same as JSON.
    """

    lines: tuple[str, ...]
    document: Mapping[str, Any]


Result: TypeAlias = RowsFound | Change | Explanation


class StatementFailedError(Exception):
    """A statement that another process ran has failed; the text describes the failure and the remedy.

    Attributes:
        is_damage: whether a table is damaged.
    """

    def __init__(self, text: str, is_damage: bool = False) -> None:
        super().__init__(text)
        self.is_damage = is_damage


class CancelledError(Exception):
    """A statement was cancelled, and has committed nothing."""
