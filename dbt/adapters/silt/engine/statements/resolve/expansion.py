"""The tree of a statement's texts, each with the warehouse's tables, views and functions that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.catalog.names.documents import Function
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.query.references import ScannedText, scanned
from dbt.adapters.silt.engine.sql.query.scans import Call, Reference
from dbt.adapters.silt.engine.sql.spans import Edit, edited, moved
from dbt.adapters.silt.engine.statements.resolve.changes_functions import Bound, Consumer, Options
from dbt.adapters.silt.engine.statements.resolve.information_schema import Listing
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable


@dataclass(frozen=True)
class SqlFragment:
    """A piece of a statement to resolve.

    Attributes:
        sql: a query, or an expression in which only subqueries name tables.
        outer: relations around an expression: full name -> the identifier that qualifies its columns.
    """

    sql: str
    outer: Mapping[Name, str] = field(default_factory=dict)

    @property
    def text(self) -> ScannedText:
        return scanned(self.sql)


@dataclass(frozen=True)
class Table:
    """A table as a reference names it; `fixed` is the requested version, if it is not the newest."""

    meaning: WarehouseTable
    fixed: Snapshot | None

    @property
    def log(self) -> DeltaLog:
        return self.meaning.log

    def snapshot(self, cut: Mapping[DeltaLog, Snapshot]) -> Snapshot:
        return self.fixed if self.fixed is not None else cut[self.log]


@dataclass(frozen=True)
class ChangeFeedScan:
    """A call of `table_changes`."""

    meaning: WarehouseTable
    start: Bound
    end: Bound | None

    @property
    def log(self) -> DeltaLog:
        return self.meaning.log


@dataclass(frozen=True)
class DifferenceScan:
    """A call of `silt_changes`; `consumer` is the table that consumes the changes, if any."""

    meaning: WarehouseTable
    asked: Options
    consumer: Consumer | None = None

    @property
    def log(self) -> DeltaLog:
        return self.meaning.log


@dataclass(frozen=True)
class VirtualRelation:
    """A relation that is not a table: files outside of tables, or a listing of the catalog."""

    source: FileSource | Listing


@dataclass(frozen=True)
class View:
    """A view and its query; `columns` are the view's names for the query's columns.

    Attributes:
        query_columns: the query's names for `columns`; empty if they are assigned by position.
        fingerprint: fingerprint of its document, unless it is a temporary view.
    """

    query: ExpandedQuery
    name: Name
    columns: tuple[str, ...]
    query_columns: tuple[str, ...] = ()
    fingerprint: str | None = None


@dataclass(frozen=True)
class FunctionCall:
    """A function of the warehouse, whose body is expanded like a query."""

    query: ExpandedQuery
    function: Function


Child: TypeAlias = Table | ChangeFeedScan | DifferenceScan | VirtualRelation | View


@dataclass(frozen=True)
class ExpandedQuery:
    """A text whose references to the warehouse and calls of its functions are resolved; Spark's are unchanged.

    All references to a view share one value.

    Attributes:
        only_warehouse_tables: whether it reads only tables of the warehouse, whose size is known.
    """

    text: SqlFragment
    children: Mapping[Reference, Child]
    calls: Mapping[Call, FunctionCall]
    only_warehouse_tables: bool

    @property
    def inner(self) -> list[ExpandedQuery]:
        """The texts of its views and functions, an item for each reference and call."""
        children = (*self.children.values(), *self.calls.values())
        return [child.query for child in children if isinstance(child, View | FunctionCall)]

    @cached_property
    def extent(self) -> Extent:
        """The size of the text with its views and functions written out."""
        return Extent.of(self.text.sql).around(query.extent for query in self.inner)

    def with_edits(self, edits: Sequence[Edit]) -> ExpandedQuery:
        """Returns the text with some spans replaced by SQL that names nothing. Other references are unchanged."""
        text = replace(self.text, sql=edited(self.text.sql, edits))
        references = {each.start: each for each in text.text.scan.references}
        called = {each.start: each for each in text.text.scan.calls}
        starts = moved([*(each.start for each in self.children), *(each.start for each in self.calls)], edits)
        children = {references[starts[at.start]]: each for at, each in self.children.items() if at.start in starts}
        calls = {called[starts[at.start]]: each for at, each in self.calls.items() if at.start in starts}
        return replace(self, text=text, children=children, calls=calls)

    def relations(self, cut: Mapping[DeltaLog, Snapshot]) -> Mapping[Reference, Relation]:
        """Returns the tables that it reads, in the form that conditions need."""
        return {
            reference: Relation(child.snapshot(cut).schema, full_name(child.meaning.name))
            for reference, child in self.children.items()
            if isinstance(child, Table)
        }

    def definitions(self) -> Iterable[tuple[str, str]]:
        """Yields full name and fingerprint of its direct and indirect views and functions."""
        for child in self._all_children():
            if isinstance(child, FunctionCall):
                yield str(child.function.name), child.function.fingerprint
            elif isinstance(child, View) and child.fingerprint is not None:
                yield ".".join(child.name), child.fingerprint

    def file_sources(self) -> Iterable[FileSource]:
        """Yields the files outside of tables that it reads, also through views and functions."""
        for child in self._all_children():
            if isinstance(child, VirtualRelation) and isinstance(child.source, FileSource):
                yield child.source

    def latest_logs(self) -> Iterable[DeltaLog]:
        """Yields the tables that it needs at their newest version, including those of its views and functions."""
        for child in self._all_children():
            if isinstance(child, ChangeFeedScan | DifferenceScan) or (isinstance(child, Table) and child.fixed is None):
                yield child.log
            if isinstance(child, DifferenceScan) and child.consumer is not None and child.consumer.log is not None:
                yield child.consumer.log

    def _all_children(self) -> Iterable[Child | FunctionCall]:
        """Yields the relations and functions that it and its views and functions name, once for each text."""
        for query in distinct([self]):
            yield from (*query.children.values(), *query.calls.values())


def distinct(queries: Iterable[ExpandedQuery]) -> list[ExpandedQuery]:
    """Returns the queries and the texts of their views and functions: each once, after the texts that it contains."""
    found: dict[int, ExpandedQuery] = {}

    def note(query: ExpandedQuery) -> None:
        if id(query) not in found:
            for inner in query.inner:
                note(inner)
            found[id(query)] = query

    for query in queries:
        note(query)
    return list(found.values())


def full_name(name: RelationName | None) -> Name:
    """Returns the parts of a relation's name, or an empty tuple if it was named by its path."""
    return () if name is None else (name.database, name.schema, name.identifier)


DEEPEST: Final = 100
"""Limit of the nesting depth of views and functions; Spark has the same limit for its own views."""
MOST_TEXTS: Final = 10_000
MOST_LISTED: Final = 1_000
"""The limit of the texts of a view that a list of columns analyses: Spark needs up to a second for so many."""
MOST_CHARACTERS: Final = 64 << 20


@dataclass(frozen=True)
class Extent:
    """The size of a text with the texts of its views and functions, each counted as often as it is named.

    Attributes:
        depth: nesting depth of the texts, including this text.
        texts: number of texts, including this text.
        characters: number of characters of all texts together.
    """

    depth: int
    texts: int
    characters: int

    @classmethod
    def of(cls, sql: str) -> Extent:
        """Returns the extent of a text alone."""
        return cls(1, 1, len(sql))

    def around(self, inner: Iterable[Extent]) -> Extent:
        """Returns the extent of the text with inner texts."""
        others = list(inner)
        return Extent(
            self.depth + max((each.depth for each in others), default=0),
            self.texts + sum(each.texts for each in others),
            self.characters + sum(each.characters for each in others),
        )

    def check(self, inside: tuple[str, ...], most_texts: int = MOST_TEXTS) -> None:
        """Checks that the extent is within the limits.

        Args:
            inside: the views and functions that contain the text, the outermost first; the last is the text's owner.
            most_texts: the limit of the texts.

        Raises:
            UnsupportedStatementError: if a limit is exceeded; the message names the owner of the text, or the outermost
                of the views and functions that are nested too deep.
        """
        if len(inside) + self.depth - 1 > DEEPEST:
            raise UnsupportedStatementError(
                f"below it, views and functions are nested more than {DEEPEST} deep",
                table=inside[0] if inside else None,
                remedy="Store the rows of a view in between as a table, or write its query into the view above",
            )
        if self.texts > most_texts or (self.texts > 1 and self.characters > MOST_CHARACTERS):
            raise UnsupportedStatementError(
                f"with its views and functions expanded it has {self.texts:,} parts of {self.characters:,} "
                f"characters; at most {most_texts:,} parts of {MOST_CHARACTERS:,} characters are sent to Spark",
                table=inside[-1] if inside else None,
                remedy="Store the rows of a view that is named several times as a table",
            )
