"""Classifies the end of a dbt command by the error that is being raised when its connections are closed for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from dbt.adapters.silt.records.command_result import Ending

_FAILED: Final = 1
"""dbt's exit code of a command that completed with failures; a command that an error aborted has another code."""


@dataclass(frozen=True)
class CommandEnd:
    """The end of a dbt command.

    Attributes:
        finished: whether it completed, with or without failed nodes.
        ending: the recorded ending.
        problem: the error that aborted it, if any.
        publication: the publication of its changes, as in `RunEntry`; None if it was not attempted.
    """

    finished: bool
    ending: Ending
    problem: str | None = None
    publication: str | None = None

    @classmethod
    def of(cls, error: BaseException | None, around: BaseException | None) -> CommandEnd:
        """Classifies the end of a command.

        Args:
            error: the error that is being raised.
            around: the error that the calling program is handling while it runs the command.
        """
        if error is around:
            return cls(True, Ending.SUCCESS)
        if isinstance(error, click.ClickException) and error.exit_code == _FAILED:
            return cls(True, Ending.FAILED)
        cause = getattr(error, "exception", error)  # dbt wraps the error that ends a command
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            return cls(False, Ending.INTERRUPTED)
        return cls(False, Ending.FAILED, str(cause) or type(cause).__name__)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended it."""
        return self.ending is Ending.INTERRUPTED
