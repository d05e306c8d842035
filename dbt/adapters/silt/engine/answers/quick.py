"""Answers queries without Spark, from a table's log or files, if Spark's answer would certainly be the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from dbt.adapters.silt.engine.answers.select_text import ListedColumn, TableSelect, literal_select, table_select
from dbt.adapters.silt.engine.answers.sessions import Names
from dbt.adapters.silt.engine.arrow.read import TableRead
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.near_names import near_names, some_of
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.rows.types import arrow_type
from dbt.adapters.silt.engine.kernel.scan import min_max
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression, Value, columns
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType, PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import Name, Query, Statement
from dbt.adapters.silt.engine.sql.conditions.exact import exact_predicate
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation, qualified_by
from dbt.adapters.silt.engine.sql.query.references import scanned
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


def _aggregates(select: TableSelect, snapshot: Snapshot, table: Name, time_zone: str) -> Aggregates | None:
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


MOST_BYTES = 256 * 1024 * 1024
"""More bytes of files are left to Spark to read, unless a limit ends the reading early."""


class Source(Enum):
    """The source of an answer."""

    LOG = "the log"
    QUERY = "the query itself"
    FILES = "the files, by Arrow"
    SPARK = "Spark"


@dataclass(frozen=True)
class QuickAnswer:
    """The rows of a query.

    Attributes:
        rows: in no order.
        source: the log, the files, or the query if it has no table.
    """

    rows: pa.Table
    source: Source


@dataclass(frozen=True)
class Quick:
    """Answers the queries of a session whose settings certainly do not change their results.

    Attributes:
        time_zone: the zone of literals without a zone; an invalid zone if it is unknown.
    """

    names: Names
    time_zone: str

    def answer(self, statement: Statement, most: int | None = None) -> QuickAnswer | None:
        """Returns the rows of a query, or None if Spark has to run it.

        Args:
            most: the maximum number of rows to return; by default all.

        Raises:
            RelationNotFoundError, ColumnNotFoundError: if Spark would not find it, either.
            TableDamagedError, StorageError: if a table cannot be read.
        """
        literals = literal_select(scanned(statement.text)) if isinstance(statement, Query) else None
        if literals is not None:
            types = {name: pa.int32() if isinstance(value, int) else pa.string() for name, value in literals.items()}
            row = pa.table({name: pa.array([value], types[name]) for name, value in literals.items()})
            return QuickAnswer(row.slice(0, most), Source.QUERY)
        prepared = self.prepared(statement)
        try:
            return None if prepared is None else prepared.answer(most)
        except errors.UnsupportedFeatureError:
            return None

    def prepared(self, statement: Statement) -> Prepared | None:
        """Returns the prepared query; returns None and raises errors in the same cases as `answer`."""
        select = table_select(scanned(statement.text)) if isinstance(statement, Query) else None
        log = None if select is None else self.names.find(select.reference.parts)
        if select is None or not isinstance(log, DeltaLog):
            return None
        snapshot = log.snapshot() if select.version is None else log.snapshot_at(select.version)
        try:
            return self._prepared(select, log, snapshot)
        except (errors.UnsupportedStatementError, errors.UnsupportedFeatureError):
            return None
        except errors.ColumnNotFoundError as error:
            if _may_be_sparks(error):
                return None
            raise

    def _prepared(self, select: TableSelect, log: DeltaLog, snapshot: Snapshot) -> Prepared | None:
        table = tuple(log.name.split("."))
        qualifier = (select.reference.alias,) if select.reference.alias else table
        if select.columns is None:
            calls = _aggregates(select, snapshot, table, self.time_zone)
            if calls is None:
                return None
            return Prepared(log, snapshot, calls=calls, predicate=self._predicate(select, snapshot, qualifier, calls))
        predicate = self._predicate(select, snapshot, qualifier)
        columns = _columns(select.columns, snapshot, qualifier)
        if predicate is None or columns is None:
            return None
        return Prepared(log, snapshot, predicate=predicate, columns=columns, limit=select.limit)

    def _predicate(
        self, select: TableSelect, snapshot: Snapshot, qualifier: Name, calls: Aggregates | None = None
    ) -> Expression | None:
        """Returns the condition, or None if Arrow cannot test rows by it but the log may still answer the calls."""
        if select.where is None:
            return TRUE
        try:
            return exact_predicate(select.where, snapshot.schema, [qualifier], self.time_zone)
        except errors.UnsupportedStatementError:
            if calls is None:
                raise
            return None


@dataclass(frozen=True)
class Prepared:
    """A query, and the table, the condition and the columns that answer it.

    Attributes:
        predicate: the condition of the rows that are read, if Arrow can test it.
        columns: the table's column for each column of the result; empty for calls.
        calls: the counts and extremes that are requested.
    """

    log: DeltaLog
    snapshot: Snapshot
    predicate: Expression | None
    columns: tuple[ListedColumn, ...] = ()
    limit: int | None = None
    calls: Aggregates | None = None

    @property
    def tables(self) -> dict[DeltaLog, Snapshot]:
        """The tables that it reads."""
        return {self.log: self.snapshot}

    def source(self) -> Source | None:
        """Returns the source of the rows, unless Spark has to run the query. Reads only the log."""
        if self._of_log() is not None:
            return Source.LOG
        return None if self._scan(self.limit) is None else Source.FILES

    def answer(self, most: int | None = None) -> QuickAnswer | None:
        """Returns as many rows as are needed, unless Spark has to run the query."""
        known = self._of_log()
        if known is not None:
            return QuickAnswer(known, Source.LOG)
        ends = [number for number in (self.limit, most) if number is not None]
        limit = min(ends) if ends else None
        scan = self._scan(limit)
        if scan is None:
            return None
        read = TableRead(self.log, self.snapshot, scan)
        if self.calls is not None:
            return QuickAnswer(self.calls.of_count(sum(batch.num_rows for batch in read.batches())), Source.FILES)
        found = read.whole() if limit is None else read.head(limit)
        rows = found.select([column.path[0] for column in self.columns])
        return QuickAnswer(rows.rename_columns([column.name for column in self.columns]), Source.FILES)

    def _of_log(self) -> pa.Table | None:
        return None if self.calls is None else self.calls.of_log(self.snapshot, self.log.store)

    def _scan(self, limit: int | None) -> ArrowScan | None:
        """Returns the scan for Arrow, if Arrow can test the rows, and would not read too many bytes."""
        if self.predicate is None or (self.calls is not None and not self.calls.counts_only):
            return None
        named = [column.path[0] for column in self.columns] or [_narrow(self.snapshot, self.predicate)]
        scan = ArrowScan.of(self.snapshot, list(dict.fromkeys(named)), self.predicate)
        ends_early = limit is not None and self.calls is None and self.predicate == TRUE
        return scan if ends_early or sum(file.size for file in scan.files) <= MOST_BYTES else None


def _narrow(snapshot: Snapshot, predicate: Expression) -> str:
    """Returns a column by which rows are counted: a column that the predicate reads anyway."""
    named = next(columns(predicate), None)
    return snapshot.schema.names[0] if named is None else named.parts[0]


def _columns(listed: tuple[ListedColumn, ...], snapshot: Snapshot, qualifier: Name) -> tuple[ListedColumn, ...] | None:
    """Returns the columns by the table's own names, or None if Spark may resolve them differently.

    Raises:
        ColumnNotFoundError: if a column does not exist.
    """
    schema = snapshot.schema
    resolve = qualified_by(schema, [qualifier])
    found = []
    for column in listed or [ListedColumn((name,), name) for name in schema.names]:
        path = resolve(column.path)
        if path is None and (len(column.path) > 1 or _is_alias(column, listed)):
            return None
        if path is None:
            raise _no_column(column.path[0], snapshot)
        field = schema.require(path[0], snapshot.table)
        if len(path) != 1 or not is_plain(field):
            return None
        found.append(ListedColumn((field.name,), column.name))
    has_twins = len({column.name.lower() for column in found}) < len(found)
    return None if has_twins else tuple(found)


def _is_alias(column: ListedColumn, listed: tuple[ListedColumn, ...]) -> bool:
    """Returns whether the name may refer to another item of the list, which has it as its alias."""
    return column.path[0].lower() in {each.name.lower() for each in listed if each is not column}


def is_plain(field: StructField) -> bool:
    """Returns whether Spark reads its strings unchanged: strings of a fixed length are padded with blanks."""
    text = StructType((field,)).to_json()
    return collations.KEY not in text and "char(" not in text.replace("varchar(", "")


def _no_column(name: str, snapshot: Snapshot) -> errors.ColumnNotFoundError:
    names = snapshot.schema.names
    remedy = f"Check its name; the columns are: {some_of(dict.fromkeys([*near_names(name, names), *names]))}"
    return errors.ColumnNotFoundError(f"the column `{name}` does not exist", remedy=remedy, table=snapshot.table)


def _may_be_sparks(error: errors.ColumnNotFoundError) -> bool:
    """Returns whether the name may be a function that is called without parentheses, or a column that Spark adds."""
    name = error.problem.partition("`")[2].partition("`")[0].upper()
    return name.startswith(("_", "CURRENT_", "LOCAL", "SESSION_"))
