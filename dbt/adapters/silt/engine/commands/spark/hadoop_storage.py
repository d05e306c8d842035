"""Translates the settings of object stores to Hadoop's settings, and sets them in a session.

The settings of databases become Hadoop's settings of a single bucket or account, so that databases may differ. Sources:
Hadoop's pages on S3A, ABFS and the connector of Google Cloud Storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.storage.credential_sources import Access, Kind, access
from dbt.adapters.silt.engine.kernel.storage.opening import is_path_style
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import SCHEMES, ObjectUrl, Service, is_url, parse_url

REDACTED: Final = r"(?i)secret|password|token|access[.]?key|account[.]key|keyfile|[.]sas[.]"
"""A pattern, for `spark.redaction.regex`, that matches the names of settings with a secret."""

_REDACTED_OPTIONS: Final = "spark.sql.redaction.options.regex"
_S3A: Final = "org.apache.hadoop.fs.s3a."
_ABFS: Final = "org.apache.hadoop.fs.azurebfs.oauth2."
_CONNECT_MS: Final = 5000
_REPEATS: Final = {
    # Attempts of a request without an answer, each of which takes Hadoop's minimum of 15 seconds, and of reads that the
    # service throttles.
    "attempts.maximum": "5",
    # Repeats of all these attempts together; throttled writes have a limit of their own.
    "retry.limit": "0",
    # Repeats of a read of a part of a file, each of 30 seconds; the default is 20.
    "analytics.accelerator.physicalio.blockreadretrycount": "1",
}
"""The limits on repeated requests of Spark's client for S3."""

_has_them: set[str] = set()


def trust(application: str) -> None:
    """Records that a Spark application has the settings already, so that its sessions need no settings."""
    _has_them.add(application)


def configure(spark: SparkSession, locations: Mapping[str, str], storages: Storages) -> None:
    """Sets in a session the settings that object stores need; changes nothing if the user gave no storage settings.

    Raises:
        InvalidSettingError: as `access` does.
    """
    given = [storages.default, *(storages.of(each) for each in locations.values() if is_url(each))]
    if all(each == StorageSettings() for each in given) or spark.conf.get("spark.app.id", None) in _has_them:
        return
    hidden = spark.conf.get(_REDACTED_OPTIONS, None)
    if REDACTED not in (hidden or ""):
        spark.conf.set(_REDACTED_OPTIONS, f"{hidden or '(?i)url'}|{REDACTED.removeprefix('(?i)')}")
    for name, value in all_settings(locations, storages).items():
        spark.conf.set(name, value)


def all_settings(locations: Mapping[str, str], storages: Storages) -> dict[str, str]:
    """Returns Hadoop's settings for databases, and for the other buckets of the services in use.

    The other buckets get the settings that the log's client uses for them, unless a database of the same service has
    different settings: Hadoop would use the general settings for each setting that its bucket lacks.

    Raises:
        InvalidSettingError: as `access` does.
    """
    urls = [each for each in locations.values() if is_url(each)]
    found: dict[str, str] = {}
    for service in services(locations, storages):
        if all(storages.of(url) == storages.default for url in urls if parse_url(url).service is service):
            found |= _for_all_buckets(service, storages.default)
    for url in urls:
        found |= hadoop_settings(url, storages.of(url))
    return found


def services(locations: Mapping[str, str], storages: Storages) -> list[Service]:
    """Returns the services of the databases and of the default settings, sorted."""
    found = {parse_url(each).service for each in locations.values() if is_url(each)}
    return sorted(found | storages.default.services, key=lambda service: service.value)


def _for_all_buckets(service: Service, settings: StorageSettings) -> dict[str, str]:
    url = ObjectUrl(next(scheme for scheme, each in SCHEMES.items() if each is service), "", "")
    return _BY_SERVICE[service](url, access(url, settings))


def hadoop_settings(location: str, settings: StorageSettings) -> dict[str, str]:
    """Returns Hadoop's settings for a location in an object store.

    Args:
        settings: the user's settings; the environment's settings are added, as for the log's client.

    Raises:
        InvalidSettingError: if the location is not in an object store, or as `access` does.
    """
    url = parse_url(location)
    return _BY_SERVICE[url.service](url, access(url, settings))


def _s3(url: ObjectUrl, used: Access) -> dict[str, str]:
    settings = used.settings
    own = {
        "endpoint": settings.endpoint,
        "endpoint.region": settings.region,
        "path.style.access": str(is_path_style(settings)).lower(),
        "aws.credentials.provider": _s3_provider(used),
        "connection.establish.timeout": str(_CONNECT_MS),
        "connection.timeout": str(settings.timeout * 1000),
        **_REPEATS,
        # In milliseconds. With the default, a replaced object would be read with its former size and tag.
        "analytics.accelerator.physicalio.metadatastore.ttl": "1",
    }
    if used.kind is Kind.GIVEN:
        keys = (settings.access_key_id, settings.secret_access_key, settings.session_token)
        own.update(zip(("access.key", "secret.key", "session.token"), keys, strict=True))
    if settings.endpoint:
        own["connection.ssl.enabled"] = str(settings.endpoint.startswith("https://")).lower()
    prefix = f"fs.s3a.bucket.{url.bucket}" if url.bucket else "fs.s3a"
    named = {f"{prefix}.{name}": value for name, value in own.items() if value}
    return {"fs.s3.impl": f"{_S3A}S3AFileSystem", **named}


def _s3_provider(used: Access) -> str:
    return {
        Kind.GIVEN: f"{_S3A}{'Temporary' if used.settings.session_token else 'Simple'}AWSCredentialsProvider",
        Kind.ANONYMOUS: f"{_S3A}AnonymousAWSCredentialsProvider",
        Kind.WEB_IDENTITY: "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
        Kind.MACHINE: f"{_S3A}auth.IAMInstanceCredentialsProvider",
    }[used.kind]


def _azure(url: ObjectUrl, used: Access) -> dict[str, str]:
    settings, host = used.settings, url.bucket.partition("@")[2]
    of_account = f".{host}" if host else ""
    named = {f"fs.azure.{name}{of_account}": value for name, value in _azure_credentials(used).items() if value}
    if settings.endpoint:
        # A custom endpoint is an emulator, which supports only the blob API, and whose address lacks the account.
        named |= {
            f"fs.azure.abfs.endpoint{of_account}": urlsplit(settings.endpoint).netloc,
            f"fs.azure.account.hns.enabled{of_account}": "false",
            f"fs.azure.fns.account.service.type{of_account}": "BLOB",
            # Hadoop's other HTTP library uses TLS even if the endpoint does not.
            f"fs.azure.networking.library{of_account}": "JDK_HTTP_URL_CONNECTION",
            "fs.azure.always.use.https": str(settings.endpoint.startswith("https://")).lower(),
        }
        if settings.account_key:
            named[f"fs.azure.account.key{of_account.replace('.dfs.', '.blob.')}"] = settings.account_key
    return named


def _azure_credentials(used: Access) -> dict[str, str | None]:
    settings = used.settings
    if settings.account_key:
        return {"account.auth.type": "SharedKey", "account.key": settings.account_key}
    if settings.sas_token:
        return {"account.auth.type": "SAS", "sas.fixed.token": settings.sas_token.lstrip("?")}
    provider = {Kind.GIVEN: "ClientCreds", Kind.WEB_IDENTITY: "WorkloadIdentity", Kind.MACHINE: "Msi"}[used.kind]
    tenant = settings.tenant_id
    signed_in_at = f"https://login.microsoftonline.com/{tenant}/oauth2/token" if used.kind is Kind.GIVEN else None
    return {
        "account.auth.type": "OAuth",
        "account.oauth.provider.type": f"{_ABFS}{provider}TokenProvider",
        "account.oauth2.client.id": settings.client_id,
        "account.oauth2.client.secret": settings.client_secret,
        "account.oauth2.client.endpoint": signed_in_at,
        "account.oauth2.msi.tenant": tenant if used.kind is not Kind.GIVEN else None,
    }


def _google(_url: ObjectUrl, used: Access) -> dict[str, str]:
    if used.kind is Kind.ANONYMOUS:
        return {"fs.gs.auth.type": "UNAUTHENTICATED"}
    if used.settings.service_account:
        return {
            "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "fs.gs.auth.service.account.json.keyfile": used.settings.service_account,
        }
    return {"fs.gs.auth.type": "APPLICATION_DEFAULT"}


_BY_SERVICE: Final = {Service.S3: _s3, Service.AZURE: _azure, Service.GOOGLE: _google}
