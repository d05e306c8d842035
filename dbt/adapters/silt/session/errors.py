"""Turns errors of the engine and of Spark into dbt's."""

from __future__ import annotations

from collections.abc import Callable

from dbt_common.exceptions import DbtDatabaseError
from pyspark.errors import PySparkException

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.errors import of_spark
from dbt.adapters.silt.engine.commands.spark.failures.texts import without_java_stack
from dbt.adapters.silt.engine.kernel.errors import FilesNotFoundError, SiltError, TableDamagedError
from dbt.adapters.silt.engine.kernel.printable import lines
from dbt.adapters.silt.engine.statements import failures


def as_dbt_error(error: Exception, catalog: Callable[[], Catalog]) -> DbtDatabaseError | None:
    """Returns the error to raise in dbt, or None if the error is neither the engine's nor Spark's.

    Args:
        catalog: returns the catalog with the table, which is needed if Spark has found the table damaged.
    """
    known = known_error(error, catalog)
    return None if known is None else DbtDatabaseError(shown(known))


def known_error(error: Exception, catalog: Callable[[], Catalog]) -> SiltError | PySparkException | None:
    """Returns the engine's error, PySpark's for a wrong call of its methods, or None; see `as_dbt_error`."""
    known = of_spark(error)
    if isinstance(known, TableDamagedError | FilesNotFoundError):
        known = failures.named(catalog(), known)
    return known if isinstance(known, SiltError | PySparkException) else None


def shown(error: SiltError | PySparkException) -> str:
    """The message of an error, for display."""
    return lines(str(error) if isinstance(error, SiltError) else without_java_stack(str(error)))
