"""The settings of object stores, shared by the log's own client (obstore) and Spark's.

Their names are the names of delta-rs' options without the prefix, which DuckDB's secrets mostly share.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.urls import Service, is_url, parse_url

_SECRET: Final = {"is_secret": True}
_ELSEWHERE: Final = {
    "key_id": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "url_style": "path_style",
    "use_ssl": "endpoint",
    "allow_http": "endpoint",
    "endpoint_url": "endpoint",
    "skip_signature": "anonymous",
    "virtual_hosted_style_request": "path_style",
    "google_service_account": "service_account",
    "application_credentials": "service_account",
}
"""The field for each name that other tools use for it, or for a fact that an address with its scheme contains."""


@dataclass(frozen=True, repr=False)
class StorageSettings:
    """The address and credentials of a bucket; `resolved` takes missing values from the environment.

    Attributes:
        endpoint: the address of the service, with its scheme (`http://127.0.0.1:9000`); by default the cloud's own.
        region: the region of the bucket, on S3.
        access_key_id: the id of the access key, on S3.
        secret_access_key: the secret of the access key, on S3.
        session_token: the token of temporary credentials, on S3.
        profile: a profile of `~/.aws/credentials` or `~/.aws/config`, on S3.
        anonymous: whether requests are unsigned, for a public bucket.
        path_style: on S3, whether the bucket is in the path of a request instead of its host; the default is true if
            `endpoint` is set.
        account_key: the key of the storage account, on Azure.
        sas_token: a shared access signature, on Azure.
        tenant_id: the tenant of a service principal, on Azure.
        client_id: the client id of a service principal or a managed identity, on Azure.
        client_secret: the secret of a service principal, on Azure.
        service_account: the path of a service account's JSON file, on Google.
        timeout: the number of seconds that a request waits for a response.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = field(default=None, metadata=_SECRET)
    secret_access_key: str | None = field(default=None, metadata=_SECRET)
    session_token: str | None = field(default=None, metadata=_SECRET)
    profile: str | None = None
    anonymous: bool = False
    path_style: bool | None = None
    account_key: str | None = field(default=None, metadata=_SECRET)
    sas_token: str | None = field(default=None, metadata=_SECRET)
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, metadata=_SECRET)
    service_account: str | None = None
    timeout: int = 10

    def __repr__(self) -> str:
        return f"StorageSettings({', '.join(f'{name}={value!r}' for name, value in self.shown().items())})"

    def shown(self) -> dict[str, object]:
        """The fields that are set, with asterisks in place of secrets."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {name: value for name, value in values.items() if value not in (None, False)}
        return {name: "***" if name in SECRETS else value for name, value in given.items()}

    @property
    def services(self) -> frozenset[Service]:
        """The services to which the given fields belong."""
        return frozenset(each for each, names in _OF_SERVICE.items() if any(getattr(self, name) for name in names))


SECRETS: Final = frozenset(each.name for each in fields(StorageSettings) if each.metadata.get("is_secret"))
"""The names of the fields whose values are never shown."""

_OF_SERVICE: Final = {
    Service.S3: ("region", "access_key_id", "profile", "path_style"),
    Service.AZURE: ("account_key", "sas_token", "tenant_id", "client_id"),
    Service.GOOGLE: ("service_account",),
}
_KINDS: Final = {each.name: str(each.type).removesuffix(" | None") for each in fields(StorageSettings)}


def storage_settings(given: Mapping[str, Any]) -> StorageSettings:
    """Creates settings from the names and values in a profile or a program.

    Raises:
        InvalidSettingError: if a name is unknown, a value has the wrong type, or two fields exclude each other; the
            message never contains a value.
    """
    values = {name: _value(name, value) for name, value in given.items() if value is not None}
    settings = StorageSettings(**values)
    _check(settings)
    return settings


def _value(name: str, value: Any) -> Any:
    if name not in _KINDS:
        nearest = _ELSEWHERE.get(name) or next(iter(difflib.get_close_matches(name, _KINDS, n=1, cutoff=0.5)), None)
        hint = f"Did you mean `{nearest}`?" if nearest else f"The settings are {', '.join(_KINDS)}"
        raise InvalidSettingError(f"`{name}` is not a setting of a storage", remedy=hint)
    kind, text = _KINDS[name], str(value).strip()
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "int" and text.isdecimal() and int(text) > 0:
        return int(text)
    if kind == "str" and not isinstance(value, (Mapping, list, bool)):
        return text or None
    expected = {"bool": "true or false", "int": "a whole number above 0", "str": "a string"}[kind]
    raise InvalidSettingError(f"the setting `{name}` of a storage must be {expected}", remedy="Correct the value")


_PAIRS: Final = (
    ("access_key_id", "secret_access_key"),
    ("session_token", "access_key_id"),
    ("client_secret", "client_id"),
    ("client_secret", "tenant_id"),
)
_WAYS_TO_SIGN: Final = {
    Service.S3: ("access_key_id", "profile"),
    Service.AZURE: ("account_key", "sas_token", "client_secret"),
    Service.GOOGLE: ("service_account",),
}


def _check(settings: StorageSettings) -> None:
    for one, other in (*_PAIRS, _PAIRS[0][::-1]):
        if getattr(settings, one) and not getattr(settings, other):
            raise InvalidSettingError(f"a storage has `{one}` but no `{other}`", remedy=f"Set `{other}` too")
    for ways in _WAYS_TO_SIGN.values():
        given = [name for name in (*ways, "anonymous") if getattr(settings, name)]
        if len(given) > 1:
            raise InvalidSettingError(
                f"a storage has both `{given[0]}` and `{given[1]}`; only one is allowed", remedy="Remove one of them"
            )
    if settings.endpoint and not settings.endpoint.startswith(("http://", "https://")):
        raise InvalidSettingError(
            "the `endpoint` of a storage does not begin with http:// or https://",
            remedy="Write it with its scheme, as in `https://minio.example.com:9000`",
        )


@dataclass(frozen=True)
class Storages:
    """The settings of each bucket that contains a database, and the settings of every other bucket.

    Attributes:
        default: the settings of buckets that have no settings of their own.
    """

    default: StorageSettings = field(default_factory=StorageSettings)
    _by_bucket: Mapping[tuple[Service, str], StorageSettings] = field(default_factory=dict)

    def of(self, location: str) -> StorageSettings:
        """Returns the settings for a URL.

        Raises:
            InvalidSettingError: if the kind of URL is not supported.
        """
        return self._by_bucket.get(parse_url(location).store, self.default)


def storages(
    locations: Mapping[str, str],
    default: StorageSettings | None = None,
    own: Mapping[str, StorageSettings] | None = None,
) -> Storages:
    """Combines the settings of databases.

    Args:
        locations: the locations of the databases, by name.
        default: the settings of databases that have no settings of their own.
        own: the other databases' settings, by name.

    Raises:
        InvalidSettingError: two databases are in one bucket with different settings, or a folder has settings.
    """
    usual = default or StorageSettings()
    by_bucket: dict[tuple[Service, str], StorageSettings] = {}
    for name, location in locations.items():
        given = (own or {}).get(name)
        if not is_url(location):
            if given is not None:
                raise InvalidSettingError(
                    f"the database {name} is in the folder {location}, which needs no `storage`",
                    remedy="Remove `storage`",
                )
            continue
        url, settings = parse_url(location), given or usual
        if by_bucket.setdefault(url.store, settings) != settings:
            raise InvalidSettingError(
                f"the database {name} and another database are in {url.root} with different `storage`",
                remedy="Set the same `storage` for both: Spark uses one configuration for each bucket",
            )
    return Storages(usual, by_bucket)
