"""Converts between a data file's path and the path that Spark takes and gives.

Spark takes plain names, in which some characters are patterns. What its `_metadata.file_path` gives is a URI, quoted as
the log's own paths are (`kernel.table.paths`).
"""

from __future__ import annotations

import re

from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, encode_path

_PATTERN_CHARACTERS = re.compile(r"([\[\]{}*?\\])")
_SCHEME_AND_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


def spark_path(root: str, log_path: str) -> str:
    """The path that `spark.read.parquet` takes for a path of the log.

    Args:
        root: the table's folder, an absolute local path or a URI.
    """
    return _PATTERN_CHARACTERS.sub(r"\\\1", absolute_name(root, log_path))


def reported_path(name: str) -> str:
    """The end of `_metadata.file_path` for a plain absolute name: all but a local file's `file:` and empty host."""
    scheme = _SCHEME_AND_HOST.match(name)
    head = scheme[0] if scheme else ""
    return head + encode_path(name[len(head) :])
