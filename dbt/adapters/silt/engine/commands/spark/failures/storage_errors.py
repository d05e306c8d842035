"""Recognizes failures of Spark that an object store's refusal or a missing connector caused.

Hadoop's connectors raise Java's own file errors, and the services' SDKs raise the same class for all refusals; the
service's error code is in the message of one of the exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dbt.adapters.silt.engine.commands.spark.failures.causes import Cause
from dbt.adapters.silt.engine.kernel.errors import SiltError, SparkUnavailableError, StorageError, StorageRefusedError
from dbt.adapters.silt.engine.kernel.storage.refusals import named_in

_NO_CONNECTOR: Final = (
    "org.apache.hadoop.fs.UnsupportedFileSystemException",
    "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.",
)
_OF_STORES: Final = (
    "software.amazon.awssdk.",
    "software.amazon.s3.",
    "org.apache.hadoop.fs.s3a.",
    "org.apache.hadoop.fs.azurebfs.",
)
_OF_GOOGLE: Final = ("org.apache.hadoop.fs.gs.", "com.google.cloud.")
_UNANSWERED: Final = (
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "org.apache.http.conn.",
    "org.apache.hadoop.net.ConnectTimeoutException",
    "software.amazon.awssdk.core.exception.ApiCall",
    "software.amazon.s3.shaded.dev.failsafe.TimeoutExceededException",  # raised by Hadoop's input stream
)
_REFUSED: Final = re.compile(r"Status Code: 40[013]\b")


def of_object_store(found: Sequence[Cause], table: str | None, version: int | None) -> SiltError | None:
    """Returns the error for the causes of a failure, or None if no object store is involved.

    Args:
        found: the causes, the root cause last.
    """
    root = found[-1].text
    if root.startswith(_NO_CONNECTOR):
        return SparkUnavailableError(
            f"Spark has no connector for the storage ({root})",
            remedy="Set its `storage`, or a database in it, in the profile, so that dbt loads the connector; or start "
            "that Spark with the connector of its own Hadoop (hadoop-aws, hadoop-azure or hadoop-gcp)",
            table=table,
            version=version,
        )
    if not any(mark in cause.text for cause in found for mark in (*_OF_STORES, *_OF_GOOGLE)):
        return None
    said = (f"{cause.code} {cause.text}" for cause in reversed(found))
    refused = next((known for each in said if (known := named_in(each)) is not None), None)
    if refused is not None:
        meaning, remedy = refused
        problem = f"Spark failed: {meaning} ({root})"
        return StorageRefusedError(problem, remedy=remedy, table=table, version=version)
    if _REFUSED.search(root):
        # A response to HEAD has no error code.
        problem = f"Spark failed: the storage service refused the request ({root})"
        remedy = (
            "The credentials are wrong, have expired, lack a permission, or belong to another region: try `dbt debug`"
        )
        return StorageRefusedError(problem, remedy=remedy, table=table, version=version)
    if root.startswith(_UNANSWERED):
        return StorageError(
            f"Spark failed: the storage service does not answer ({root})",
            remedy="Check `endpoint` in `storage`, and the network, then run it again",
            table=table,
            version=version,
        )
    return None
