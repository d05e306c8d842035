"""Expands a text: resolves its references and calls, and the references and calls of its views and functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.silt.engine.catalog.names import documents
from dbt.adapters.silt.engine.catalog.names.documents import Function
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.commands.spark.session_settings import quotes_for
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import Name, TimeTravel
from dbt.adapters.silt.engine.sql.query.quotes import for_session
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.sql.query.table_functions import DifferenceCall
from dbt.adapters.silt.engine.statements.resolve import changes_functions, expansion
from dbt.adapters.silt.engine.statements.resolve.changes_functions import Consumer, Options
from dbt.adapters.silt.engine.statements.resolve.information_schema import listing
from dbt.adapters.silt.engine.statements.resolve.namespace import (
    Namespace,
    SparkRelation,
    TemporaryView,
    WarehouseTable,
    WarehouseView,
    version_of,
)
from dbt.adapters.silt.engine.statements.resolve.stored_code import Allowed


@dataclass(frozen=True)
class Expander:
    """Expands the texts of a statement; the text of a view or function is expanded once, however often it is named.

    Args:
        session: the session's own namespace.
        allowed: the permissions of the texts of views and functions.
        most_texts: the limit of the texts of views and functions (`Extent.check`).
    """

    session: Namespace
    allowed: Allowed
    most_texts: int = expansion.MOST_TEXTS
    _known: dict[tuple[str | None, ...], expansion.ExpandedQuery] = field(default_factory=dict, init=False, repr=False)

    def query(
        self, text: expansion.SqlFragment, namespace: Namespace, inside: tuple[str, ...], owner: str | None = None
    ) -> expansion.ExpandedQuery:
        """Returns the expanded text.

        Args:
            namespace: resolves the names in the text.
            inside: the views and functions that contain the text, the outermost first.
            owner: the view or function whose stored text it is; None for the session's own text.

        Raises:
            InvalidStatementError: if a view reads itself, or a function calls itself.
            RelationNotFoundError: if a name of the warehouse does not exist.
            ExternalPathError: if stored SQL reads files that it may not read.
            StoredCodeError: if stored SQL contains forbidden code.
            UnsupportedStatementError: if a reference is not supported, or there are too many views and functions
                (`Extent.check`).
        """
        expansion.Extent.of(text.sql).check(inside, self.most_texts)
        if owner is not None:
            self.allowed.check_text(text.sql, owner)
        scan = text.text.scan
        expanded = {each: self._reference(each, namespace, inside, owner) for each in scan.references}
        children = {reference: child for reference, child in expanded.items() if child is not None}
        functions = {name: namespace.function(name) for name in {call.parts for call in scan.calls}}
        called = {
            name: self.function(function, namespace, inside)
            for name, function in functions.items()
            if function is not None
        }
        calls = {call: called[call.parts] for call in scan.calls if call.parts in called}
        # The size of change data is not known here.
        inner = all(
            child.query.only_warehouse_tables
            if isinstance(child, expansion.View | expansion.FunctionCall)
            else isinstance(child, expansion.Table)
            for child in (*children.values(), *calls.values())
        )
        query = expansion.ExpandedQuery(text, children, calls, inner and len(children) == len(scan.references))
        query.extent.check(inside, self.most_texts)
        return query

    def function(self, function: Function, namespace: Namespace, inside: tuple[str, ...]) -> expansion.FunctionCall:
        """Returns the function with its body expanded; arguments and errors are as for `query`."""
        scope = namespace.within(function.current_database, function.current_schema)
        key = f"{function.name}()"
        if key in inside:
            raise InvalidStatementError(
                f"the function {function.name} calls itself: {' -> '.join((*inside, key))}", remedy="Break the cycle"
            )
        self.allowed.check_function(function)
        body = function.body if function.python is None else ""
        return expansion.FunctionCall(self._inner(body, scope, (*inside, key), str(function.name)), function)

    def _reference(
        self, reference: Reference, namespace: Namespace, inside: tuple[str, ...], owner: str | None
    ) -> expansion.Child | None:
        """Resolves the reference, or returns None for a relation of Spark."""
        if owner is not None:
            self.allowed.check_reference(reference, namespace, owner)
        if reference.files is not None:
            files = reference.files
            _check_no_tables_file(files.path, namespace)
            return expansion.VirtualRelation(
                FileSource(files.path, files.options, files.text, namespace.catalog.store_at)
            )
        listed = listing(reference.parts, namespace)
        if listed is not None:
            return expansion.VirtualRelation(listed)
        meaning = namespace.meaning(reference.parts)
        if isinstance(meaning, SparkRelation):
            _check_not_difference(reference)
            if len(reference.parts) == 2:
                _check_no_tables_file(reference.parts[1], namespace)
            if owner is not None:
                self.allowed.check_sparks(reference, namespace, owner)
            return None
        if reference.options is not None:
            raise UnsupportedStatementError(
                f"options on `{'.'.join(reference.parts)}` are not supported", remedy="Leave the WITH (...) out"
            )
        if reference.reads_changes:
            return self._changes(reference, meaning, namespace)
        if isinstance(meaning, WarehouseTable):
            _check_no_cycle(str(meaning.name), inside)
            return self._table(reference, meaning)
        if reference.version is not None or reference.timestamp is not None:
            raise UnsupportedStatementError(
                f"`{'.'.join(reference.parts)}` is a view, and a view has no versions",
                remedy="Ask for the version of a table inside the view",
            )
        if isinstance(meaning, TemporaryView):
            return self._temporary_view(reference, meaning, namespace, inside)
        return self._view(meaning.view, namespace, inside)

    def _table(self, reference: Reference, meaning: WarehouseTable) -> expansion.Table:
        if reference.version is None and reference.timestamp is None:
            return expansion.Table(meaning, None)
        travel = TimeTravel(reference.version, reference.timestamp)
        return expansion.Table(meaning, meaning.log.snapshot_at(version_of(self.session, meaning.log, travel)))

    def _changes(
        self, reference: Reference, meaning: WarehouseTable | WarehouseView | TemporaryView, namespace: Namespace
    ) -> expansion.ChangeFeedScan | expansion.DifferenceScan:
        if not isinstance(meaning, WarehouseTable):
            raise UnsupportedStatementError(
                f"`{'.'.join(reference.parts)}` is a view, and a view records no changes",
                remedy="Ask for the changes of a table inside the view",
            )
        if reference.difference is not None:
            return self._difference(reference.difference, meaning, namespace)
        start, *end = (changes_functions.bound(self.session.spark, text) for text in reference.changes or ())
        return expansion.ChangeFeedScan(meaning, start, end[0] if end else None)

    def _difference(
        self, call: DifferenceCall, meaning: WarehouseTable, namespace: Namespace
    ) -> expansion.DifferenceScan:
        after, until = (
            None if text is None else changes_functions.version(self.session.spark, text)
            for text in (call.after, call.until)
        )
        consumer = None if call.consumer is None else _consumer(namespace, call.consumer)
        return expansion.DifferenceScan(meaning, Options(after, until, call.keys), consumer)

    def _temporary_view(
        self, reference: Reference, meaning: TemporaryView, namespace: Namespace, inside: tuple[str, ...]
    ) -> expansion.View:
        key = quote(reference.parts[-1].lower())
        _check_no_cycle(key, inside)
        query = self._inner(meaning.text, namespace, (*inside, key), None)
        return expansion.View(query, (), meaning.columns, meaning.query_columns)

    def _view(self, view: documents.View, namespace: Namespace, inside: tuple[str, ...]) -> expansion.View:
        key = str(view.name)
        _check_no_cycle(key, inside)
        scope = namespace.within(view.current_database, view.current_schema)
        columns = tuple(column.name for column in view.columns)
        query = self._inner(view.text, scope, (*inside, key), key)
        return expansion.View(query, expansion.full_name(view.name), columns, view.query_columns, view.fingerprint)

    def _inner(
        self, text: str, namespace: Namespace, inside: tuple[str, ...], owner: str | None
    ) -> expansion.ExpandedQuery:
        """Returns the text of the innermost view or function in `inside`, expanded at the first request."""
        known = (inside[-1], owner, text, namespace.database, namespace.schema)
        if known not in self._known:
            if owner is not None:
                self.allowed.check_text(text, owner)
            # The catalog stores the text with its own quotes.
            sql = for_session(text, quotes_for(self.session.spark, text))
            self._known[known] = self.query(expansion.SqlFragment(sql), namespace, inside, owner)
        return self._known[known]


def _check_not_difference(reference: Reference) -> None:
    if reference.difference is not None:
        raise UnsupportedStatementError(
            f"`{'.'.join(reference.parts)}` is not a table of the warehouse, so its changes are not known",
            remedy="Read the table itself",
        )


def _check_no_tables_file(path: str, namespace: Namespace) -> None:
    """Checks that a text does not read files of a table whose branch it works on, which may belong to any version."""
    name = namespace.catalog.branch_table_of(path)
    if name is not None:
        raise UnsupportedStatementError(
            "a transaction cannot read the files of a table of its database by their path",
            table=str(name),
            remedy="Name the table",
        )


def _consumer(namespace: Namespace, name: Name) -> Consumer:
    """Returns the consumer of changes, which need not exist yet.

    Raises:
        InvalidStatementError: if the name is not in the warehouse.
    """
    full = namespace.name_in_warehouse(name)
    if full is None:
        raise InvalidStatementError(
            f"`{'.'.join(name)}` is not in the warehouse, and only a table of the warehouse can consume changes",
            remedy="Name the table that the statement writes",
        )
    entry = namespace.catalog.find(full)
    is_table = entry is not None and entry.kind is RelationKind.TABLE
    return Consumer(full, namespace.catalog.table(full) if is_table else None)


def _check_no_cycle(key: str, inside: tuple[str, ...]) -> None:
    if key in inside:
        path = " -> ".join((*inside, key))
        raise InvalidStatementError(f"the view {key} reads itself: {path}", remedy="Break the cycle")
