"""Pins the names in a statement's texts to snapshots: one consistent cut for the whole statement.

Each text is expanded (its references and calls found, views and functions expanded to their own texts), then every
table that any of them names is pinned, then each text is rendered with the names of session views over exactly the
pinned files, less those that the text's own predicates rule out, and with the names of session functions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.silt.engine.catalog.documents import Function
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.commands.commit import merged
from dbt.adapters.silt.engine.kernel.errors import (
    ExternalPathError,
    InvalidStatementError,
    RelationNotFoundError,
    SchemaNotFoundError,
    StoredCodeError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql.query.stored_texts import HIDDEN_SELECT
from dbt.adapters.silt.engine.statements.resolve import mistakes
from dbt.adapters.silt.engine.statements.resolve.answering import Answering
from dbt.adapters.silt.engine.statements.resolve.expander import Expander
from dbt.adapters.silt.engine.statements.resolve.expansion import ExpandedQuery, SqlFragment
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.reads import (
    Inputs,
    Read,
    ReadHistory,
    Resolved,
    read_set,
    versions_of,
)
from dbt.adapters.silt.engine.statements.resolve.render import Renderer
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from dbt.adapters.silt.engine.statements.resolve.stored_code import Allowed, name_files

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Resolver:
    """Resolves the texts of one session's statements.

    Args:
        namespace: what names mean to the session.
        snapshot_views: the session's views over pinned snapshots.
        time_zone: the session's, for literals without one.
        allowed: what the texts of views and functions may do.
        read_history: what earlier statements of the same unit have read; None where each statement is on its own.
        lists_views: whether the information schema lists the columns of views, which are analysed for it.
    """

    namespace: Namespace
    snapshot_views: SnapshotViews
    time_zone: str
    allowed: Allowed
    read_history: ReadHistory | None = None
    lists_views: bool = True

    def resolve(
        self, texts: Sequence[SqlFragment], target: DeltaLog | None = None, view: RelationName | None = None
    ) -> Resolved:
        """Pins every table of the texts, and the target of a write, in one consistent cut.

        Args:
            view: the view whose query the text is to be.

        Raises:
            ExternalPathError: a view reads files that it may not.
            InvalidStatementError: a view reads itself.
            RelationNotFoundError: a name of the warehouse is not there.
            StoredCodeError: the text of a view or function holds what it may not.
            StatementSyntaxError: a name is not there, and is none: Spark cannot parse the text that it was found in.
            UnsupportedStatementError: a reference asks for something that is not supported.
        """
        inside = () if view is None else (str(view),)
        if view is not None:
            name_files(texts[0].sql)
        expander = Expander(self.namespace, self.allowed)
        expanded = [self._expanded(expander, text, inside) for text in texts]
        logs = [table.log for node in expanded for table in node.latest_tables()]
        cut = consistent_cut([*logs, *([] if target is None else [target])])
        earlier = self._earlier(target, cut)
        reads: list[Read] = []
        named = expanded
        answering = Answering(self.namespace, self.time_zone, cut, reads)
        expanded = [answering.query(node) for node in expanded]
        sql = self._renderer(cut, reads).queries(expanded)
        only_warehouse_tables = all(node.only_warehouse_tables for node in expanded)
        functions = self.snapshot_views.functions_in(sql)
        inputs = self._inputs(reads, named)
        if target is None:
            if self.read_history is not None:
                self.read_history.note(reads, inputs)
            return Resolved(
                sql, tuple(reads), only_warehouse_tables=only_warehouse_tables, functions=functions, inputs=inputs
            )
        own = [read for read in reads if read.log is target and read.is_latest]
        return Resolved(
            sql, tuple(reads), cut[target], merged(earlier, read_set(own)), only_warehouse_tables, functions, inputs
        )

    def query(self, sql: str, view: RelationName | None = None) -> Resolved:
        """The one query, resolved."""
        return self.resolve([SqlFragment(sql)], view=view)

    def check(self, function: Function) -> None:
        """Makes sure that Spark can call the function as it would be stored; nothing is computed.

        Raises:
            InvalidStatementError: it calls itself.
            RelationNotFoundError: its body names something of the warehouse that is not there.
        """
        if function.python is None:
            name_files(function.body)
        called = Expander(self.namespace, self.allowed).function(function, self.namespace, ())
        cut = consistent_cut([table.log for table in called.query.latest_tables()])
        self._renderer(cut, []).function(called)

    def _expanded(self, expander: Expander, text: SqlFragment, inside: tuple[str, ...]) -> ExpandedQuery:
        """The text, expanded; a name that is missing may be a keyword, which a mistake before it has moved."""
        try:
            return expander.query(text, self.namespace, inside, inside[0] if inside else None)
        except (RelationNotFoundError, SchemaNotFoundError, StoredCodeError) as error:
            if isinstance(error, StoredCodeError) and HIDDEN_SELECT not in error.problem:
                raise
            mistake = mistakes.mistake(self.namespace, text.sql, is_query=not text.outer)
            if mistake is None:
                raise
            raise mistake from error

    def _inputs(self, reads: Sequence[Read], expanded: Sequence[ExpandedQuery]) -> Inputs:
        """Returns the inputs of the texts and of earlier queries of the same unit."""
        definitions = dict(each for node in expanded for each in node.definitions())
        sources = (source for node in expanded for source in node.file_sources())
        own = Inputs(versions_of(reads), definitions, {source.path: source for source in sources})
        return own if self.read_history is None else own.and_earlier(self.read_history.inputs)

    def _renderer(self, cut: Mapping[DeltaLog, Snapshot], reads: list[Read]) -> Renderer:
        catalog = self.namespace.catalog
        return Renderer(self.snapshot_views, catalog, self.time_zone, self._columns_of_view, cut, reads)

    def _columns_of_view(self, view: RelationName) -> StructType | None:
        """The columns of a view, analysed now; None where that fails, or is what this resolver is at work on."""
        if not self.lists_views:
            return None
        name = ".".join(map(quote, (view.database, view.schema, view.identifier)))
        alone = replace(self, read_history=None, lists_views=False)
        try:
            return self.snapshot_views.schema(alone.query(f"select * from {name}").texts[0])
        except (InvalidStatementError, ExternalPathError) as error:
            _logger.warning("information_schema has no columns of the view %s: %s", view, error)
            return None

    def _earlier(self, target: DeltaLog | None, cut: dict[DeltaLog, Snapshot]) -> ReadSet:
        """What the same unit read of the target before; the target is then pinned to the version that it saw."""
        if target is None or self.read_history is None or target not in self.read_history.first:
            return ReadSet()
        cut[target], reads = self.read_history.first[target]
        return reads
