"""Evaluates the versions and times of tables in statements; Spark folds them without a job."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.sql.ast import TimeTravel
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace


def version_of(namespace: Namespace, log: DeltaLog, travel: TimeTravel) -> int:
    """Returns the version that `version as of` or `timestamp as of` means; a version number is not checked to exist.

    Raises:
        InvalidStatementError: if the expression is not a number, or not a time.
        VersionNotFoundError: if no version existed at that time, or the time is after the newest version.
    """
    if travel.version is not None:
        return _whole_number(constant(namespace, travel.version, "bigint"), travel.version)
    return log.version_at(moment(namespace, str(travel.timestamp)))


def moment(namespace: Namespace, expression: str) -> int:
    """Returns the value of a constant expression as a time, in milliseconds since 1970-01-01 UTC.

    Raises:
        InvalidStatementError: if it is not a time.
    """
    value = constant(namespace, f"unix_millis(cast({expression} as timestamp))", "bigint")
    return _whole_number(value, expression)


def constant(namespace: Namespace, expression: str, type_name: str) -> object:
    """Returns the value of a constant expression, cast to a type."""
    return namespace.spark.sql(f"select cast({expression} as {type_name})").collect()[0][0]


def _whole_number(value: object, text: str) -> int:
    if not isinstance(value, int):
        raise InvalidStatementError(
            f"`{text}` is not a version or a time of a table", remedy="Give a version number or a timestamp"
        )
    return value
