"""Passes the files to read to Spark with their sizes, so that it sends no requests for them to an object store.

For each file that Spark gets by name, it requests existence and size three times before it reads a byte; the log
contains both. Spark accepts such a list in the form of a file sink's log, the folder `_spark_metadata` that a streaming
query writes into its target: it then reads exactly the listed files, whatever their folders. The list is in a folder of
this machine, which Spark's driver reads when the DataFrame is created, and never later.

If a file is missing or differs from the log, the job that reads it fails.
Source: Spark's `FileStreamSinkLog` and `MetadataLogFileIndex`.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.table.paths import encode_path

OPTIONS: Final = {"recursiveFileLookup": "true"}
"""The reader's options: Spark must not derive columns from the names of the files' folders."""

_SETTINGS: Final = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.fileStreamSink.ignoreMetadata",
)
_BLOCK: Final = 32 << 20
_NO_FILE: Final = "part-0"


@dataclass(frozen=True)
class ListedFile:
    """A file as the log describes it.

    Args:
        name: the absolute local path or URL, unescaped.
        size: the size in bytes.
        modified_ms: the time of modification, in milliseconds since 1970-01-01 UTC.
    """

    name: str
    size: int
    modified_ms: int


def can_list(spark: SparkSession, files: Sequence[ListedFile]) -> bool:
    """Returns whether Spark can read these files from a list, and the list saves requests.

    A list saves requests only in an object store. Spark's driver must be on this machine, so not over Spark Connect,
    with the default settings of such lists; the log must contain the files' sizes.
    """
    in_object_store = any("://" in file.name for file in files)
    if not in_object_store or not isinstance(spark, SparkSession) or not all(file.size for file in files):
        return False
    return not session_settings.given(spark, _SETTINGS)


@contextmanager
def folder(files: Sequence[ListedFile]) -> Iterator[str]:
    """Creates a folder with the list of the files, yields its URI, and deletes the folder at the end."""
    # Spark treats relations whose folders have the same name as the same relation.
    with tempfile.TemporaryDirectory(prefix=f"silt-files-{uuid.uuid4().hex}-") as made:
        metadata = f"{made}/_spark_metadata"
        os.mkdir(metadata)
        # If Spark ignores the list and lists the folder, it fails on an unreadable file instead of finding no rows.
        with open(f"{made}/{_NO_FILE}", "w", encoding="utf-8") as file:
            file.write("not a data file: read the list in _spark_metadata")
        with open(f"{metadata}/0", "w", encoding="utf-8") as file:
            file.write("\n".join(["v1", *(json.dumps(_entry(each)) for each in files)]))
        yield f"file://{made}"


def _entry(file: ListedFile) -> dict[str, object]:
    return {
        "path": _uri(file.name),
        "size": file.size,
        "isDir": False,
        "modificationTime": file.modified_ms,
        "blockReplication": 1,
        "blockSize": _BLOCK,
        "action": "add",
    }


def _uri(name: str) -> str:
    scheme, separator, rest = name.partition("://")
    if not separator:
        return f"file://{encode_path(name)}"
    bucket, slash, key = rest.partition("/")
    return f"{scheme}://{bucket}{slash}{encode_path(key)}"
