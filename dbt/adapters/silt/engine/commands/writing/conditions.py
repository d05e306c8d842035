"""Rejects conditions of a statement that are not boolean, before any part of the statement runs.

Spark rejects them, too, but with a plan that the author of the statement does not know. A condition that is only NULL
has no type. It is cast to boolean and so never true, as in Spark's MERGE and DELETE.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NullType

from dbt.adapters.silt.engine.commands.spark.failures.texts import without_own_names
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.sql.conditions.shape import is_surely_boolean


def checked(condition: str, what: str, rows: Callable[[], DataFrame], table: str) -> str:
    """Returns the SQL of a condition that is known to be boolean.

    Args:
        what: the condition as the subject of a sentence, such as "the condition of WHERE".
        rows: returns rows with the names that the condition may use. They are analysed, never run, and only if the SQL
            alone does not prove the type.
        table: the table of the statement.

    Raises:
        InvalidStatementError: if the condition is of another type.
    """
    if is_surely_boolean(condition):
        return condition
    # The line break ends a comment at the condition's end.
    found = rows().select(F.expr(f"({condition}\n)")).schema.fields[0].dataType
    if isinstance(found, NullType):
        return f"cast(({condition}\n) as boolean)"
    if not isinstance(found, BooleanType):
        raise InvalidStatementError(
            f"{what}, {without_own_names(condition.strip())}, is of type {found.simpleString()}, not boolean",
            remedy="Correct the condition: compare the value with another one",
            table=table,
        )
    return condition
