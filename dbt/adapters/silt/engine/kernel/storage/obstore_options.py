"""Converts the settings of a storage to obstore's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import ObjectUrl, Service

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
