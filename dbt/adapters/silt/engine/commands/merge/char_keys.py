"""Pads the strings of a source that ON compares with a `char` column of the target.

Spark compares all characters of a `char` with a query's string: 'ab' would not match its stored row, 'ab  ', and a
MERGE would insert it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import char_length


def as_stored(plan: MergePlan, source: DataFrame, schema: StructType) -> MergePlan:
    """Returns the plan with the source's strings padded as the target's `char` columns store them.

    Only the keys are changed; the statement that the log records is unchanged.

    Args:
        schema: the target's schema.
    """
    lengths = {key: length for key in plan.keys if (length := char_length(schema, key.column.parts)) is not None}
    if not lengths:
        return plan
    on = plan.condition
    # From the last key to the first, so that the positions of earlier keys remain valid.
    for key in sorted(_of_texts(list(lengths), source, plan.source_alias), key=lambda each: each.start, reverse=True):
        on = on[: key.start] + _padded(key.source, lengths[key]) + on[key.start + len(key.source) :]
    return replace(plan, as_run=on)


def _of_texts(keys: Sequence[KeyEquality], source: DataFrame, alias: str) -> list[KeyEquality]:
    """Returns the keys whose source values are strings."""
    with errors.mapped():
        values = source.alias(alias).selectExpr(*(f"({key.source}\n) as k{at}" for at, key in enumerate(keys)))
        found = kernel_schema(values.schema)
    return [key for key, member in zip(keys, found, strict=True) if member.type == PrimitiveType("string")]


def _padded(text: str, length: int) -> str:
    # The line break ends a comment at the end of the expression.
    bare = f"rtrim({text}\n)"
    return f"rpad({bare}, greatest({length}, char_length({bare})), ' ')"
