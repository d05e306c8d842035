"""Selects many columns with few calls to Spark: each call is a message to Java, and a wide table has thousands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.kernel.identifiers import quote

_MANY: Final = 100
_MADE: Final = "__silt_made_"


def select(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame:
    """The columns by name, in their order.

    Args:
        columns: an SQL text takes one call; a column that functions made has taken several.
    """
    texts = {name: value for name, value in columns.items() if isinstance(value, str)}
    if len(texts) == len(columns):
        return frame.selectExpr(*(_named(text, name) for name, text in texts.items()))
    if len(texts) < _MANY:
        return frame.select(*(_column(value).alias(name) for name, value in columns.items()))
    # Spark takes columns or texts in one call, not both.
    made = {name: f"{_MADE}{position}" for position, name in enumerate(columns) if name not in texts}
    both = frame.withColumns({made[name]: value for name, value in columns.items() if isinstance(value, Column)})
    return both.selectExpr(*(_named(texts.get(name, made.get(name, name)), name) for name in columns))


def with_columns(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame:
    """The frame with some of its columns replaced, by their exact names."""
    if len(columns) < _MANY:
        return frame.withColumns({name: _column(value) for name, value in columns.items()})
    return select(frame, {**{name: quote(name) for name in frame.columns}, **columns})


def _column(value: str | Column) -> Column:
    return F.expr(value) if isinstance(value, str) else value


def _named(text: str, name: str) -> str:
    quoted = quote(name)
    return text if text == quoted else f"{text} as {quoted}"
