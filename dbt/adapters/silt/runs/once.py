"""What is said once in a dbt command, however many nodes it concerns."""

from __future__ import annotations

import threading

from dbt_common.invocation import get_invocation_id

_lock = threading.Lock()
_said: dict[str, set[str]] = {}
"""The subjects of the command that this process runs, by the command's id."""


def first_time(subject: str) -> bool:
    """Whether nobody in this dbt command has asked for the subject before; may be called from several threads."""
    command = str(get_invocation_id())
    with _lock:
        if command not in _said:
            _said.clear()
        subjects = _said.setdefault(command, set())
        if subject in subjects:
            return False
        subjects.add(subject)
        return True
