"""Answers SELECTs of `count(*)`, `min` and `max` of columns from the log of their table, without a scan.

Such a SELECT reads a single table, whole or under a condition that partition values and statistics decide for every
file; each item of its list consists of these aggregates, literals and a few functions of them. It becomes a SELECT of
literals, and a scalar subquery becomes its literal, so that a condition around it rules out files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files.file_guard import check_places
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import min_max, skipping
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table import expressions
from dbt.adapters.silt.engine.kernel.table.schema import DataType, DecimalType
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation, compares_otherwise, predicate, qualified_by
from dbt.adapters.silt.engine.sql.query.references import ScannedText
from dbt.adapters.silt.engine.sql.query.scans import Block, Reference
from dbt.adapters.silt.engine.sql.query.selects import Item, Select, read_select
from dbt.adapters.silt.engine.sql.spans import Edit, Tokens, after_group
from dbt.adapters.silt.engine.sql.tokens import Kind

Function: TypeAlias = Literal["count", "min", "max"]


@dataclass(frozen=True)
class Aggregate:
    """A call on `column`, or on all rows if it is None. Its span of the text is `start` up to `end`."""

    function: Function
    column: str | None
    start: int
    end: int


@dataclass(frozen=True)
class ListItem:
    """An item of a SELECT list: its text without its alias, its name, and its calls.

    Attributes:
        name: the name as SQL; None if Spark names it by its text.
    """

    start: int
    end: int
    name: str | None
    aggregates: tuple[Aggregate, ...]

    @property
    def is_one_call(self) -> bool:
        """Whether the item is only a call."""
        only = self.aggregates[0]
        return (only.start, only.end) == (self.start, self.end)


@dataclass(frozen=True)
class Question:
    """A SELECT that may be answered.

    Attributes:
        reference: its table.
        predicate: predicate on the table's rows that its WHERE implies.
        is_scalar: whether it is a subquery used as a value; it then has a single item.
        start, end: its span of the text.
    """

    reference: Reference
    predicate: expressions.Expression
    items: tuple[ListItem, ...]
    is_scalar: bool
    start: int
    end: int


@dataclass(frozen=True)
class Answer:
    """The replacement of the question's text, and the condition of the table's rows that it rests on.

    For a scalar subquery, `sql` is an expression of literals.
    """

    question: Question
    sql: str
    read: expressions.Expression


def questions(text: ScannedText, relations: Mapping[Reference, Relation], time_zone: str) -> tuple[Question, ...]:
    """Returns the SELECTs of a query, or of an expression's subqueries, that the log may answer.

    Args:
        relations: tables with known columns, by reference.
        time_zone: time zone of the session.
    """
    if not any(token.word in _FUNCTIONS for token in text.tokens):
        return ()
    found = (_question(text.tokens, block, relations, time_zone) for block in text.scan.blocks)
    return tuple(question for question in found if question is not None)


def answer(question: Question, text: str, snapshot: Snapshot, store: Store) -> Answer | None:
    """Returns the answer of a snapshot's log, if the log contains it. Raises as `settled`."""
    files = settled(question.predicate, snapshot, store)
    if files is None:
        return None
    items, reads = [], []
    for item in question.items:
        sql = text[item.start : item.end]
        for aggregate in reversed(item.aggregates):
            known = _known(aggregate, snapshot, files, store)
            if known is None:
                return None
            value, read = known
            reads.append(read)
            sql = sql[: aggregate.start - item.start] + value + sql[aggregate.end - item.start :]
        items.append((sql, item.name))
    return Answer(question, _rendered(question, items), _read(question.predicate, reads))


def edits(answers: Sequence[Answer]) -> list[Edit]:
    """Returns the edits that replace the answered parts by literals."""
    return [Edit(each.question.start, each.question.end, each.sql) for each in answers]


def literal(value: expressions.Value | None, data_type: DataType) -> str | None:
    """Returns the value as SQL that has the type in every session, if such SQL exists."""
    name = f"decimal({data_type.precision}, {data_type.scale})" if isinstance(data_type, DecimalType) else None
    name = name or _SQL_TYPES.get(getattr(data_type, "name", ""))
    if name is None:
        return None
    if value is None:
        return f"cast(null as {name})"
    if isinstance(value, datetime):
        zone = "" if value.tzinfo is None else "Z"
        return f"{name} '{value.replace(tzinfo=None).isoformat(timespec='microseconds')}{zone}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, str):
        return _string(value)
    suffix = _SUFFIXES.get(getattr(data_type, "name", ""))
    # Without its sign, the least value of a type is too large for the type.
    if suffix is not None and isinstance(value, int) and -value in _INT:
        return f"{value}{suffix}"
    return f"cast({Decimal(value):f} as {name})" if isinstance(value, int | Decimal) else None


_FUNCTIONS = frozenset(("COUNT", "MIN", "MAX"))
# Functions that are deterministic if all their arguments are literals.
_PLAIN_FUNCTIONS = frozenset(
    "COALESCE NVL IFNULL CAST DATE TIMESTAMP TO_DATE TO_TIMESTAMP DATE_ADD DATE_SUB DATEADD ADD_MONTHS DATE_TRUNC "
    "TRUNC GREATEST LEAST ABS STRING INT BIGINT".split()
)
_PLAIN_WORDS = frozenset(
    "AS INTERVAL SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS MONTH MONTHS YEAR YEARS DATE TIMESTAMP "
    "TIMESTAMP_NTZ NULL TRUE FALSE STRING INT INTEGER BIGINT LONG SMALLINT TINYINT DECIMAL DOUBLE".split()
)
# No relation can stand between such a word or symbol and an opening parenthesis.
_BEFORE_A_VALUE = frozenset("= == <=> <> != < <= > >= + - * / BETWEEN AND OR WHERE ON WHEN THEN ELSE NOT".split())


def _question(tokens: Tokens, block: Block, relations: Mapping[Reference, Relation], time_zone: str) -> Question | None:
    if tokens[block.first].word != "SELECT":
        return None
    select = read_select(tokens, block)
    item = None if select is None else _only_item(select, _limit_keeps_a_row(tokens, block))
    relation = None if item is None or item.reference is None else relations.get(item.reference)
    if select is None or item is None or item.reference is None or relation is None:
        return None
    names = ((item.reference.alias,),) if item.reference.alias else (relation.name or item.reference.parts,)
    resolve = qualified_by(relation.schema, names)
    where = expressions.TRUE if select.where is None else predicate(select.where, relation.schema, resolve, time_zone)
    is_scalar = _is_scalar(tokens, block)
    try:
        reader = _ListReader(tokens, relation, names, is_scalar)
        items = tuple(reader.read(block.first + 1, select.list_after))
    except _NotOfTheKind:
        return None
    if is_scalar and len(items) != 1:
        return None
    start, end = tokens[block.first].start, tokens[block.after - 1].end
    return Question(item.reference, where, items, is_scalar, start, end)


def _only_item(select: Select, may_have_limit: bool) -> Item | None:
    """Returns the only relation, if the SELECT has no clause but FROM, a condition, and perhaps a limit."""
    allowed = {"WHERE", "LIMIT"} if may_have_limit else {"WHERE"}
    if len(select.items) != 1 or select.clauses - allowed:
        return None
    return select.items[0] if select.items[0].is_plain else None


def _limit_keeps_a_row(tokens: Tokens, block: Block) -> bool:
    """Returns whether the SELECT is the whole text and ends with a limit above 0, which the limit of a UNION is not."""
    (last, after) = block.spans[-1]
    limit = tokens[last.first : after]
    is_whole = (block.first, block.after) == (0, len(tokens) - 1)
    return (
        is_whole
        and last.keyword == "LIMIT"
        and len(limit) == 1
        and limit[0].text.isdecimal()
        and int(limit[0].text) > 0
    )


def _is_scalar(tokens: Tokens, block: Block) -> bool:
    before = block.first - 1
    if before < 1 or tokens[before].word != "(" or tokens[block.after].word != ")":
        return False
    return tokens[before - 1].word in _BEFORE_A_VALUE


class _NotOfTheKind(Exception):
    """The list contains an item that literals cannot replace."""


@dataclass(frozen=True)
class _ListReader:
    tokens: Tokens
    relation: Relation
    names: tuple[tuple[str, ...], ...]
    is_scalar: bool

    def read(self, first: int, after: int) -> Iterator[ListItem]:
        end = first - 1
        while end < after:
            first, end = end + 1, self._end_of_item(end + 1, after)
            yield self._item(first, end)  # an item is missing after a comma at the end

    def _end_of_item(self, at: int, after: int) -> int:
        while at < after and self.tokens[at].word != ",":
            at = after_group(self.tokens, at) if self.tokens[at].word == "(" else at + 1
        return at

    def _item(self, first: int, after: int) -> ListItem:
        end, name = self._name(first, after)
        aggregates = tuple(self._aggregates(first, end))
        if not aggregates:
            raise _NotOfTheKind
        if name is None and not self.is_scalar:
            name = self._own_name(first, end, aggregates)
        return ListItem(self.tokens[first].start, self.tokens[end - 1].end, name, aggregates)

    def _name(self, first: int, after: int) -> tuple[int, str | None]:
        """Returns the end of the item's expression, and its alias."""
        last = self.tokens[after - 1]
        if after - first >= 3 and last.is_identifier and self.tokens[after - 2].word == "AS":
            return after - 2, last.text
        is_bare = last.is_identifier and self.tokens[after - 2].word == ")" and last.word not in _PLAIN_WORDS
        return (after - 1, last.text) if after - first >= 2 and is_bare else (after, None)

    def _own_name(self, first: int, after: int, aggregates: tuple[Aggregate, ...]) -> str:
        """Returns Spark's name for an item that is only a call."""
        (only, *others) = aggregates
        if others or (only.start, only.end) != (self.tokens[first].start, self.tokens[after - 1].end):
            raise _NotOfTheKind
        argument = "1" if only.column is None else self.tokens[after - 2].identifier
        return quote(f"{only.function}({argument})")

    def _aggregates(self, at: int, after: int) -> Iterator[Aggregate]:
        while at < after:
            token, following = self.tokens[at], self.tokens[at + 1].word
            if token.word in _FUNCTIONS and following == "(":
                closed = after_group(self.tokens, at + 1)
                yield self._aggregate(at, closed)
                at = closed
                continue
            known = _PLAIN_FUNCTIONS if following == "(" else _PLAIN_WORDS
            if token.kind in (Kind.QUOTED, Kind.HINT) or (token.kind is Kind.WORD and token.word not in known):
                raise _NotOfTheKind
            at += 1

    def _aggregate(self, at: int, after: int) -> Aggregate:
        function, inside = self.tokens[at].word.lower(), self.tokens[at + 2 : after - 1]
        column = self._argument(inside)
        if (column is None) != (function == "count"):
            raise _NotOfTheKind
        kind: Function = "count" if function == "count" else "min" if function == "min" else "max"
        return Aggregate(kind, column, self.tokens[at].start, self.tokens[after - 1].end)

    def _argument(self, inside: Tokens) -> str | None:
        """Returns the column, or None for `*` and for a number."""
        if len(inside) == 1 and (inside[0].word == "*" or inside[0].text.isdecimal()):
            return None
        parts = tuple(token.identifier for token in inside[::2])
        dotted = len(inside) % 2 == 1 and all(token.word == "." for token in inside[1::2])
        if not dotted or not all(token.is_identifier for token in inside[::2]):
            raise _NotOfTheKind
        path = qualified_by(self.relation.schema, self.names)(parts)
        if path is None or len(path) != 1 or compares_otherwise(self.relation.schema, path):
            raise _NotOfTheKind
        return path[0]


def settled(condition: expressions.Expression, snapshot: Snapshot, store: Store) -> pa.Table | None:
    """Returns the files whose rows all fulfil the condition, unless some file has rows of both kinds.

    Raises:
        ExternalPathError, CorruptDeletionVectorError: as in a read of the files by their locations (`file_guard`).
    """
    files = snapshot.files if condition == expressions.TRUE else skipping.prune(snapshot, condition)
    check_places(store, files)
    if condition == expressions.TRUE or files.num_rows == 0:
        return files
    return files if pc.all(skipping.fully_matched(snapshot, condition, files)).as_py() else None


def _known(
    aggregate: Aggregate, snapshot: Snapshot, files: pa.Table, store: Store
) -> tuple[str, expressions.Expression] | None:
    """Returns the literal for a call, and the condition of the rows that would change it."""
    if aggregate.column is None:
        rows = row_count(files)
        return None if rows is None else (f"{rows}L", expressions.TRUE)
    field = snapshot.schema.require(aggregate.column, snapshot.table)
    end: min_max.End = "min" if aggregate.function == "min" else "max"
    found = min_max.extreme(store, snapshot, files, field.name, end)
    text = None if found is None else literal(found.value, field.type)
    if found is None or text is None:
        return None
    column = expressions.Column((field.name,))
    if found.value is None:
        return text, expressions.IsNotNull(column)
    return text, expressions.Comparison("<=" if end == "min" else ">=", column, found.value)


def _string(value: str) -> str | None:
    # The meaning of a backslash is a setting of the session.
    return None if any(character in "\\'" or not character.isprintable() for character in value) else f"'{value}'"


_SQL_TYPES: Mapping[str, str] = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "date": "date",
    "timestamp": "timestamp_ltz",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
}


_SUFFIXES: Mapping[str, str] = {"integer": "", "long": "L"}
_INT = range(-(1 << 31) + 1, 1 << 31)


def _rendered(question: Question, items: list[tuple[str, str | None]]) -> str:
    if question.is_scalar:
        return items[0][0]
    return "select " + ", ".join(sql if name is None else f"{sql} as {name}" for sql, name in items)


def _read(condition: expressions.Expression, reads: list[expressions.Expression]) -> expressions.Expression:
    """Returns the condition of the rows read: rows that fulfil the condition and would change a value."""
    if any(read == expressions.TRUE for read in reads):
        return condition
    either = reads[0] if len(reads) == 1 else expressions.Or(tuple(reads))
    return either if condition == expressions.TRUE else expressions.And((condition, either))
