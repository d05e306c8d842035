"""Gives Spark the files to read with their sizes, so that it does not ask an object store for each of them.

Of each file that Spark is given by name, it asks three times whether it is there and how large it is, before it reads a
byte; the log says both. Spark takes such a list from the log of a file sink, the folder `_spark_metadata` that a
streaming query leaves in its target: it then reads exactly the files in it, wherever they are. The list is in a folder
of this machine, which Spark's driver reads when the DataFrame is made, and never later.

A file that is not there, or is not the one of the log, fails the job that reads it.
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
"""Of the reader: no columns are taken from the names of the files' folders."""

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
        name: plain and absolute: a local path or a URL.
        size: bytes.
        modified_ms: milliseconds since 1970-01-01 UTC.
    """

    name: str
    size: int
    modified_ms: int


def can_list(spark: SparkSession, files: Sequence[ListedFile]) -> bool:
    """Whether Spark can be given these files as a list, and that saves requests.

    Its driver must be on this machine, which it is not over Spark Connect, and read such lists as Spark does by
    itself; the log must know the files' sizes.
    """
    in_object_store = any("://" in file.name for file in files)
    if not in_object_store or not isinstance(spark, SparkSession) or not all(file.size for file in files):
        return False
    return not session_settings.given(spark, _SETTINGS)


@contextmanager
def folder(files: Sequence[ListedFile]) -> Iterator[str]:
    """A folder that stands for the files while a DataFrame is made of it: its URI."""
    # Spark takes relations whose folders have one name for the same.
    with tempfile.TemporaryDirectory(prefix=f"silt-files-{uuid.uuid4().hex}-") as made:
        metadata = f"{made}/_spark_metadata"
        os.mkdir(metadata)
        # A Spark that does not take the list, but lists the folder, finds what it cannot read instead of nothing.
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
