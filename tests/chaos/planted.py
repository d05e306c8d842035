"""Plants a bug in the processes that are killed, to test that the checks find it."""

from __future__ import annotations

import os
from typing import Final

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot

FORGETS_UNITS: Final = {"CHAOS_FORGETS_UNITS": "yes"}
"""The environment of a process that does not recognise a unit of work that a table contains."""


class _Forgetful:
    def transaction_version(self, app_id: str) -> int | None:
        return None


def plant() -> None:
    """Plants the bug that the environment names."""
    if FORGETS_UNITS.items() <= os.environ.items():
        Snapshot.transaction_version = _Forgetful.transaction_version  # type: ignore[assignment,method-assign]
