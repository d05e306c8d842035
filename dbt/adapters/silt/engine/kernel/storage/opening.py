"""Opens the store of a location: a local folder, or a URL of an object store with the options of its client."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Final

from dbt.adapters.silt.engine.kernel.storage.credential_sources import Access, access
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import ObjectUrl, Service, is_url, parse_url


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
    return ObjectStore(root, options(parse_url(root), used.settings))


os.register_at_fork(after_in_child=_bucket.cache_clear)  # the child process does not have the client's threads


_CONNECT_SECONDS: Final = 5
_RETRIES: Final = 3
_SAME_NAMES: Final[Mapping[Service, tuple[str, ...]]] = {
    Service.S3: ("region", "access_key_id", "secret_access_key", "session_token"),
    Service.AZURE: ("account_key", "sas_token", "tenant_id", "client_id", "client_secret"),
    Service.GOOGLE: ("service_account",),
}


def options(url: ObjectUrl, settings: StorageSettings) -> dict[str, str]:
    """Returns the options of ObjectStore for a URL of an object store.

    Args:
        settings: the settings, including values from the environment (`credential_sources.access`).
    """
    given = {name: getattr(settings, name) for name in _SAME_NAMES[url.service]}
    result = {name: value for name, value in given.items() if value}
    if settings.anonymous:
        result["skip_signature"] = "true"
    if settings.endpoint:
        result["endpoint"] = f"{settings.endpoint}/{url.account}" if url.account else settings.endpoint
        result["allow_http"] = str(settings.endpoint.startswith("http://")).lower()
    if url.service is Service.S3:
        result["virtual_hosted_style_request"] = str(not is_path_style(settings)).lower()
    waits = {"connect_timeout": f"{_CONNECT_SECONDS}s", "read_timeout": f"{settings.timeout}s"}
    return {**result, **waits, "retry_timeout": str(_RETRIES * settings.timeout)}


def is_path_style(settings: StorageSettings) -> bool:
    """Returns whether the bucket is in the path of a request."""
    return settings.path_style if settings.path_style is not None else settings.endpoint is not None
