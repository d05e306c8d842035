"""The warehouse that the sessions of clients work on, the clients, and the limits of their statements."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Final

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.sql.ast import ResetSetting, SetSetting
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.environment import Environment

MAX_ROWS: Final = "silt.max_rows"
MAX_SECONDS: Final = "silt.max_seconds"
"""The settings by which a session lowers its limits."""

_OPTIONS: Final = {MAX_ROWS: "--max-rows", MAX_SECONDS: "--max-seconds"}
_CLIENT: Final = "the statement of a client"


@dataclass(frozen=True)
class Client:
    """A client, as its connection describes it.

    Attributes:
        user: the name that it gives; not an identity: all clients share a token.
        program: the door, and the client's own name if it states one.
    """

    user: str
    program: str

    def __str__(self) -> str:
        return f"{self.user} ({self.program})"


@dataclass(frozen=True)
class Limits:
    """The limits of the sessions of an endpoint, or of a session that has lowered them.

    Attributes:
        is_read_only: whether statements may only read, and create temporary views.
        most_rows: the maximum number of rows of a result that is kept in memory; None for all.
        most_streamed_rows: the same for a result that is passed on as Spark computes it.
        most_seconds: how long a statement may run; None for any time.
        idle_seconds: after how long without a statement a session ends.
        most_sessions: how many sessions may be open.
    """

    is_read_only: bool = False
    most_rows: int | None = None
    most_streamed_rows: int | None = None
    most_seconds: float | None = None
    idle_seconds: float = 3600
    most_sessions: int = 100

    def after(self, statement: SetSetting | ResetSetting, now: Limits) -> Limits:
        """Returns the limits of a session after a setting.

        Args:
            now: its limits before, which are at most these limits of the endpoint.

        Raises:
            InvalidSettingError: if it is not a positive number, or is more than the endpoint allows.
        """
        if isinstance(statement, ResetSetting):
            rows = self if statement.key in (None, MAX_ROWS) else now
            time = self if statement.key in (None, MAX_SECONDS) else now
            return replace(rows, most_seconds=time.most_seconds)
        if statement.value is None or statement.key not in (MAX_ROWS, MAX_SECONDS):
            return now
        if statement.key == MAX_SECONDS:
            return replace(now, most_seconds=_lowered(MAX_SECONDS, statement.value, self.most_seconds))
        most = int(_lowered(MAX_ROWS, statement.value, self.most_streamed_rows))
        kept = most if self.most_rows is None else min(most, self.most_rows)
        return replace(now, most_rows=kept, most_streamed_rows=most)


def _lowered(key: str, value: str, most: float | None) -> float:
    """Returns the limit of a session.

    Args:
        most: the limit of the endpoint, if it has one.
    """
    try:
        found = float(value.strip("'\""))
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf or (key == MAX_ROWS and not found.is_integer()):
        raise errors.InvalidSettingError(
            f"`{key}` must be a positive number, not {value}", remedy=f"Set a number, or run `reset {key}`"
        )
    if most is not None and found > most:
        raise errors.InvalidSettingError(
            f"`{key}` cannot be {value}: this endpoint allows at most {most:,.12g}",
            remedy=f"Set at most that; only `{_OPTIONS[key]}` of the endpoint allows more",
        )
    return found


@dataclass(frozen=True)
class House:
    """The warehouse that sessions work on.

    Attributes:
        environment: the warehouse of the profile, with its Spark.
        current: the database and schema of new sessions.
        target: the name of the profile's target, for the facts of commits.
        declared: the files that the project declares, which its views may read.
    """

    environment: Environment
    current: tuple[str, str]
    target: str = "endpoint"
    declared: Container[str] = ()

    def open(self) -> Warehouse:
        """Opens a session of Spark, which is started if it does not run."""
        return self.environment.warehouse(self.declared).for_client(_CLIENT)


def too_large(most: int) -> errors.ResultTooLargeError:
    """Returns the error of a query with more rows than a limit."""
    return errors.ResultTooLargeError(
        f"the query has more than {most:,} rows, the most that this endpoint returns, or that `{MAX_ROWS}` allows"
    )
