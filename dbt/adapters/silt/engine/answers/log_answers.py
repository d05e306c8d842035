"""Answers a SELECT of `count(*)`, `min` and `max` from the log of its table, as values of Spark's types."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.silt.engine.answers.select_text import TableSelect
from dbt.adapters.silt.engine.arrow.types import arrow_type
from dbt.adapters.silt.engine.kernel.files.row_counts import row_count
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import min_max
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.expressions import Value
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.engine.statements.resolve import metadata_answers
from dbt.adapters.silt.engine.statements.resolve.metadata_answers import Aggregate, Question

_COUNT_ALL = re.compile(r"count\s*\(\s*(?:\*|1)\s*\)", re.IGNORECASE)
_LONG = PrimitiveType("long")
_ORDERED = frozenset(("byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "string"))


@dataclass(frozen=True)
class Aggregates:
    """A SELECT list whose items are all calls of aggregate functions."""

    question: Question
    names: tuple[str, ...]

    @property
    def counts_only(self) -> bool:
        """Whether each call counts all rows."""
        return all(aggregate.column is None for aggregate in self._calls)

    @property
    def _calls(self) -> list[Aggregate]:
        return [item.aggregates[0] for item in self.question.items]

    def of_log(self, snapshot: Snapshot, store: Store) -> pa.Table | None:
        """Returns the row, if the log contains all its values exactly. Raises as `settled`."""
        files = metadata_answers.settled(self.question.predicate, snapshot, store)
        if files is None:
            return None
        found = [_known(call, snapshot, files, store) for call in self._calls]
        known = [each for each in found if each is not None]
        return _row(self.names, known) if len(known) == len(found) else None

    def of_count(self, rows: int) -> pa.Table:
        """Returns the row if all calls count all rows."""
        return _row(self.names, [(_LONG, rows)] * len(self.names))


def aggregates(select: TableSelect, snapshot: Snapshot, table: Name, time_zone: str) -> Aggregates | None:
    """Returns the calls of a SELECT list, or None if it has any other item."""
    relation = Relation(snapshot.schema, table)
    found = metadata_answers.questions(select.text, {select.reference: relation}, time_zone)
    if len(found) != 1 or found[0].is_scalar or not all(item.is_one_call for item in found[0].items):
        return None
    texts = [select.text.sql[item.start : item.end] for item in found[0].items]
    is_sure = all(
        call.column is not None or _COUNT_ALL.fullmatch(text)
        for text, item in zip(texts, found[0].items, strict=True)
        for call in item.aggregates
    )
    names = tuple(tokenize(item.name)[0].identifier for item in found[0].items if item.name is not None)
    are_distinct = len({name.lower() for name in names}) == len(found[0].items)
    return Aggregates(found[0], names) if is_sure and are_distinct else None


def _known(call: Aggregate, snapshot: Snapshot, files: pa.Table, store: Store) -> tuple[DataType, Value | None] | None:
    if call.column is None:
        rows = row_count(files)
        return None if rows is None else (_LONG, rows)
    field = snapshot.schema.require(call.column, snapshot.table)
    if not isinstance(field.type, DecimalType) and getattr(field.type, "name", "") not in _ORDERED:
        return None
    end: min_max.End = "min" if call.function == "min" else "max"
    found = min_max.extreme(store, snapshot, files, field.name, end)
    return None if found is None else (field.type, found.value)


def _row(names: tuple[str, ...], values: list[tuple[DataType, Value | None]]) -> pa.Table:
    columns = [pa.array([value], arrow_type(data_type)) for data_type, value in values]
    return pa.table(columns, names=list(names))
