"""Creates the error and the remedy for a failed operation of a storage, by the code of the service or the system.

obstore has no error classes for most refusals; the services' own codes are stable and documented: see
"Error responses" of Amazon S3, "Blob service error codes" of Azure, and "Error responses" of Google's XML API.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel import errors

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_REGION: Final = re.compile(r"<Region>([\w-]+)</Region>")
_WORD: Final = re.compile(r"\w+")
_ADDRESS: Final = re.compile(r"https?://[^/\s?]+")
_QUERY: Final = re.compile(r"\?[^\s)\"]*")
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED: Final = (errno.EROFS, errno.EACCES, errno.EPERM)


@dataclass(frozen=True)
class _Refusal:
    """The meaning of error codes.

    Attributes:
        said: the problem.
        remedy: the remedy.
        is_right: whether a permission is missing; if a write is refused, reads may still be permitted.
    """

    codes: tuple[str, ...]
    said: str
    remedy: str
    is_right: bool = False


_REFUSALS: Final = (
    _Refusal(
        ("NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "FilesystemNotFound"),
        "the bucket does not exist",
        "Correct the URL in the profile, or create the bucket",
    ),
    _Refusal(
        ("InvalidAccessKeyId", "XAdminUserNotFound", "AccountNotFound"),
        "the service does not know the access key",
        "Correct `access_key_id` in `storage`, or the credentials of the environment",
    ),
    _Refusal(
        ("SignatureDoesNotMatch", "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation"),
        "the service does not accept the signature",
        "Correct `secret_access_key`, `account_key` or `sas_token` in `storage` or the environment, or get new ones",
    ),
    _Refusal(
        ("ExpiredToken", "TokenRefreshRequired", "RequestExpired", "InvalidToken"),
        "the credentials have expired, or their token is invalid",
        "Get new credentials, then run it again: a rerun with the same run id skips committed work",
    ),
    _Refusal(
        (
            *("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"),
            *("TemporaryRedirect", "InvalidRegionName"),
        ),
        "the bucket is in another region",
        "Set `region` in `storage` to the bucket's region",
    ),
    _Refusal(
        ("RequestTimeTooSkewed", "RequestTimeTooSkewedError"),
        "the clock of this machine differs from the service's by more than it allows",
        "Correct the clock of this machine",
    ),
    _Refusal(
        ("NotImplemented", "UnsupportedHeader", "ConditionHeadersNotSupported", "HTTP 501"),
        "the service does not support conditional writes, which commits need",
        "Use a storage that supports `If-None-Match` and `If-Match`; if the server is your own, update it",
    ),
    _Refusal(
        (
            *("AccessDenied", "AuthorizationFailure", "AuthorizationPermissionMismatch", "AllAccessDisabled"),
            *("InsufficientAccountPermissions", "AccountProblem", "UnauthorizedAccess"),
        ),
        "the credentials lack a permission",
        "Grant them permission to list, read, write and delete there",
        is_right=True,
    ),
    # Answers without a code, as some services send.
    _Refusal(
        ("HTTP 403",),
        "the credentials are wrong or have expired, or lack a permission",
        "Correct them, or grant them permission to list, read, write and delete there; `dbt debug` checks them",
        is_right=True,
    ),
    _Refusal(
        ("HTTP 400", "HTTP 401"),
        "the credentials are wrong or have expired, or the bucket is in another region",
        "Correct `storage` in the profile, or the credentials of the environment; `dbt debug` checks them",
    ),
)


_BY_CODE: Final[Mapping[str, _Refusal]] = {code: each for each in _REFUSALS for code in each.codes}


def refusal(error: Exception, doing: str, name: str, is_write: bool) -> errors.StorageError | None:
    """Returns the error for a definite refusal of a service, or None if it is not a refusal or its reason is unknown.

    Args:
        error: obstore's error.
        doing: the operation, such as "writing".
        name: the name of the object, for the message.
        is_write: whether it was a write that was sent once.
    """
    text = str(error)
    found = _CODE.search(text)
    status = _STATUS.search(text)
    code = found[1] if found else f"HTTP {status[1]}" if status else ""
    known = _BY_CODE.get(code)
    if known is None:
        return None
    kind: type[errors.StorageError] = errors.NotWrittenError if is_write else errors.StorageRefusedError
    if known.is_right and is_write:
        kind = errors.ReadOnlyStorageError
    region = _REGION.search(text)
    where = f", {region[1]}" if region and "region" in known.said else ""
    return kind(
        f"{doing} {name} was refused: {known.said}{where} ({code})", remedy=known.remedy, details={"code": code}
    )


def named_in(text: str) -> tuple[str, str] | None:
    """Returns the problem and the remedy of the first known code in a message, or None if it contains no known code."""
    known = next((_BY_CODE[word] for word in _WORD.findall(text) if word in _BY_CODE), None)
    return None if known is None else (known.said, known.remedy)


def no_answer(error: Exception, doing: str, name: str) -> errors.StorageError | None:
    """Returns the error for a service that did not answer, or None if it answered."""
    text = first_line(error)
    _, unanswered, reason = text.rpartition(" - HTTP error: ")
    if not unanswered:
        return None
    address = _ADDRESS.search(text)
    where = f" at {address[0]}" if address else ""
    return errors.StorageError(
        f"{doing} {name} failed: the service{where} does not answer ({reason})",
        remedy="Check `endpoint` in `storage`, including http or https, and the network, then run it again",
    )


def first_line(error: Exception) -> str:
    """Returns the first line of obstore's message without the parameters of URLs, which include Azure's signature."""
    return _QUERY.sub("?...", str(error).partition("\n")[0])


def is_signed(error: Exception) -> bool:
    """Returns whether the error's message contains a signature, so that it must not be shown."""
    return "sig=" in str(error)


def failure(problem: str, error: OSError, is_write: bool) -> errors.StorageError:
    """Returns the error for an operation; a NotWrittenError if the number means that a write was refused.

    Args:
        problem: the operation that failed, without the reason.
    """
    text = f"{problem} failed: {error.strerror or error}"
    if not is_write:
        remedy = "Give the user of this process permission to read it" if error.errno in _NOT_ALLOWED else None
        return errors.StorageError(text, remedy=remedy)
    return refused_write(text, error) or errors.StorageError(text)


def is_denied(error: errors.SiltError) -> bool:
    """Returns whether this user may not read a file: other files can still be read."""
    return isinstance(error.__cause__, PermissionError)


def refused_write(text: str, error: OSError) -> errors.NotWrittenError | None:
    """Returns the error for a refused write, or None if the write may have taken place."""
    if error.errno in _NO_SPACE:
        return errors.NoSpaceError(text)
    return errors.ReadOnlyStorageError(text) if error.errno in _NOT_ALLOWED else None
