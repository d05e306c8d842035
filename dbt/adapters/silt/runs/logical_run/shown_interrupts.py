"""Keeps dbt's traceback of a Ctrl-C off the screen, where it pushes away what says how to go on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dbt_common.events.event_manager_client import get_event_manager

if TYPE_CHECKING:
    from dbt_common.events.base_types import EventMsg

_SCREEN: Final = "stdout_log"
"""dbt's name of its logger on the standard output."""

_SAY_NOTHING: Final = ("MainEncounteredError", "MainStackTrace")
"""What dbt says of the error that ends a command: of a Ctrl-C it is no text, and where in dbt it arrived."""


def shorten() -> None:
    """Leaves out what dbt prints of a Ctrl-C or SIGTERM. Any other error is shown, and dbt's log file has them all."""
    for logger in get_event_manager().loggers:
        if logger.name == _SCREEN:
            logger.filter = _without_interrupts(logger.filter)


def _without_interrupts(shown: Callable[[EventMsg], bool]) -> Callable[[EventMsg], bool]:
    def is_shown(message: EventMsg) -> bool:
        is_of_interrupt = message.info.name in _SAY_NOTHING and isinstance(sys.exc_info()[1], KeyboardInterrupt)
        return not is_of_interrupt and shown(message)

    return is_shown
