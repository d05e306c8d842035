"""The names in a statement's texts, pinned to snapshots: one consistent cut for the whole statement.

Each text is expanded (its references and calls found, views and functions expanded to their own texts), then every
table that any of them names is pinned, then each text is written again with the names of session views over exactly
the pinned files, less those that the text's own predicates rule out, and with the names of session functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from dbt.adapters.silt.engine.catalog.documents import Function
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.commands.commit import merged
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.scan.consistent_cut import consistent_cut
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql.ast import TimeTravel
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.conditions.pruning import pruning_predicates
from dbt.adapters.silt.engine.sql.query.references import (
    Reference,
    Replacement,
    function_calls,
    rewrite,
    table_references,
)
from dbt.adapters.silt.engine.statements.resolve import metadata_answers, table_changes
from dbt.adapters.silt.engine.statements.resolve.expansion import (
    ChangeFeedScan,
    Child,
    ExpandedQuery,
    FunctionCall,
    SqlFragment,
    Table,
    View,
    VirtualRelation,
    full_name,
)
from dbt.adapters.silt.engine.statements.resolve.information_schema import Listing, listing
from dbt.adapters.silt.engine.statements.resolve.metadata_answers import Answer
from dbt.adapters.silt.engine.statements.resolve.namespace import (
    Namespace,
    SparkRelation,
    TemporaryView,
    WarehouseTable,
    WarehouseView,
)
from dbt.adapters.silt.engine.statements.resolve.reads import Read, ReadHistory, Resolved, read_set, versions_of
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Resolver:
    """Resolves the texts of one session's statements.

    Args:
        namespace: what names mean to the session.
        snapshot_views: the session's views over pinned snapshots.
        time_zone: the session's, for literals without one.
        read_history: what earlier statements of the same work have read; None where each statement stands alone.
        python_functions: whether functions in Python may be called.
    """

    namespace: Namespace
    snapshot_views: SnapshotViews
    time_zone: str
    read_history: ReadHistory | None = None
    python_functions: bool = False

    def resolve(
        self, texts: Sequence[SqlFragment], target: DeltaLog | None = None, view: RelationName | None = None
    ) -> Resolved:
        """SnapshotViews every table of the texts, and the target of a write, in one consistent cut.

        Args:
            view: the view whose query the text is to be.

        Raises:
            InvalidStatementError: a view reads itself.
            RelationNotFoundError: a name of ours is not there.
            UnsupportedStatementError: a reference asks for something that is not supported.
        """
        inside = () if view is None else (str(view),)
        expanded = [self._expand(text, self.namespace, inside) for text in texts]
        logs = [table.log for node in expanded for table in node.latest_tables()]
        cut = consistent_cut([*logs, *([] if target is None else [target])])
        earlier = self._earlier(target, cut)
        reads: list[Read] = []
        expanded = [self._answered(node, cut, reads) for node in expanded]
        sql = tuple(self._render(node, cut, reads) for node in expanded)
        only_warehouse_tables = all(node.only_warehouse_tables for node in expanded)
        functions = self.snapshot_views.functions_in(sql)
        versions = versions_of(reads, {} if self.read_history is None else self.read_history.versions)
        if target is None:
            if self.read_history is not None:
                self.read_history.note(reads)
            return Resolved(
                sql, tuple(reads), only_warehouse_tables=only_warehouse_tables, functions=functions, versions=versions
            )
        own = [read for read in reads if read.log is target and read.is_latest]
        return Resolved(
            sql, tuple(reads), cut[target], merged(earlier, read_set(own)), only_warehouse_tables, functions, versions
        )

    def query(self, sql: str, view: RelationName | None = None) -> Resolved:
        """The one query, resolved."""
        return self.resolve([SqlFragment(sql)], view=view)

    def check(self, function: Function) -> None:
        """Makes sure that Spark can call the function as it would be stored; nothing is computed.

        Raises:
            InvalidStatementError: it calls itself.
            RelationNotFoundError: its body names something of ours that is not there.
        """
        called = self._open_function(function, self.namespace, ())
        cut = consistent_cut([table.log for table in called.query.latest_tables()])
        self._render_function(called, cut, [])

    def _earlier(self, target: DeltaLog | None, cut: dict[DeltaLog, Snapshot]) -> ReadSet:
        """What the same work read of the target before; the target is then pinned to the version that it saw."""
        if target is None or self.read_history is None or target not in self.read_history.first:
            return ReadSet()
        cut[target], reads = self.read_history.first[target]
        return reads

    def _expand(self, text: SqlFragment, namespace: Namespace, inside: tuple[str, ...]) -> ExpandedQuery:
        references = table_references(text.sql)
        expanded = {each: self._expand_reference(each, namespace, inside) for each in references}
        children = {reference: child for reference, child in expanded.items() if child is not None}
        found = function_calls(text.sql)
        functions = {name: namespace.function(name) for name in {call.parts for call in found}}
        called = {
            name: self._open_function(function, namespace, inside)
            for name, function in functions.items()
            if function is not None
        }
        calls = {call: called[call.parts] for call in found if call.parts in called}
        # How much data changes are is not known here.
        inner = all(
            child.query.only_warehouse_tables if isinstance(child, View | FunctionCall) else isinstance(child, Table)
            for child in (*children.values(), *calls.values())
        )
        return ExpandedQuery(text, children, calls, inner and len(children) == len(references), namespace, inside)

    def _open_function(self, function: Function, namespace: Namespace, inside: tuple[str, ...]) -> FunctionCall:
        scope = namespace.within(function.current_database, function.current_schema)
        key = f"{function.name}()"
        if key in inside:
            raise InvalidStatementError(
                f"the function {function.name} calls itself: {' -> '.join((*inside, key))}", remedy="Break the cycle"
            )
        if function.python is not None and not self.python_functions:
            raise UnsupportedStatementError(
                "it is in Python, and code of a warehouse is not run unless that is allowed",
                table=str(function.name),
                remedy="Set `python_functions: true` in the profile if all who can write the warehouse may run code",
            )
        body = function.body if function.python is None else ""
        return FunctionCall(self._expand(SqlFragment(body), scope, (*inside, key)), function)

    def _expand_reference(self, reference: Reference, namespace: Namespace, inside: tuple[str, ...]) -> Child | None:
        if reference.files is not None:
            return VirtualRelation(FileSource(reference.files.path, reference.files.options, reference.files.text))
        listed = listing(reference.parts, namespace)
        if listed is not None:
            return VirtualRelation(listed)
        meaning = namespace.meaning(reference.parts)
        travels = reference.version is not None or reference.timestamp is not None
        if isinstance(meaning, SparkRelation):
            return None
        if reference.options is not None:
            raise UnsupportedStatementError(
                f"options on `{'.'.join(reference.parts)}` are not supported", remedy="Leave the WITH (...) out"
            )
        if reference.changes is not None:
            return self._open_changes(reference, meaning)
        if isinstance(meaning, WarehouseTable):
            _check_no_cycle(str(meaning.name), inside)
            return Table(meaning, self._version(meaning.log, reference) if travels else None)
        if travels:
            raise UnsupportedStatementError(
                f"`{'.'.join(reference.parts)}` is a view, and a view has no versions",
                remedy="Ask for the version of a table inside the view",
            )
        return self._open_view(meaning, namespace, inside)

    def _open_changes(
        self, reference: Reference, meaning: WarehouseTable | WarehouseView | TemporaryView
    ) -> ChangeFeedScan:
        if not isinstance(meaning, WarehouseTable):
            raise UnsupportedStatementError(
                f"`{'.'.join(reference.parts)}` is a view, and a view records no changes",
                remedy="Ask for the changes of a table inside the view",
            )
        start, *end = (table_changes.bound(self.namespace.spark, text) for text in reference.changes or ())
        return ChangeFeedScan(meaning, start, end[0] if end else None)

    def _open_view(self, meaning: WarehouseView | TemporaryView, namespace: Namespace, inside: tuple[str, ...]) -> View:
        if isinstance(meaning, TemporaryView):
            return View(self._inner(meaning.text, meaning.text, namespace, inside), (), meaning.columns)
        view = meaning.view
        scope = namespace.within(view.current_database, view.current_schema)
        columns = tuple(column.name for column in view.columns)
        return View(self._inner(view.text, str(view.name), scope, inside), full_name(view.name), columns)

    def _inner(self, text: str, key: str, namespace: Namespace, inside: tuple[str, ...]) -> ExpandedQuery:
        """The text of a view, expanded; `key` tells the view from those that it stands in."""
        _check_no_cycle(key, inside)
        return self._expand(SqlFragment(text), namespace, (*inside, key))

    def version_of(self, log: DeltaLog, travel: TimeTravel) -> int:
        """The version that `version as of` or `timestamp as of` means; that there is one of that number is not checked.

        Raises:
            InvalidStatementError: the expression gives no number, or no time.
            VersionNotFoundError: there was no version at that time, or the time lies after the newest.
        """
        if travel.version is not None:
            return _whole_number(self._value(travel.version, "bigint"), travel.version)
        return log.version_at(self.moment(str(travel.timestamp)))

    def moment(self, expression: str) -> int:
        """The value of a constant expression as a time, in milliseconds since 1970-01-01 UTC.

        Raises:
            InvalidStatementError: it gives no time.
        """
        value = self._value(f"unix_millis(cast({expression} as timestamp))", "bigint")
        return _whole_number(value, expression)

    def _version(self, log: DeltaLog, reference: Reference) -> Snapshot:
        return log.snapshot_at(self.version_of(log, TimeTravel(reference.version, reference.timestamp)))

    def _value(self, expression: str, type_name: str) -> object:
        """A constant's value; Spark folds it without a job."""
        return self.namespace.spark.sql(f"select cast({expression} as {type_name})").collect()[0][0]

    def _answered(self, node: ExpandedQuery, cut: Mapping[DeltaLog, Snapshot], reads: list[Read]) -> ExpandedQuery:
        """The text, and those of its views, with what the log alone can answer answered."""
        sql = node.text.sql
        answers = []
        for question in metadata_answers.questions(sql, self._relations(node, cut), self.time_zone):
            table = node.children[question.reference]
            assert isinstance(table, Table)
            snapshot = table.snapshot(cut)
            found = metadata_answers.answer(question, sql, snapshot, table.log.store)
            if found is not None:
                answers.append(self._folded(found) if question.is_scalar else found)
                nothing = snapshot.files.slice(0, 0)
                reads.append(Read(table.log, snapshot, nothing, found.read, is_latest=table.fixed is None))
        if answers:
            node = node.shortened(metadata_answers.rewritten(sql, answers))
        children = {
            reference: replace(child, query=self._answered(child.query, cut, reads))
            if isinstance(child, View)
            else child
            for reference, child in node.children.items()
        }
        return replace(node, children=children)

    def _folded(self, answer: Answer) -> Answer:
        """A scalar answer as one literal, by which files can be ruled out; Spark folds it without a job."""
        if answer.question.items[0].is_one_call:
            return answer
        spark = self.namespace.spark
        (member,) = kernel_schema(spark.sql(f"select {answer.sql} as value").schema)
        if member.type == PrimitiveType("timestamp"):
            # As a Python value it would go through the machine's time zone.
            value = self._value(f"unix_micros({answer.sql})", "bigint")
            value = _EPOCH + timedelta(microseconds=value) if isinstance(value, int) else None
        else:
            value = spark.sql(f"select {answer.sql}").collect()[0][0]
        text = metadata_answers.literal(value, member.type)
        return answer if text is None else replace(answer, sql=text)

    def _render(self, node: ExpandedQuery, cut: Mapping[DeltaLog, Snapshot], reads: list[Read]) -> str:
        predicates = self._predicates(node, cut)
        replacements: dict[Reference, Replacement] = {}
        for reference, child in node.children.items():
            if isinstance(child, View):
                replacements[reference] = Replacement(self._render_view(child, cut, reads), child.name)
                continue
            if isinstance(child, VirtualRelation):
                replacements[reference] = Replacement(self._render_other(child.source))
                continue
            if isinstance(child, ChangeFeedScan):
                replacements[reference] = self._render_changes(child, cut[child.log], reads)
                continue
            read = _read(child, cut, predicates.get(reference, TRUE))
            reads.append(read)
            replacements[reference] = Replacement(
                self.snapshot_views.view(read.log, read.snapshot, read.files), full_name(child.meaning.name)
            )
        distinct = {called.function.name: called for called in node.calls.values()}
        labels = {name: self._render_function(called, cut, reads) for name, called in distinct.items()}
        functions = {call: labels[called.function.name] for call, called in node.calls.items()}
        return rewrite(node.text.sql, replacements, node.text.outer, functions)

    def _render_function(self, called: FunctionCall, cut: Mapping[DeltaLog, Snapshot], reads: list[Read]) -> str:
        body = called.function.body if called.function.python else self._render(called.query, cut, reads)
        return self.snapshot_views.function(called.function, body)

    def _render_changes(self, child: ChangeFeedScan, latest: Snapshot, reads: list[Read]) -> Replacement:
        found = table_changes.changes(child.log, latest, child.start, child.end)
        # Which versions there are to tell of hangs on every commit.
        reads.append(Read(child.log, latest, latest.files.slice(0, 0), TRUE, is_latest=True))
        return Replacement(self.snapshot_views.changes(child.log, found), full_name(child.meaning.name))

    def _render_other(self, source: FileSource | Listing) -> str:
        if isinstance(source, FileSource):
            return self.snapshot_views.files(source)
        return self.snapshot_views.rows(source.rows(self.namespace.catalog))

    def _render_view(self, view: View, cut: Mapping[DeltaLog, Snapshot], reads: list[Read]) -> str:
        inner = self._render(view.query, cut, reads)
        if not view.columns:
            return f"({inner}\n)"
        columns = ", ".join(quote(column) for column in view.columns)
        return f"(select * from ({inner}\n) as __silt_view({columns}))"

    def _predicates(self, node: ExpandedQuery, cut: Mapping[DeltaLog, Snapshot]) -> Mapping[Reference, Expression]:
        return pruning_predicates(node.text.sql, self._relations(node, cut), self.time_zone)

    def _relations(self, node: ExpandedQuery, cut: Mapping[DeltaLog, Snapshot]) -> Mapping[Reference, Relation]:
        return {
            reference: Relation(child.snapshot(cut).schema, full_name(child.meaning.name))
            for reference, child in node.children.items()
            if isinstance(child, Table)
        }


def _read(table: Table, cut: Mapping[DeltaLog, Snapshot], predicate: Expression) -> Read:
    snapshot = table.snapshot(cut)
    files = snapshot.files if predicate == TRUE else skipping.prune(snapshot, predicate)
    return Read(table.log, snapshot, files, predicate, is_latest=table.fixed is None)


def _check_no_cycle(key: str, inside: tuple[str, ...]) -> None:
    if key in inside:
        path = " -> ".join((*inside, key))
        raise InvalidStatementError(f"the view {key} reads itself: {path}", remedy="Break the cycle")


def _whole_number(value: object, text: str) -> int:
    if not isinstance(value, int):
        raise InvalidStatementError(
            f"`{text}` is not a version or a time of a table", remedy="Give a version number or a timestamp"
        )
    return value
