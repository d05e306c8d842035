"""Reads a warehouse beside its runs: every cut of all tables is as before a publication, or as after it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TypeAlias

from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from tests.chaos.warehouses import Warehouse

Cut: TypeAlias = tuple[tuple[str, int], ...]
"""The name and the version of each table, sorted."""


class Reader:
    """Reads cuts on a thread of its own, until the end of a `with` block.

    Attributes:
        cuts: the different cuts, in the order of their first readings.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self._catalog = warehouse.catalog()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read_all, name="reader", daemon=True)
        self.cuts: list[Cut] = []

    def __enter__(self) -> Reader:
        self._read()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join()
        self._read()

    def partial(self) -> Iterator[str]:
        """Yields the cuts that are neither the first nor the last."""
        for cut in self.cuts[1:-1]:
            first, last = set(self.cuts[0]), set(self.cuts[-1])
            yield f"a partial cut: {sorted(set(cut) - first)} with {sorted(set(cut) - last)}"

    def _read_all(self) -> None:
        while not self._ends.wait(0.05):
            self._read()

    def _read(self) -> None:
        cut = None
        while cut is None:
            cut = self._cut()
        if cut not in self.cuts:
            self.cuts.append(cut)

    def _cut(self) -> Cut | None:
        """Returns a cut, or None if tables were created or dropped meanwhile."""
        names = list(self._catalog.all_tables())
        try:
            found = consistent_cut([self._catalog.table(name) for name in names])
        except RelationNotFoundError:
            return None
        if names != list(self._catalog.all_tables()):
            return None
        return tuple(sorted((log.name, snapshot.version) for log, snapshot in found.items()))
