"""Reads the URLs of object stores: which service they are of, their bucket, and the prefix in it.

A prefix is a plain name: what looks quoted in it (`%20`) is part of it, as Spark takes it.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError


class Service(enum.Enum):
    """Whose protocol a storage speaks; the value is what people call it."""

    S3 = "S3"
    AZURE = "Azure"
    GOOGLE = "Google Cloud Storage"


SCHEMES: Final = {
    "s3": Service.S3,
    "s3a": Service.S3,
    "abfs": Service.AZURE,
    "abfss": Service.AZURE,
    "gs": Service.GOOGLE,
}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/{1,2}(?P<rest>.*)", re.DOTALL)
_AZURE_BUCKET = re.compile(r"(?P<container>[^@/]+)@(?P<account>[^@/.]+)\.(?P<host>[^@/]+)")
_BUCKET = re.compile(r"[^@/:?#\s]+")
_USER: Final = re.compile(r"://[^/?#@]*:[^/?#]*@")
_PARAMETERS: Final = re.compile(r"\?.*", re.DOTALL)
_AS_ABFSS: Final = "Write it abfss://container@account.dfs.core.windows.net/prefix"


@dataclass(frozen=True)
class ObjectUrl:
    """A place in an object store.

    Attributes:
        scheme: of SCHEMES.
        bucket: the bucket; of Azure `container@account.host`.
        prefix: without slashes at its ends; empty for the whole bucket.
    """

    scheme: str
    bucket: str
    prefix: str

    @property
    def service(self) -> Service:
        return SCHEMES[self.scheme]

    @property
    def root(self) -> str:
        """The URL of the bucket."""
        return f"{self.scheme}://{self.bucket}"

    @property
    def account(self) -> str:
        """The storage account; empty where the service has none."""
        found = _AZURE_BUCKET.fullmatch(self.bucket)
        return found["account"] if found else ""

    @property
    def store(self) -> tuple[Service, str]:
        """What the URLs of one bucket have in common, whichever of its schemes they are written with."""
        return self.service, self.bucket

    def __str__(self) -> str:
        return f"{self.root}/{self.prefix}" if self.prefix else self.root


def is_url(location: str) -> bool:
    """Whether a text is a URL of any storage but the local file system: neither a path nor a `file:` URI."""
    found = _URL.match(location)
    return found is not None and "://" in location and found["scheme"].lower() != "file"


def shown(location: str) -> str:
    """A URL as people may see it: without what may be a password in it."""
    return _PARAMETERS.sub("?***", _USER.sub("://***@", location))


def parse_url(location: str) -> ObjectUrl:
    """Reads the URL of a place in an object store.

    Raises:
        InvalidSettingError: it is of a kind that is not supported, or no place in a bucket.
    """
    found = _URL.match(location)
    scheme = "" if found is None else found["scheme"].lower()
    if found is None or scheme not in SCHEMES:
        is_azure = scheme in ("az", "azure", "adl", "wasb", "wasbs")
        raise InvalidSettingError(
            f"`{shown(location)}` is in a storage that is not supported: {scheme or 'no scheme'}",
            remedy=_AS_ABFSS if is_azure else f"Give a folder, or a URL with {', '.join(map('{}://'.format, SCHEMES))}",
        )
    bucket, _, prefix = found["rest"].partition("/")
    if SCHEMES[scheme] is Service.AZURE:
        if not _AZURE_BUCKET.fullmatch(bucket):
            problem = f"`{shown(location)}` does not name a container and its account"
            raise InvalidSettingError(problem, remedy=_AS_ABFSS)
    elif not _BUCKET.fullmatch(bucket):
        raise InvalidSettingError(
            f"`{shown(location)}` does not name a bucket",
            remedy=f"Write it {scheme}://bucket/prefix, without credentials",
        )
    prefix = prefix.strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise InvalidSettingError(
            f"the prefix of `{shown(location)}` has an empty part, or one of dots", remedy="Correct it"
        )
    return ObjectUrl(scheme, bucket, prefix)
