"""Renders expanded queries as SQL that Spark can run, over session views of exactly the pinned files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.transaction.positions import Position
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.conditions.pruning import pruning_predicates
from dbt.adapters.silt.engine.sql.query.references import Replacement, rewrite
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.statements.resolve import changes_functions, information_schema
from dbt.adapters.silt.engine.statements.resolve.changes_functions import Consumption, Options, consumed
from dbt.adapters.silt.engine.statements.resolve.expansion import (
    ChangeFeedScan,
    Child,
    DifferenceScan,
    ExpandedQuery,
    FunctionCall,
    Table,
    View,
    VirtualRelation,
    distinct,
    full_name,
)
from dbt.adapters.silt.engine.statements.resolve.information_schema import SCHEMA, Listing, ViewColumns
from dbt.adapters.silt.engine.statements.resolve.reads import Read
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews


@dataclass(frozen=True)
class Renderer:
    """Renders texts over the snapshots of a consistent cut, and the query of each view only once.

    Args:
        snapshot_views: views and functions of the session.
        catalog: catalog that the information schema lists.
        time_zone: time zone of the session, for literals without a time zone.
        view_columns: analyses a view that the information schema lists.
        cut: the newest snapshot of each table.
        reads: list to which all reads of the texts are added.
        positions: list to which the positions are added that the texts consume.
        replaces_target: whether the statement re-creates its table, which then has consumed nothing.
        fills_missing: whether a column is null if a data file lacks it; the log's statistics are then not used.
        around: returns a query for a table of the texts, from the table and its read.
    """

    snapshot_views: SnapshotViews
    catalog: Catalog
    time_zone: str
    view_columns: ViewColumns
    cut: Mapping[DeltaLog, Snapshot]
    reads: list[Read]
    positions: list[Position] = field(default_factory=list)
    replaces_target: bool = False
    fills_missing: bool = False
    around: Callable[[Table, Read], str] | None = None
    _times: Counter[int] = field(default_factory=Counter, init=False, repr=False)
    _known: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    def queries(self, nodes: Sequence[ExpandedQuery]) -> tuple[str, ...]:
        """Rules out files of the tables in the texts by the texts' own predicates."""
        self._times.update(_occurrences(nodes))
        return tuple(self._query(node) for node in nodes)

    def function(self, called: FunctionCall) -> str:
        """Returns the identifier of a session function equivalent to the function."""
        body = called.function.body if called.function.python else self._query(called.query)
        return self.snapshot_views.function(called.function, body)

    def _query(self, node: ExpandedQuery) -> str:
        if id(node) not in self._known:
            self._known[id(node)] = self._rendered(node)
        return self._known[id(node)]

    def _rendered(self, node: ExpandedQuery) -> str:
        text = node.text.text
        relations = {**node.relations(self.cut), **_listed(node)}
        predicates = pruning_predicates(text, relations, self.time_zone)
        replacements = {
            reference: self._replacement(child, predicates.get(reference, TRUE), node)
            for reference, child in node.children.items()
        }
        distinct = {called.function.name: called for called in node.calls.values()}
        labels = {name: self.function(called) for name, called in distinct.items()}
        functions = {call: labels[called.function.name] for call, called in node.calls.items()}
        return rewrite(text, replacements, node.text.outer, functions)

    def _replacement(self, child: Child, predicate: Expression, node: ExpandedQuery) -> Replacement:
        if isinstance(child, View):
            return Replacement(self._view(child), child.name)
        if isinstance(child, VirtualRelation):
            return Replacement(self._virtual(child.source, predicate, node))
        if isinstance(child, ChangeFeedScan | DifferenceScan):
            return self._changes(child)
        read = self._read(child, predicate, self._times[id(node)])
        self.reads.append(read)
        if self.around is not None:
            sql = self.around(child, read)
        else:
            sql = self.snapshot_views.view(read.log, read.snapshot, read.files, fills_missing=self.fills_missing)
        return Replacement(sql, full_name(child.meaning.name))

    def _read(self, table: Table, predicate: Expression, times: int) -> Read:
        snapshot = table.snapshot(self.cut)
        reads_all = predicate == TRUE or self.fills_missing
        files = snapshot.files if reads_all else skipping.prune(snapshot, predicate)
        return Read(table.log, snapshot, files, predicate, table.fixed is None, times)

    def _changes(self, child: ChangeFeedScan | DifferenceScan) -> Replacement:
        log, latest = child.log, self.cut[child.log]
        if isinstance(child, DifferenceScan):
            asked = self._unconsumed(child, latest)
            sql = self.snapshot_views.difference(log, changes_functions.difference(log, latest, asked))
        else:
            found = changes_functions.changes(log, latest, child.start, child.end)
            sql = self.snapshot_views.changes(log, found)
        # The versions that have changes depend on every commit.
        self.reads.append(Read(log, latest, latest.files.slice(0, 0), TRUE, is_latest=True))
        return Replacement(sql, full_name(child.meaning.name))

    def _unconsumed(self, child: DifferenceScan, latest: Snapshot) -> Options:
        """Returns the options of a call; with a consumer, they begin after the version that it has consumed."""
        consumer = child.consumer
        if consumer is None:
            return child.asked
        snapshot = None if consumer.log is None else self.cut[consumer.log]
        state = Consumption(consumer.name, snapshot, self.replaces_target)
        asked, position = consumed(child.log, latest, child.asked, state)
        if position not in self.positions:
            self.positions.append(position)
        return asked

    def _virtual(self, source: FileSource | Listing, predicate: Expression, node: ExpandedQuery) -> str:
        if isinstance(source, FileSource):
            return self.snapshot_views.files(source)
        asked = information_schema.asked(node.text.text.tokens, predicate)
        rows = source.rows(self.catalog, asked, self.view_columns)
        return self.snapshot_views.rows(rows)

    def _view(self, view: View) -> str:
        inner = self._query(view.query)
        if not view.columns:
            return f"({inner}\n)"
        columns = [quote(column) for column in view.columns]
        if not view.query_columns:
            return f"(select * from ({inner}\n) as __silt_view({', '.join(columns)}))"
        # As in Spark, the order of the query's columns may have changed since the view was created.
        named = (f"{quote(own)} as {column}" for own, column in zip(view.query_columns, columns, strict=True))
        return f"(select {', '.join(named)} from ({inner}\n) as __silt_view)"


def _listed(node: ExpandedQuery) -> Mapping[Reference, Relation]:
    """Returns the relations of the information schema that the text names, as conditions see them."""
    return {
        reference: Relation(child.source.schema, (child.source.database, SCHEMA, child.source.relation))
        for reference, child in node.children.items()
        if isinstance(child, VirtualRelation) and isinstance(child.source, Listing)
    }


def _occurrences(queries: Sequence[ExpandedQuery]) -> Counter[int]:
    """Returns how often each text occurs in the queries when all are written out, by the text's `id`."""
    times = Counter(id(query) for query in queries)
    for query in reversed(distinct(queries)):
        for inner in query.inner:
            times[id(inner)] += times[id(query)]
    return times
