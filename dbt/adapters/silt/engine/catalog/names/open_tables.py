"""The open handles of tables."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.store import Store


class OpenTables:
    """The open handles, by folder. Thread-safe.

    A handle caches its log, and detects by itself that another table was created in its folder.

    Args:
        clock: given to each handle.
        registers: the publications of each database; a table's handle gets the publications of its database.
    """

    def __init__(self, clock: Clock, registers: Sequence[Publications] = ()) -> None:
        self._clock = clock
        self._registers = registers
        self._open: dict[str, DeltaLog] = {}
        self._guard = threading.Lock()

    def log(self, store: Store, name: str) -> DeltaLog:
        """Returns the handle of the table in the store's root, without a check whether it exists."""
        with self._guard:
            held = self._open.get(store.root)
            if held is None or held.name != name:
                held = self._open[store.root] = DeltaLog(store, name, self._clock)
                held.publications = self.register_of(store)
            return held

    def forget(self, store: Store) -> None:
        """Drops the handle of that folder."""
        with self._guard:
            self._open.pop(store.root, None)

    def register_of(self, store: Store) -> Publications | None:
        """Returns the publications of the database in which a table's folder is, if any."""
        roots = ((each, f"{each.store.root.rstrip('/')}/") for each in self._registers)
        inside = [(len(root), register) for register, root in roots if store.root.startswith(root)]
        return max(inside, key=lambda each: each[0], default=(0, None))[1]
