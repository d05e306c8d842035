"""Hides dbt's traceback after Ctrl-C, which would push the advice how to continue off the screen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dbt_common.events.event_manager_client import get_event_manager

if TYPE_CHECKING:
    from dbt_common.events.base_types import EventMsg

_SCREEN: Final = "stdout_log"
"""dbt's name of its logger for the standard output."""

_SAY_NOTHING: Final = ("MainEncounteredError", "MainStackTrace")
"""dbt's events for the error that ends a command: after Ctrl-C they show an empty message and a line of dbt's code."""


def shorten() -> None:
    """Hides these events after Ctrl-C or SIGTERM; other errors are shown, and dbt's log file has them all."""
    for logger in get_event_manager().loggers:
        if logger.name == _SCREEN:
            logger.filter = _without_interrupts(logger.filter)


def _without_interrupts(shown: Callable[[EventMsg], bool]) -> Callable[[EventMsg], bool]:
    def is_shown(message: EventMsg) -> bool:
        is_of_interrupt = message.info.name in _SAY_NOTHING and isinstance(sys.exc_info()[1], KeyboardInterrupt)
        return not is_of_interrupt and shown(message)

    return is_shown
