"""The warehouse that the sessions of clients work on, the clients, and the limits of their statements."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.environment import Environment

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
    """The limits of all sessions.

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
    return errors.ResultTooLargeError(f"the query has more than {most:,} rows, the most that this endpoint returns")
