"""Writes the change data feed: the rows that a commit changes, next to the data files that it writes.

Source: the Delta specification, section "Change Data Files". Readers of a version with change files read only these
files, so a command that records any change of its commit records all changes. A commit that only adds or removes whole
files needs no change files: its changes are read from the data files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import discarded_on_error
from dbt.adapters.silt.engine.commands.spark.frames import computed_once
from dbt.adapters.silt.engine.commands.writing import files
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import FEED_COLUMNS
from dbt.adapters.silt.engine.kernel.table.actions import AddCDCFile, Metadata
from dbt.adapters.silt.engine.kernel.table.features import has_feature
from dbt.adapters.silt.engine.kernel.table.schema import CHANGE_TYPE, StructType


@dataclass(frozen=True)
class ChangeData:
    """Change files in the table's folder that are not yet committed."""

    written: Written

    @property
    def files(self) -> tuple[AddCDCFile, ...]:
        return tuple(AddCDCFile(add.path, add.partition_values, add.size, tags=add.tags) for add in self.written.adds)

    def discard(self, log: DeltaLog) -> None:
        """Deletes the files; a failure leaves them for VACUUM."""
        self.written.discard(log)


def is_recorded(snapshot: Snapshot) -> bool:
    """Returns whether the table records its changes."""
    return snapshot.properties.enable_change_data_feed and has_feature(snapshot.protocol, "changeDataFeed")


def stable(rows: DataFrame) -> DataFrame:
    """Returns the rows, computed only once, so that data files and change files contain the same rows.

    Otherwise `uuid()` or `current_timestamp()` would return another value the second time.
    """
    return computed_once(rows, eager=False)


def write(
    log: DeltaLog, metadata: Metadata, changes: Mapping[str, DataFrame], expected: Mapping[str, int]
) -> ChangeData:
    """Writes changed rows as change files; deletes the files on failure.

    Args:
        metadata: the metadata of the version to which the files will belong.
        changes: rows by change type, with the table's columns or the columns that it had before.
        expected: the number of rows of each change type, according to the data files.

    Raises:
        InternalError: if the number of rows differs from `expected`.
        As `files.write`.
    """
    schema = StructType.from_json(metadata.schema_string).add(FEED_COLUMNS.require(CHANGE_TYPE))
    marked = [rows.withColumn(CHANGE_TYPE, F.lit(change_type)) for change_type, rows in changes.items()]
    union = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), marked)
    counts = {change_type: f"count_if({CHANGE_TYPE} = '{change_type}')" for change_type in changes}
    feed = replace(metadata, schema_string=schema.to_json())
    written = files.write_change_data(union, log, feed, counts)
    found = {change_type: int(written.metrics[change_type]) for change_type in changes}
    with discarded_on_error(log, (written,)):
        if found != dict(expected):
            raise InternalError(
                f"the changes {found} were recorded instead of {dict(expected)}; nothing was committed", table=log.name
            )
    return ChangeData(written)
