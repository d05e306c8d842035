"""A statement's texts as a tree: each with the tables, views and functions of ours that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from dbt.adapters.silt.engine.catalog.documents import Function
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.query.references import Call, Reference, function_calls, table_references
from dbt.adapters.silt.engine.statements.resolve.information_schema import Listing
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace, WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.table_changes import Bound


@dataclass(frozen=True)
class SqlFragment:
    """A piece of a statement to resolve.

    Attributes:
        sql: a query, or an expression, whose subqueries alone name tables.
        outer: relations around an expression: full name -> the identifier that its columns are qualified by.
    """

    sql: str
    outer: Mapping[Name, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table as a reference names it; `fixed` is the version asked for, None for the newest."""

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
class VirtualRelation:
    """What is ours and no table: files that are in none, or what the catalog holds."""

    source: FileSource | Listing


@dataclass(frozen=True)
class View:
    """A view, whose text is query; `columns` are the names that it gives its query's."""

    query: ExpandedQuery
    name: Name
    columns: tuple[str, ...]


@dataclass(frozen=True)
class FunctionCall:
    """A function of ours, whose body is query."""

    query: ExpandedQuery
    function: Function


Child: TypeAlias = Table | ChangeFeedScan | VirtualRelation | View


@dataclass(frozen=True)
class ExpandedQuery:
    """A text whose references and calls of ours are found; Spark's own are left as they stand.

    Attributes:
        only_warehouse_tables: whether it reads nothing but tables of ours, of which the size is known.
        namespace: what names in the text mean.
        inside: the views and functions that the text stands in, the outermost first.
    """

    text: SqlFragment
    children: Mapping[Reference, Child]
    calls: Mapping[Call, FunctionCall]
    only_warehouse_tables: bool
    namespace: Namespace
    inside: tuple[str, ...]

    def shortened(self, sql: str) -> ExpandedQuery:
        """The same with another text, which names nothing that this one does not."""
        known = {_named(reference): child for reference, child in self.children.items()}
        called = {call.parts: function for call, function in self.calls.items()}
        children = {each: known[_named(each)] for each in table_references(sql) if _named(each) in known}
        calls = {each: called[each.parts] for each in function_calls(sql) if each.parts in called}
        return replace(self, text=replace(self.text, sql=sql), children=children, calls=calls)

    def latest_tables(self) -> Iterable[Table | ChangeFeedScan]:
        """The tables that it reads at their newest version, those of its views and functions included."""
        for child in (*self.children.values(), *self.calls.values()):
            if isinstance(child, View | FunctionCall):
                yield from child.query.latest_tables()
            elif isinstance(child, ChangeFeedScan) or (isinstance(child, Table) and child.fixed is None):
                yield child


def full_name(name: RelationName | None) -> Name:
    """The parts of a relation's name; none where it was named by its path."""
    return () if name is None else (name.database, name.schema, name.identifier)


def _named(reference: Reference) -> Reference:
    """What the reference names, wherever it stands."""
    return replace(reference, start=0, end=0, alias=None, alias_at=None)
