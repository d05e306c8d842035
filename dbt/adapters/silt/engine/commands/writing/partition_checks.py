"""Checks that the log and the names of folders can hold the values of partition columns.

An empty string would be read as null, by this engine and by every other reader; a string that cannot be in the name of
a folder would fail the job with an error of the file system (decision 0044).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark import partitions
from dbt.adapters.silt.engine.commands.writing.checks import Check, counted
from dbt.adapters.silt.engine.commands.writing.examples import shown
from dbt.adapters.silt.engine.kernel.errors import PartitionValueError, SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.schema import StructType


def partition_checks(metadata: Metadata, table: str) -> tuple[Check, ...]:
    """Returns a check for each kind of value that a partition column cannot have; it raises a PartitionValueError."""
    schema = StructType.from_json(metadata.schema_string)
    return tuple(
        Check(is_unfit, F.col(quote(name)).cast("string"), _error(schema.require(name).name, what, table))
        for name, copy in partitions.copy_names(metadata).items()
        for what, is_unfit in partitions.unfit(schema.require(name), copy).items()
    )


def _error(name: str, what: str, table: str) -> Callable[[int, str | None], SiltError]:
    def error(count: int, example: str | None) -> SiltError:
        rows = counted(count, "have", "has")
        return PartitionValueError(
            f"{rows} {what}, in the partition column `{name}`{shown(example)}",
            remedy="Nothing was written: give such rows another value in the query, such as null, or partition by"
            " another column",
            table=table,
            details={"column": name, "rows": count},
        )

    return error
