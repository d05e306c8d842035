"""Lets python models of the tests note that they ran, and run something meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

ran: list[str] = []
"""The names of the models whose function was called."""

_others: dict[str, Callable[[], object]] = {}


def meanwhile(name: str, other: Callable[[], object]) -> None:
    """Have `other` happen once, when the model of that name says so."""
    _others[name] = other


def let_others_run(name: str) -> None:
    """Called in a model: note that it runs, and let on another thread happen what the test asked for."""
    ran.append(name)
    other = _others.pop(name, None)
    if other is not None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
