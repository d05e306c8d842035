"""The objects with the definitions of views and functions: each is written once, and never changed."""

from __future__ import annotations

import contextlib
from typing import Final

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.store import DOCUMENT_BYTES, Store

_FOLDER: Final = "_definitions"
_KEPT: Final = 1000


class Definitions:
    """Writes and reads definitions; since they never change, definitions that were read are cached.

    Args:
        store: the database's store.
        clock: gives ids.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read: dict[str, bytes] = {}

    def add(self, data: bytes) -> str:
        """Writes a definition, and returns its path."""
        path = f"{_FOLDER}/{self._clock.new_id()}.json"
        self._store.put(path, data)
        return path

    def read(self, path: str) -> bytes:
        """Returns the definition at that path.

        Raises:
            ObjectMissing: if its view or function was replaced or dropped.
        """
        if path not in self._read:
            if len(self._read) >= _KEPT:
                self._read.clear()
            self._read[path] = self._store.read(path, DOCUMENT_BYTES)
        return self._read[path]

    def remove(self, path: str | None) -> None:
        """Deletes a definition that is no longer referred to; a failure leaves it there, at the cost of a few bytes."""
        if path is not None:
            with contextlib.suppress(StorageError):
                self._store.delete(path)
