"""Resolves the credentials for a storage, so that the log's client and Spark's client use the same.

By default the clients search different sources: neither reads `~/.aws`, only one supports a web identity, and Hadoop
reads no environment variable of Azure. So values that the settings omit are looked up here and passed to both.
"""

from __future__ import annotations

import configparser
import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import ObjectUrl, Service


class Kind(enum.Enum):
    """The kind of credentials."""

    GIVEN = "given"
    ANONYMOUS = "anonymous"
    WEB_IDENTITY = "web identity"
    MACHINE = "machine"


@dataclass(frozen=True)
class Access:
    """The settings and credentials for a storage, with values from the environment.

    Attributes:
        settings: the settings, with the credentials if their kind is GIVEN.
        kind: the kind of the credentials.
        source: the source of the credentials, for display.
    """

    settings: StorageSettings
    kind: Kind
    source: str


def access(url: ObjectUrl, settings: StorageSettings, environ: Mapping[str, str] | None = None) -> Access:
    """Returns the settings for a URL, and the credentials that both clients use.

    Args:
        environ: the environment variables; by default this process's.

    Raises:
        InvalidSettingError: if a profile is missing or contains no keys, or requests to Azure are to be unsigned.
    """
    return _BY_SERVICE[url.service](settings, os.environ if environ is None else environ)


def _s3(settings: StorageSettings, environ: Mapping[str, str]) -> Access:
    endpoint = settings.endpoint or _first(environ, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = settings.region or _first(environ, "AWS_REGION", "AWS_DEFAULT_REGION")
    found = _s3_credentials(replace(settings, endpoint=endpoint, region=region), environ)
    assumed = "us-east-1" if endpoint else None
    return replace(found, settings=replace(found.settings, region=found.settings.region or assumed))


def _s3_credentials(settings: StorageSettings, environ: Mapping[str, str]) -> Access:
    if settings.anonymous:
        return Access(settings, Kind.ANONYMOUS, "none: requests are not signed")
    if settings.access_key_id:
        return Access(settings, Kind.GIVEN, "`storage`")
    if settings.profile:
        return _of_profile(settings, settings.profile, environ, "`storage`")
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        keys = _filled(
            settings,
            access_key_id=environ["AWS_ACCESS_KEY_ID"],
            secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
            session_token=environ.get("AWS_SESSION_TOKEN"),
        )
        return Access(keys, Kind.GIVEN, "the variable AWS_ACCESS_KEY_ID")
    if environ.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environ.get("AWS_ROLE_ARN"):
        return Access(settings, Kind.WEB_IDENTITY, "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE")
    named = environ.get("AWS_PROFILE")
    if named or "default" in _profiles(environ):
        return _of_profile(settings, named or "default", environ, "AWS_PROFILE" if named else "its name")
    return Access(settings, Kind.MACHINE, f"this machine: neither {_S3_PLACES} has credentials")


_S3_PLACES: Final = "`storage` nor the variables AWS_* nor ~/.aws"
_AWS_FILES: Final = {"AWS_SHARED_CREDENTIALS_FILE": "credentials", "AWS_CONFIG_FILE": "config"}


def _of_profile(settings: StorageSettings, name: str, environ: Mapping[str, str], why: str) -> Access:
    found = _profiles(environ).get(name)
    if found is None:
        raise InvalidSettingError(
            f"the AWS profile {name}, named by {why}, is neither in ~/.aws/credentials nor in ~/.aws/config",
            remedy="Correct its name, or give `access_key_id` and `secret_access_key`",
        )
    if "aws_access_key_id" not in found or "aws_secret_access_key" not in found:
        raise InvalidSettingError(
            f"the AWS profile {name} has no keys: Spark cannot sign in with SSO, a role or a credential process",
            remedy=f'Get temporary keys: eval "$(aws configure export-credentials --profile {name} --format env)"',
        )
    keys = _filled(
        settings,
        access_key_id=found["aws_access_key_id"],
        secret_access_key=found["aws_secret_access_key"],
        session_token=found.get("aws_session_token"),
        region=settings.region or found.get("region"),
        endpoint=settings.endpoint or found.get("endpoint_url"),
    )
    return Access(keys, Kind.GIVEN, f"the AWS profile {name}")


def _profiles(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Reads the profiles from both files; values of the first file take precedence."""
    found: dict[str, dict[str, str]] = {}
    for variable, name in _AWS_FILES.items():
        path = Path(environ.get(variable) or Path(environ.get("HOME") or "~", ".aws", name)).expanduser()
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            kind = type(error).__name__  # its message may show a line with a key
            raise InvalidSettingError(f"{path} cannot be read ({kind})", remedy="Correct the file") from None
        for section in parser.sections():
            profile = section.removeprefix("profile ").strip()
            found[profile] = {**parser[section], **found.get(profile, {})}
    return found


def _azure(settings: StorageSettings, environ: Mapping[str, str]) -> Access:
    if settings.anonymous:
        raise InvalidSettingError("Spark cannot read from Azure without credentials", remedy="Remove `anonymous`")
    if settings.account_key or settings.sas_token or settings.client_secret:
        return Access(settings, Kind.GIVEN, "`storage`")
    key = _first(environ, "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_KEY")
    sas = _first(environ, "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
    if key or sas:
        signed = _filled(settings, account_key=key, sas_token=None if key else sas)
        return Access(signed, Kind.GIVEN, f"the variable AZURE_STORAGE_{'ACCOUNT_KEY' if key else 'SAS_TOKEN'}")
    client, tenant = settings.client_id or environ.get("AZURE_CLIENT_ID"), environ.get("AZURE_TENANT_ID")
    named = _filled(settings, client_id=client, tenant_id=settings.tenant_id or tenant)
    if environ.get("AZURE_CLIENT_SECRET") and named.client_id and named.tenant_id:
        signed = _filled(named, client_secret=environ["AZURE_CLIENT_SECRET"])
        return Access(signed, Kind.GIVEN, "the variable AZURE_CLIENT_SECRET")
    if environ.get("AZURE_FEDERATED_TOKEN_FILE"):
        return Access(named, Kind.WEB_IDENTITY, "the workload identity of AZURE_FEDERATED_TOKEN_FILE")
    return Access(named, Kind.MACHINE, "this machine: neither `storage` nor the variables AZURE_* have credentials")


def _google(settings: StorageSettings, environ: Mapping[str, str]) -> Access:
    if settings.anonymous:
        return Access(settings, Kind.ANONYMOUS, "none: requests are not signed")
    if settings.service_account:
        return Access(settings, Kind.GIVEN, "`storage`")
    named = _first(environ, "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        return Access(
            _filled(settings, service_account=named), Kind.GIVEN, "the variable GOOGLE_APPLICATION_CREDENTIALS"
        )
    return Access(settings, Kind.MACHINE, "gcloud or this machine: neither `storage` nor a variable GOOGLE_* is set")


_BY_SERVICE: Final = {Service.S3: _s3, Service.AZURE: _azure, Service.GOOGLE: _google}


def _filled(settings: StorageSettings, **found: str | None) -> StorageSettings:
    return replace(settings, **found)  # type: ignore[arg-type]


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)
