"""The tables of the acceptance data that are not read, with the error of each, and the wrong published results.

The key is the table's name in its repository (`cases.name_of`), if nothing else is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType, primitive_types


@dataclass(frozen=True)
class Refusal:
    """An expected error.

    Args:
        error: its class.
        names: a part of its message: the feature, the file or the column.
    """

    error: type[errors.SiltError]
    names: str


def _missing(file: str) -> Refusal:
    return Refusal(errors.DataFileMissingError, file)


_CATALOG_MANAGED = Refusal(errors.UnsupportedFeatureError, "the table feature catalogManaged")
_NO_PROTOCOL = Refusal(errors.CorruptLogError, "the first commit must have protocol and metaData")

REFUSED_LOGS: Final = {
    "basic_catalog_managed": _CATALOG_MANAGED,
    "catalog-owned-preview": _CATALOG_MANAGED,
    "deltalog-invalid-protocol-version": Refusal(errors.UnsupportedFeatureError, "protocol reader version 99"),
    "table-with-geo": Refusal(errors.UnsupportedFeatureError, "the table feature geospatial"),
    "data-reader-absolute-paths-escaped-chars": _NO_PROTOCOL,
    "deltalog-state-reconstruction-without-metadata": _NO_PROTOCOL,
    "deltalog-state-reconstruction-without-protocol": _NO_PROTOCOL,
    "versions-not-contiguous": Refusal(errors.MissingLogVersionError, "00000000000000000001.json is missing"),
    "crc-malformed": Refusal(errors.NotATableError, "holds no commit"),
}
"""The logs that are not read: the table needs a missing feature, or the log is damaged."""

REFUSED_ROWS: Final = {
    # The test of delta-spark adds a prefix to the names of these files.
    "resources/delta/partitioned-table-with-dv-large": _missing("deletion_vector_0661cff2"),
    "resources/delta/table-with-dv-large": _missing("deletion_vector_44ccbf3f"),
    "resources/delta/table-with-dv-small": _missing("deletion_vector_b6a98cdd"),
    "resources/delta/table-with-dv-special-char": Refusal(errors.ExternalPathError, "FOLDER_WITH_SPECIAL_CHAR"),
    # The log has statistics of a column that the files lack.
    "parsed-stats": Refusal(errors.DataFileChangedError, "lacks `ts_col`"),
}
"""The tables whose log is read, but not their rows; by the end of their path, as two repositories use one name."""

PUBLISHED_WRONG: Final = {
    "data-reader-partition-values": "as_timestamp",
}
"""Columns whose published rows are wrong: the test of delta-kernel-rs skips these tables for that reason."""

FILES: Final = {
    "canonicalized-paths-normal-a": (1, ()),
    "canonicalized-paths-normal-b": (1, ()),
    "canonicalized-paths-special-a": (1, ()),
    "canonicalized-paths-special-b": (1, ()),
    "checkpoint": (14, ("15",)),
    "delete-re-add-same-file-different-transactions": (3, ("bar", "foo")),
    "log-replay-special-characters-b": (0, ("special p@#h",)),
}
"""The newest version of tables for tests of logs, and the names of its files, as the kernels' tests state them."""

TRANSACTIONS: Final = {
    "app-txn-checkpoint": ("my-app2", 2),
    "app-txn-no-checkpoint": ("my-app2", 2),
    "deltalog-getChanges": ("fakeAppId", 3),
}
"""A transaction identifier of tables, as the tests of the kernels state it."""


def refusal_of_rows(table: Path, snapshot: Snapshot) -> Refusal | None:
    """Returns the error of a table whose rows cannot be read: a file is missing or elsewhere, or `REFUSED_ROWS`
    names the table."""
    for end, refusal in REFUSED_ROWS.items():
        if table.as_posix().endswith(end):
            return refusal
    files = [table / decode_path(add.path) for add in snapshot.add_files()]
    if any(table not in file.parents for file in files):
        return Refusal(errors.ExternalPathError, "the log names the file")
    if any(not file.exists() for file in files):
        return _missing("is missing")
    return None


def refusal_by_arrow(schema: StructType) -> Refusal | None:
    """Returns the error of a table whose rows only Spark can represent."""
    if not schema.fields:
        return Refusal(errors.UnsupportedStatementError, "Arrow has no rows without columns")
    if any(each.name == "variant" for each in primitive_types(schema)):
        return Refusal(errors.UnsupportedFeatureError, "has the type variant, which Arrow does not have")
    return None
