"""Pins the names in a statement's texts to snapshots: a single consistent cut for the whole statement.

Each text is expanded (its references and calls found, views and functions expanded to their own texts), then every
table that they name is pinned, then each text is rendered with the names of session views over exactly the pinned
files, without the files that the text's own predicates rule out, and with the names of session functions.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeAlias

from dbt.adapters.silt.engine.catalog.names.documents import Function
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS, condition
from dbt.adapters.silt.engine.commands.spark.failures.causes import first_line
from dbt.adapters.silt.engine.commands.spark.failures.conditions import SYNTAX, syntax_remedy
from dbt.adapters.silt.engine.commands.spark.session_settings import is_checked
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.files.file_guard import MISSING_COLUMN_CHECK
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.engine.kernel.table.schema import DataType, PrimitiveType, StructType
from dbt.adapters.silt.engine.kernel.transaction.branch_log import note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet, merged_reads
from dbt.adapters.silt.engine.sql.query.stored_texts import HIDDEN_SELECT
from dbt.adapters.silt.engine.sql.tokens import syntax_error
from dbt.adapters.silt.engine.statements.resolve import metadata_answers
from dbt.adapters.silt.engine.statements.resolve.expander import Expander
from dbt.adapters.silt.engine.statements.resolve.expansion import (
    MOST_LISTED,
    MOST_TEXTS,
    ExpandedQuery,
    SqlFragment,
    Table,
    View,
)
from dbt.adapters.silt.engine.statements.resolve.metadata_answers import Answer
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace, constant
from dbt.adapters.silt.engine.statements.resolve.reads import (
    Inputs,
    Read,
    ReadHistory,
    Resolved,
    read_set,
    snapshots_of,
    versions_of,
)
from dbt.adapters.silt.engine.statements.resolve.render import Renderer
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from dbt.adapters.silt.engine.statements.resolve.stored_code import Allowed, name_files

Cut: TypeAlias = Mapping[DeltaLog, Snapshot]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Answering:
    """Answers from the snapshots of a consistent cut; each view's query is answered once, however often it is named.

    Args:
        session: evaluates expressions of literals.
        time_zone: time zone of the session, for literals without a time zone.
        cut: the newest snapshot of each table.
        reads: list to which the reads are added on which the answers depend.
    """

    session: Namespace
    time_zone: str
    cut: Mapping[DeltaLog, Snapshot]
    reads: list[Read]
    _known: dict[int, ExpandedQuery] = field(default_factory=dict, init=False, repr=False)

    def query(self, node: ExpandedQuery) -> ExpandedQuery:
        """Returns the query, and the queries of its views, with answers wherever the logs alone suffice.

        Args:
            node: the query; the caller must keep it alive as long as this instance.
        """
        if id(node) not in self._known:
            self._known[id(node)] = self._answered(node)
        return self._known[id(node)]

    def _answered(self, node: ExpandedQuery) -> ExpandedQuery:
        answers = self._answers(node)
        if answers:
            node = node.with_edits(metadata_answers.edits(answers))
        children = {
            reference: replace(child, query=self.query(child.query)) if isinstance(child, View) else child
            for reference, child in node.children.items()
        }
        return replace(node, children=children)

    def _answers(self, node: ExpandedQuery) -> list[Answer]:
        text = node.text.text
        answers = []
        for question in metadata_answers.questions(text, node.relations(self.cut), self.time_zone):
            table = node.children[question.reference]
            assert isinstance(table, Table)
            snapshot = table.snapshot(self.cut)
            found = metadata_answers.answer(question, text.sql, snapshot, table.log.store)
            if found is not None:
                answers.append(self._folded(found) if question.is_scalar else found)
                nothing = snapshot.files.slice(0, 0)
                self.reads.append(Read(table.log, snapshot, nothing, found.read, is_latest=table.fixed is None))
        return answers

    def _folded(self, answer: Answer) -> Answer:
        """Returns a scalar answer as a literal, which can rule out files; Spark folds it without a job."""
        if answer.question.items[0].is_one_call:
            return answer
        spark = self.session.spark
        (member,) = kernel_schema(spark.sql(f"select {answer.sql} as value").schema)
        try:
            value = self._value(answer.sql, member.type)
        except (OverflowError, ValueError):  # a time outside the years 1 to 9999
            return answer
        text = metadata_answers.literal(value, member.type)
        return answer if text is None else replace(answer, sql=text)

    def _value(self, sql: str, data_type: DataType) -> Any:
        """Returns the value of an expression of literals."""
        if data_type != PrimitiveType("timestamp"):
            return self.session.spark.sql(f"select {sql}").collect()[0][0]
        # A Python value would be converted by the machine's time zone.
        value = constant(self.session, f"unix_micros({sql})", "bigint")
        return _EPOCH + timedelta(microseconds=value) if isinstance(value, int) else None


_logger = logging.getLogger(__name__)

_UNREADABLE: Final = (
    *(errors.InvalidStatementError, errors.TableDamagedError, errors.UnsupportedFeatureError),
    *(errors.StorageError, errors.ExternalPathError),
)
"""The errors of a single view or of its inputs. An ended Spark concerns all views."""
_PLACE: Final = re.compile(r"\(line (\d+), pos (\d+)\)")


@dataclass(frozen=True)
class Resolver:
    """Resolves the texts of a session's statements.

    Args:
        namespace: the session's namespace.
        snapshot_views: the session's views over pinned snapshots.
        time_zone: time zone of the session, for literals without a time zone.
        allowed: permissions of the texts of views and functions.
        read_history: reads of earlier statements of the same unit; None if each statement is its own unit.
        lists_views: whether the information schema lists the columns of views, which requires analysing them.
        owner: the program that has stored the statement; None for a statement of the session's own.
        notes_reads: whether a transaction has read the rows of the texts: a view's query is only analysed.
        most_texts: the limit of the texts of views and functions.
    """

    namespace: Namespace
    snapshot_views: SnapshotViews
    time_zone: str
    allowed: Allowed
    read_history: ReadHistory | None = None
    lists_views: bool = True
    owner: str | None = None
    notes_reads: bool = True
    most_texts: int = MOST_TEXTS

    def resolve(
        self,
        texts: Sequence[SqlFragment],
        target: DeltaLog | None = None,
        view: RelationName | None = None,
        replaces_target: bool = False,
    ) -> Resolved:
        """Pins every table of the texts, and the target of a write, in a single consistent cut.

        Args:
            view: the view whose query the text will be.
            replaces_target: whether the statement re-creates its table, which then has consumed no changes.

        Raises:
            ExternalPathError: if a view reads files that it may not read.
            InvalidStatementError: if a view reads itself.
            RelationNotFoundError: if a name of the warehouse does not exist.
            StoredCodeError: if the text of a view or function contains forbidden code.
            StatementSyntaxError: if a missing name is not a name: Spark cannot parse the text that contains it.
            UnsupportedStatementError: if a reference is not supported.
        """
        inside = () if view is None else (str(view),)
        if view is not None:
            name_files(texts[0].sql)
        expander = self._expander()
        expanded = [self._expanded(expander, text, inside) for text in texts]
        logs = [log for node in expanded for log in node.latest_logs()]
        cut = consistent_cut([*logs, *([] if target is None else [target])])
        earlier = self._earlier(target, cut)
        reads: list[Read] = []
        named = expanded
        renderer = replace(self._renderer(cut, reads), replaces_target=replaces_target)
        if not renderer.fills_missing:
            answering = Answering(self.namespace, self.time_zone, cut, reads)
            expanded = [answering.query(node) for node in expanded]
        sql = renderer.queries(expanded)
        inputs = self._inputs(reads, named)
        resolved = Resolved(
            sql,
            tuple(reads),
            only_warehouse_tables=all(node.only_warehouse_tables for node in expanded),
            functions=self.snapshot_views.functions_in(sql),
            inputs=inputs,
            expanded=tuple(named),
            positions=tuple(renderer.positions),
            cut=cut,
        )
        if self.notes_reads:
            _note_on_branch(reads)
        if target is None:
            if self.read_history is not None:
                self.read_history.note(reads, inputs)
            return resolved
        own = [read for read in reads if read.log is target and read.is_latest]
        return replace(resolved, target=cut[target], target_reads=merged_reads(earlier, read_set(own)))

    def rendered_around(self, resolved: Resolved, around: Callable[[Table, Read], str]) -> str:
        """Returns the first resolved text, a query, with another query for each of its tables.

        Args:
            around: as in `Renderer`; called in the same order each time.
        """
        renderer = replace(self._renderer(resolved.cut, []), around=around)
        return renderer.queries(resolved.expanded[:1])[0]

    def of_future(self, queries: Sequence[str], log: DeltaLog, future: Snapshot, cut: Cut) -> tuple[str, ...]:
        """Resolves queries that read a table as a version that is not committed.

        Args:
            log: the table.
            future: that version.
            cut: the newest snapshots of other tables that the statement reads.

        Raises:
            As `resolve`.
        """
        expander = self._expander()
        expanded = [self._expanded(expander, SqlFragment(each), ()) for each in queries]
        logs = list(dict.fromkeys(each for node in expanded for each in node.latest_logs()))
        own = {each: future for each in logs if each.line == log.line}
        whole = {**consistent_cut(each for each in logs if each not in own and each not in cut), **cut, **own}
        reads: list[Read] = []

        def view(_: Table, read: Read) -> str:
            of = self.snapshot_views.uncommitted if read.snapshot is future else self.snapshot_views.view
            return of(read.log, read.snapshot, read.files)

        sql = replace(self._renderer(whole, reads), around=view).queries(expanded)
        _note_on_branch([read for read in reads if read.snapshot is not future])
        return sql

    def query(self, sql: str, view: RelationName | None = None) -> Resolved:
        """Resolves a single query."""
        return self.resolve([SqlFragment(sql)], view=view)

    def expanded(self, sql: str) -> ExpandedQuery:
        """Returns a query with the tables, views and functions that it names, not pinned; raises as `resolve`."""
        return self._expanded(self._expander(), SqlFragment(sql), ())

    def check(self, function: Function) -> None:
        """Checks that Spark can call the function as it would be stored; nothing is computed.

        Raises:
            InvalidStatementError: if it calls itself.
            RelationNotFoundError: if its body names a relation of the warehouse that does not exist.
        """
        if function.python is None:
            name_files(function.body)
        called = self._expander().function(function, self.namespace, ())
        cut = consistent_cut([*called.query.latest_logs()])
        self._renderer(cut, []).function(called)

    def _expander(self) -> Expander:
        return Expander(self.namespace, self.allowed, self.most_texts)

    def _expanded(self, expander: Expander, text: SqlFragment, inside: tuple[str, ...]) -> ExpandedQuery:
        """Returns the expanded text; a missing name may be a keyword that a syntax error before it has displaced."""
        try:
            return expander.query(text, self.namespace, inside, inside[0] if inside else self.owner)
        except (errors.RelationNotFoundError, errors.SchemaNotFoundError, errors.StoredCodeError) as error:
            if isinstance(error, errors.StoredCodeError) and HIDDEN_SELECT not in error.problem:
                raise
            mistake = first_mistake(self.namespace, text.sql, is_query=not text.outer)
            if mistake is None:
                raise
            raise mistake from error

    def _inputs(self, reads: Sequence[Read], expanded: Sequence[ExpandedQuery]) -> Inputs:
        """Returns the inputs of the texts and of earlier queries of the same unit."""
        definitions = dict(each for node in expanded for each in node.definitions())
        sources = (source for node in expanded for source in node.file_sources())
        files = {source.path: source for source in sources}
        own = Inputs(versions_of(reads), definitions, files, snapshots_of(reads))
        return own.and_earlier(self.earlier_inputs)

    @property
    def earlier_inputs(self) -> Inputs:
        """The inputs of earlier queries of the same unit."""
        return Inputs() if self.read_history is None else self.read_history.inputs

    def _renderer(self, cut: Mapping[DeltaLog, Snapshot], reads: list[Read]) -> Renderer:
        catalog = self.namespace.catalog
        renderer = Renderer(self.snapshot_views, catalog, self.time_zone, self._columns_of_view, cut, reads)
        return replace(renderer, fills_missing=not is_checked(self.namespace.spark, MISSING_COLUMN_CHECK))

    def _columns_of_view(self, view: RelationName) -> StructType | None:
        """Returns the columns of a view, analysed now, or None if that fails or this resolver already lists views."""
        if not self.lists_views:
            return None
        name = ".".join(map(quote, (view.database, view.schema, view.identifier)))
        alone = replace(self, read_history=None, lists_views=False, notes_reads=False, most_texts=MOST_LISTED)
        try:
            return self.snapshot_views.schema(alone.query(f"select * from {name}").texts[0])
        except _UNREADABLE as error:
            _logger.warning("information_schema has no columns of the view %s: %s", view, error)
            return None

    def _earlier(self, target: DeltaLog | None, cut: dict[DeltaLog, Snapshot]) -> ReadSet:
        """Returns the unit's earlier reads of the target, which is then pinned to the version that they saw."""
        if target is None or self.read_history is None or target not in self.read_history.first:
            return ReadSet()
        cut[target], reads = self.read_history.first[target]
        return reads


def _note_on_branch(reads: Sequence[Read]) -> None:
    """Notes the reads of tables on a branch, which are checked when the branch is published."""
    for read in reads:
        if read.is_latest:
            note_reads(read.log, read_set([read]))


def first_mistake(namespace: Namespace, sql: str, *, is_query: bool) -> errors.StatementSyntaxError | None:
    """Returns the first mistake in a query or an expression, unless Spark can parse it.

    The text is explained, not run: Spark parses it before it looks up its tables.
    """
    try:
        namespace.spark.sql(f"{'explain' if is_query else 'explain select'}\n{sql}")
    except SPARKS as error:
        if condition(error) in SYNTAX:
            return _placed(error, sql)
    return None


def _placed(error: Exception, sql: str) -> errors.StatementSyntaxError:
    """Returns Spark's message with the position in the text; Spark counts the line of EXPLAIN as the first."""
    said = first_line(error).partition(" (line ")[0].rstrip(".")
    place = _PLACE.search(str(error))
    remedy = syntax_remedy(said, sql)
    if place is None:
        return errors.StatementSyntaxError(said, remedy=remedy)
    line, column = int(place[1]) - 2, int(place[2])
    return syntax_error(said, sql, sum(len(each) + 1 for each in sql.split("\n")[:line]) + column, remedy)
