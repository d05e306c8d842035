"""Selects many columns with few calls to Spark: each call is a message to Java, and a wide table has thousands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.kernel.identifiers import quote

_MANY: Final = 100
_OWN: Final = "__silt_"
_MADE: Final = f"{_OWN}made_"


def select(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame:
    """Returns a frame with these columns in this order.

    Args:
        columns: by name, SQL text, which takes one call, or a column of functions, which has taken several. An
            unchanged column of a frame with many columns takes no call.
    """
    if len(columns) >= _MANY:
        in_place = _in_place(frame, columns)
        if in_place is not None:
            return in_place
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
    """Returns the frame with some columns replaced, by their exact names."""
    if len(columns) < _MANY:
        return frame.withColumns({name: _column(value) for name, value in columns.items()})
    return select(frame, {**{name: quote(name) for name in frame.columns}, **columns})


def _in_place(frame: DataFrame, columns: Mapping[str, str | Column]) -> DataFrame | None:
    """Changes the frame without a call for unchanged columns, or returns None if that cannot give these columns.

    `withColumns` keeps the order of the frame, and `drop` takes names: only the engine's names are certainly unique.
    """
    present = frame.columns
    gone = [name for name in present if name not in columns]
    made = {name: value for name, value in columns.items() if not _is_unchanged(name, value)}
    after = [name for name in present if name in columns] + [name for name in made if name not in present]
    is_few = len(made) < _MANY and all(name.startswith(_OWN) for name in gone)
    if not is_few or after != list(columns):
        return None
    changed = frame.withColumns({name: _column(value) for name, value in made.items()}) if made else frame
    return changed.drop(*gone)


def _is_unchanged(name: str, value: str | Column) -> bool:
    return isinstance(value, str) and (value == quote(name) or (value == name and name.startswith(_OWN)))


def _column(value: str | Column) -> Column:
    return F.expr(value) if isinstance(value, str) else value


def _named(text: str, name: str) -> str:
    quoted = quote(name)
    return text if text == quoted else f"{text} as {quoted}"
