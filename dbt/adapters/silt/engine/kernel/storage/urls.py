"""Parses the URLs of object stores: the service, the bucket, and the prefix in it.

A prefix is a plain name: text that looks quoted (`%20`) is part of the name, as in Spark.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError


class Service(enum.Enum):
    """The service whose protocol a storage uses; the value is its common name."""

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
_USER: Final = re.compile(r"://[^/?#@]*:[^/?#]*@|(?<!abfs)(?<!abfss)://[^/?#]*@")
"""The part of a URL that may contain a password; on Azure, a name without a colon is the container's."""
_PARAMETERS: Final = re.compile(r"\?.*", re.DOTALL)
_AS_ABFSS: Final = "Write it abfss://container@account.dfs.core.windows.net/prefix"


@dataclass(frozen=True)
class ObjectUrl:
    """A bucket, or a prefix in it.

    Attributes:
        scheme: a key of SCHEMES.
        bucket: the bucket; for Azure `container@account.host`.
        prefix: the prefix without slashes at its ends; empty for the whole bucket.
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
        """The storage account; empty if the service has no accounts."""
        found = _AZURE_BUCKET.fullmatch(self.bucket)
        return found["account"] if found else ""

    @property
    def store(self) -> tuple[Service, str]:
        """The service and the bucket, which are the same for all schemes of a bucket's URL."""
        return self.service, self.bucket

    def __str__(self) -> str:
        return f"{self.root}/{self.prefix}" if self.prefix else self.root


def is_url(location: str) -> bool:
    """Returns whether a location is a URL of a storage other than the local file system: not a path or `file:` URI."""
    found = _URL.match(location)
    return found is not None and "://" in location and found["scheme"].lower() != "file"


def shown(location: str) -> str:
    """Returns a URL for display, without parts that may contain a password."""
    return _PARAMETERS.sub("?***", _USER.sub("://***@", location))


def parse_url(location: str) -> ObjectUrl:
    """Parses a URL of an object store.

    Raises:
        InvalidSettingError: if its kind is not supported, or it is not a bucket or a prefix in it.
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
    if "?" in prefix:
        raise InvalidSettingError(
            f"`{shown(location)}` has parameters after `?`",
            remedy="Leave them out, and give credentials, such as a SAS token, in `storage` of the profile",
        )
    if any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise InvalidSettingError(
            f"the prefix of `{shown(location)}` has an empty part, or a part `.` or `..`", remedy="Correct the URL"
        )
    return ObjectUrl(scheme, bucket, prefix)
