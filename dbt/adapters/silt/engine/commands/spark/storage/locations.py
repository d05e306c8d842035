"""Converts a data file's path to the paths that Spark accepts and reports.

Spark accepts unescaped names, but reads some of their characters as patterns. Its `_metadata.file_path` contains a URI,
escaped like the log's own paths (`kernel.table.paths`).
"""

from __future__ import annotations

import re

from dbt.adapters.silt.engine.kernel.table.paths import absolute_name, encode_path

_PATTERN_CHARACTERS = re.compile(r"([\[\]{}*?\\])")
_SCHEME_AND_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


def spark_path(root: str, log_path: str) -> str:
    """Returns the path for `spark.read.parquet` of a path in the log.

    Args:
        root: the table's folder, an absolute local path or a URI.
    """
    return _PATTERN_CHARACTERS.sub(r"\\\1", absolute_name(root, log_path))


def reported_path(name: str) -> str:
    """Returns `_metadata.file_path` of an unescaped absolute name, without a local file's `file:` and empty host."""
    scheme = _SCHEME_AND_HOST.match(name)
    head = scheme[0] if scheme else ""
    return head + encode_path(name[len(head) :])
