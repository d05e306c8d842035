"""Answers the queries of a connection without Spark: rows as it fetches them from Spark; every doubt is Spark's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt.adapters.silt.engine.answers.data_tests import PreparedTest, prepared_test
from dbt.adapters.silt.engine.answers.quick import Prepared, Quick
from dbt.adapters.silt.engine.answers.sessions import Names, change_no_answer, known_zone
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.rows.types import uniform
from dbt.adapters.silt.engine.sql.ast import Query
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.sql.grammar.session import immediate

_UTC = ("UTC", "Etc/UTC")


@dataclass(frozen=True)
class AnswersWithoutSpark:
    """The answers for a profile whose Spark has only the settings of the profile, and no tables of its own.

    Attributes:
        catalog: the warehouse.
        database, schema: the defaults of a name without these parts.
        time_zone: the zone of sessions, or `UNKNOWN_ZONE`.
    """

    catalog: Catalog
    database: str
    schema: str
    time_zone: str

    def prepared(self, text: str) -> Prepared | PreparedTest | None:
        """Returns the query, or None if Spark has to run the statement or to report its error."""
        try:
            if immediate(text) is not None:
                return None
            quick, statement = self._quick(), parse(text)
            found = quick.prepared(statement)
            if found is not None or not isinstance(statement, Query):
                return found
            return prepared_test(quick, statement)
        except SiltError:
            return None

    def rows(self, query: Prepared | PreparedTest, most: int | None) -> pa.Table | None:
        """Returns the rows as `runs.fetch` passes them to Arrow, or None if Spark has to run the query.

        Args:
            most: the maximum number of rows to return; None for all.
        """
        try:
            answer = query.answer(most)
        except SiltError:
            return None
        rows = None if answer is None else uniform(answer.rows)
        if rows is None or any(pa.types.is_null(part) for part in _parts(rows.schema)):
            return None  # Spark passes a column without a type as text
        if not any(pa.types.is_timestamp(part) and part.tz is not None for part in _parts(rows.schema)):
            return rows
        return _local(rows) if self.time_zone in _UTC else None

    def _quick(self) -> Quick:
        return Quick(Names(self.catalog.for_statement(), self.database, self.schema), self.time_zone)


def answers_of(
    spark_conf: Mapping[str, Any], catalog: Catalog, database: str, schema: str
) -> AnswersWithoutSpark | None:
    """Returns the answers for a profile with these settings of Spark, or None if its Spark may give others.

    Args:
        database, schema: the defaults of a name without these parts.
    """
    if not change_no_answer(spark_conf):
        return None
    return AnswersWithoutSpark(catalog, database, schema, known_zone(spark_conf))


def _parts(schema: pa.Schema) -> Iterator[pa.DataType]:
    """Yields the types of the columns, and all types within them."""
    waiting = list(schema.types)
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting.extend(kind.field(at).type for at in range(kind.num_fields))


def _local(rows: pa.Table) -> pa.Table:
    """Returns the rows with each instant replaced by its local time in UTC."""
    return rows.cast(pa.schema([pa.field(field.name, _local_type(field.type)) for field in rows.schema]))


def _local_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _local_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(_local_type(kind.key_type), _local_type(kind.item_type))
    return pa.list_(pa.field("element", _local_type(kind.value_type))) if pa.types.is_list(kind) else kind
