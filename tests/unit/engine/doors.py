"""The ways to query a warehouse: each returns the ids of a table's rows for which a condition, given
as text, is true.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.answers.quick import Quick
from dbt.adapters.silt.engine.answers.sessions import Names
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from tests.unit.engine.datasource.tables import Tables
from tests.unit.engine.house import House


def by_sql(house: House, table: str, texts: Sequence[str]) -> list[list[int]]:
    """Returns the ids for each condition, by one statement."""
    parts = (f"select {at} as at, id from {table} where {text}" for at, text in enumerate(texts))
    found = house.sql(" union all ".join(parts)).collect()
    return [sorted(row.id for row in found if row.at == at) for at in range(len(texts))]


def by_shell(house: House, table: str, text: str) -> list[int] | None:
    """Returns the ids; None if the shell passes the query to Spark."""
    answer = shell(house, f"select id from main.{table} where {text}")
    return None if answer is None else sorted(answer["id"].to_pylist())


def shell(house: House, query: str) -> pa.Table | None:
    """Returns the shell's answer without Spark; None if it passes the query to Spark."""
    quick = Quick(Names(house.warehouse.catalog, "silt", "main"), "UTC")
    answer = quick.answer(parse(query))
    return None if answer is None else answer.rows


def by_arrow(house: House, table: str, text: str) -> list[int] | None:
    """Returns the ids; None if the condition is refused because only Spark can evaluate it."""
    try:
        found = read(house, table, columns=["id"], where=text)
    except UnsupportedStatementError:
        return None
    return sorted(found["id"].to_pylist())


def read(house: House, table: str, **options: Any) -> pa.Table:
    """Returns the rows that `silt.read` reads."""
    storage: dict[str, Any] = {} if house.place.cloud is None else {"storage": house.place.cloud.settings}
    return silt.read(f"main.{table}", house.place.location, **options, **storage)


def by_data_source(house: House, table: str, texts: Sequence[str]) -> list[list[int]]:
    frames = [Tables(house).read(table).where(text).selectExpr(f"{at} as at", "id") for at, text in enumerate(texts)]
    found = functools.reduce(DataFrame.unionAll, frames).collect()
    return [sorted(row.id for row in found if row.at == at) for at in range(len(texts))]
