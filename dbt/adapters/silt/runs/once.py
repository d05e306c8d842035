"""Limits a warning to a single occurrence in each dbt command."""

from __future__ import annotations

import threading

from dbt_common.invocation import get_invocation_id

_lock = threading.Lock()
_seen: dict[str, set[str]] = {}
"""The subjects of the command that this process runs, by the command's id."""


def first_time(subject: str) -> bool:
    """Returns whether this is the first call for the subject in this dbt command. Thread-safe."""
    command = str(get_invocation_id())
    with _lock:
        if command not in _seen:
            _seen.clear()
        subjects = _seen.setdefault(command, set())
        if subject in subjects:
            return False
        subjects.add(subject)
        return True
