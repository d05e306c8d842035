"""How a dbt command ends, by the error that is on its way when its connections are closed for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from dbt.adapters.silt.records.command_result import Ending

_FAILED: Final = 1
"""dbt's exit code of a command that came to its end, with failures; that of one that an error broke off is another."""


@dataclass(frozen=True)
class CommandEnd:
    """The end of a dbt command.

    Attributes:
        finished: whether it came to its end, with or without failed nodes.
        ending: what is recorded of it.
        problem: the error that broke it off; None where none did.
    """

    finished: bool
    ending: Ending
    problem: str | None = None

    @classmethod
    def of(cls, error: BaseException | None, around: BaseException | None) -> CommandEnd:
        """Tells the end of a command.

        Args:
            error: the one that is on its way.
            around: the one that a program handles, within which it runs the command.
        """
        if error is around:
            return cls(True, Ending.SUCCESS)
        if isinstance(error, click.ClickException) and error.exit_code == _FAILED:
            return cls(True, Ending.FAILED)
        cause = getattr(error, "exception", error)  # dbt wraps what ends a command
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            return cls(False, Ending.INTERRUPTED)
        return cls(False, Ending.FAILED, str(cause) or type(cause).__name__)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended it."""
        return self.ending is Ending.INTERRUPTED
