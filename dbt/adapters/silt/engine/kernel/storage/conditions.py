"""Tests whether a storage respects the conditions of conditional writes, which every commit depends on.

An old self-hosted server may ignore `If-None-Match` and `If-Match`: then two writers both succeed, and a commit
is lost silently. So four writes to a test object, which is then deleted, are tried before anything else is written: a
write of a missing object, a write that must be refused, a write of an unchanged object, a write that must be refused.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from dataclasses import dataclass
from typing import cast

from dbt.adapters.silt.engine.kernel.errors import ConditionsIgnoredError, SiltError
from dbt.adapters.silt.engine.kernel.storage.store import PrefixStore, PutResult, Store

_PREFIX = "_silt_probe_"


@dataclass(frozen=True)
class Kept:
    """The results of the test, for display.

    Attributes:
        created: the result of create-if-absent.
        swapped: the result of swap-if-unchanged.
        clock_ms: the lead of the storage's clock over this machine's, in milliseconds, if known.
    """

    created: str
    swapped: str
    clock_ms: int | None


def try_conditions(store: PrefixStore, now_ms: int) -> Kept:
    """Writes a test object under conditions, and deletes it.

    Args:
        now_ms: this machine's time, milliseconds since 1970-01-01 UTC.

    Raises:
        ConditionsIgnoredError: if a condition was ignored.
        StorageError: if the storage cannot be reached or written.
    """
    name = f"{_PREFIX}{uuid.uuid4().hex}"
    try:
        created = store.put_if_absent(name, b"first")
        again = store.put_if_absent(name, b"second")
        if created is not PutResult.CREATED or again is not PutResult.EXISTS or store.read(name) != b"first":
            raise _ignored(store, "create-if-absent")
        seen = store.status(name)
        if not _swaps(store, name):
            raise _ignored(store, "swap-if-unchanged")
    finally:
        with contextlib.suppress(SiltError):
            store.delete(name)
    return Kept("kept", "kept", None if seen is None else seen.modified_ms - now_ms)


def _swaps(store: PrefixStore, name: str) -> bool:
    """Returns whether the storage replaces an unchanged object, and refuses to replace a changed object."""
    found = store.read_if_changed(name, None)
    if found is None or store.swap_if_unchanged(name, b"third", found.tag) is None:
        return False
    return store.swap_if_unchanged(name, b"fourth", found.tag) is None and store.read(name) == b"third"


def _ignored(store: PrefixStore, what: str) -> ConditionsIgnoredError:
    return ConditionsIgnoredError(
        f"the storage of {store.root} ignores conditions ({what}): two writers could commit the same version",
        details={"storage": store.root, "condition": what},
    )


_kept: set[str] = set()
_lock = threading.Lock()


def require_conditions(store: Store, now_ms: int) -> None:
    """Checks that the storage respects conditions, once per bucket and process; a folder needs no test.

    Raises:
        ConditionsIgnoredError, StorageError: like `try_conditions`.
    """
    if store.service is None:
        return
    with _lock:
        if store.service not in _kept:
            try_conditions(cast(PrefixStore, store), now_ms)
            _kept.add(store.service)
