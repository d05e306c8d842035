"""Refuses conditions of a statement that are not boolean, before anything of the statement runs.

Spark's own rows refuse them, too, but by a plan that the statement's author does not know. A condition that is NULL and
nothing else has no type: it is never true, as it is in Spark's MERGE and DELETE where another type gives it one.
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
    """The text of a condition, which is boolean.

    Args:
        what: the condition as the subject of a sentence, such as "the condition of WHERE".
        rows: gives rows with the names that the condition knows. They are asked for their types only, and that only if
            the text does not tell.
        table: of the statement.

    Raises:
        InvalidStatementError: it is of another type.
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
