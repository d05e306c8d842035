"""Opens the store of a location: a folder of this machine, or a URL of an object store."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

from dbt.adapters.silt.engine.kernel.storage import obstore_options
from dbt.adapters.silt.engine.kernel.storage.credential_sources import Access, access
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import is_url, parse_url


def open_store(
    location: str, settings: StorageSettings | None = None, allowed: Sequence[str] | None = None
) -> LocalStore | ObjectStore:
    """Opens the store of a location without a request to its service.

    Args:
        location: a path, or a URL of an object store.
        settings: the settings of its service; ignored for a path.
        allowed: see LocalStore.

    Raises:
        InvalidSettingError: if the kind of the URL is not supported, or the settings cannot be used.
    """
    if not is_url(location):
        return LocalStore(location, allowed)
    url = parse_url(location)
    bucket = _bucket(url.root, access(url, settings or StorageSettings()))
    store = bucket.child(url.prefix)
    store.allowed = allowed
    return store


@functools.lru_cache(maxsize=64)
def _bucket(root: str, used: Access) -> ObjectStore:
    """Opens a whole bucket, with a client that all tables in it share, because it keeps connections open."""
    return ObjectStore(root, obstore_options.options(parse_url(root), used.settings))


os.register_at_fork(after_in_child=_bucket.cache_clear)  # the child process does not have the client's threads
