"""Lets the tests' Python models record that they ran, and run other code meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

ran: list[str] = []
"""The names of the models whose functions were called."""

_others: dict[str, Callable[[], object]] = {}


def meanwhile(name: str, other: Callable[[], object]) -> None:
    """Runs `other` once, when the model of that name reports that it runs."""
    _others[name] = other


def let_others_run(name: str) -> None:
    """Called in a model: records that it runs, and runs the test's code on another thread."""
    ran.append(name)
    other = _others.pop(name, None)
    if other is not None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
