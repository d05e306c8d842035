"""A refusal of an object store to Spark is reported like a refusal to the log's client."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.spark.errors import of_object_store
from dbt.adapters.silt.engine.commands.spark.failures.causes import Cause
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError, StorageError, StorageRefusedError

S3 = "software.amazon.awssdk.services.s3.model."
DENIED = "java.nio.file.AccessDeniedException: s3a://b/t: open s3a://b/t: " + S3
ABFS = "org.apache.hadoop.fs.azurebfs.contracts.exceptions.AbfsRestOperationException: Operation failed: "


def chain(*texts: str) -> list[Cause]:
    return [Cause(text, text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "kind", "said"),
    [
        (
            (DENIED + "S3Exception: expired:ExpiredToken", f"{S3}S3Exception: no (Service: S3, Status Code: 400)"),
            StorageRefusedError,
            "credentials have expired.*a rerun with the same run id skips committed work",
        ),
        (
            (DENIED + "S3Exception: no:SignatureDoesNotMatch", f"{S3}S3Exception: no (Service: S3, Status Code: 403)"),
            StorageRefusedError,
            "does not accept the signature",
        ),
        ((f"{S3}S3Exception: Forbidden (Service: S3, Status Code: 403, x",), StorageRefusedError, "try `dbt debug`"),
        (
            (ABFS + '"This request is not allowed", 403, PUT, AuthorizationFailure, rId: 1',),
            StorageRefusedError,
            "lack",
        ),
        (
            ("org.apache.hadoop.fs.s3a.AWSClientIOException: x", "java.net.ConnectException: Connection refused"),
            StorageError,
            "does not answer .*Check `endpoint`",
        ),
        (("software.amazon.s3.shaded.dev.failsafe.TimeoutExceededException",), StorageError, "does not answer"),
        (
            ('org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"',),
            SparkUnavailableError,
            "no connector.*hadoop-aws",
        ),
    ],
)
def test_a_refusal_is_reported_with_its_remedy(texts: tuple[str, ...], kind: type[Exception], said: str) -> None:
    found = of_object_store(chain("org.apache.spark.SparkException: Job aborted", *texts), "main.t", 3)
    assert type(found) is kind
    with pytest.raises(kind, match=rf"main\.t@v3: .*{said}"):
        raise found


@pytest.mark.parametrize(
    "texts",
    [
        ("java.nio.file.AccessDeniedException: /data/t",),
        ("java.io.FileNotFoundException: No such file or directory: s3a://b/AccessDenied",),
        ("org.apache.spark.SparkException: AccessDenied (Status Code: 403)",),
    ],
)
def test_a_failure_of_a_folder_or_of_spark_is_not_mistaken_for_a_refusal(texts: tuple[str, ...]) -> None:
    assert of_object_store(chain(*texts), None, None) is None


def test_a_refusal_without_an_error_code_is_recognised_by_its_status_code() -> None:
    text = f"{S3}S3Exception: no (Service: S3, Status Code: 403)"
    found = of_object_store([Cause(text, text, code="ExpiredToken")], None, None)
    assert isinstance(found, StorageRefusedError) and "the credentials have expired" in str(found)
