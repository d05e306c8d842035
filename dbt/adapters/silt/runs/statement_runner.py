"""Runs each statement of a dbt connection as its unit of work, and records the commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.contextvars import get_node_info

from dbt.adapters.silt.engine.builds.build_facts import facts_of_answer
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.builds import Build
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.sql.ast import Begin, ResetSetting, SetSetting, Statement
from dbt.adapters.silt.engine.statements.execute.affected_tables import Written
from dbt.adapters.silt.engine.statements.transactions.session_transaction import BRANCH_SETTING
from dbt.adapters.silt.engine.warehouse import Result, Warehouse
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.units import StatementScope, Unit, on_run_hook_scope, run_operation_scope
from dbt.adapters.silt.runs.current_node import CurrentNode
from dbt.adapters.silt.runs.logical_run.invocation import Invocation
from dbt.adapters.silt.runs.node_context import StatementUnits, job_tags, log_of, scope_of_node, table_of
from dbt.adapters.silt.runs.recorder import Recorder
from dbt.adapters.silt.runs.response import SiltResponse
from dbt.adapters.silt.runs.skips import skipped, superseded

logger = AdapterLogger("Silt")


@dataclass(frozen=True)
class _Change:
    """The table change of a statement that its SQL identifies; a node's own write is identified by the node instead.

    Attributes:
        written: the changed table, and the kind of change.
        scope: the scope of the statement's unit, or None if the statement is not a unit.
    """

    written: Written
    scope: StatementScope | None


class StatementRunner:
    """Runs the statements of a dbt command; thread-safe.

    Args:
        invocation: the command.
        node: the node that each thread runs.
        recorder: records the commits of statements.
        target: the name of the profile's target.
        database: the database of a node that names no database.
        query_comment: gives dbt's query comment for this thread, or None without a comment.
    """

    def __init__(
        self,
        invocation: Invocation,
        node: CurrentNode,
        recorder: Recorder,
        *,
        target: str,
        database: str,
        query_comment: Callable[[], str | None],
    ) -> None:
        self._invocation = invocation
        self._node = node
        self._recorder = recorder
        self._target = target
        self._database = database
        self._query_comment = query_comment
        self._units = StatementUnits()
        self._changed_names: set[RelationName] = set()

    def run(
        self, warehouse: Warehouse, text: str, own_unit: Unit | None = None, *, replace_tables: bool = False
    ) -> tuple[Result, SiltResponse]:
        """Runs a statement as its unit of work, and records its commit.

        Args:
            own_unit: the unit of a node's own write; the units of other statements follow from their SQL and the node.
            replace_tables: whether CREATE OR REPLACE VIEW may replace a table.

        Raises:
            SiltError: if the warehouse refuses the statement or cannot run it.
        """
        statement = warehouse.parsed(text)
        _check_is_unit(statement)
        self._invocation.on_statement(statement)
        if self._node.context.hooks is not None:
            self._node.context.hooks.note(warehouse, statement)
        change = None if own_unit is not None else self._change(warehouse, statement)
        unit = own_unit or self._unit_by_text(text, change)
        facts = self._facts(unit)
        late = self._superseded(warehouse.catalog, unit, change)
        if late is not None:
            self._recorder.record(late, facts, self._node.context.committed)
            return Result(), late
        names = () if own_unit is not None else warehouse.names_in_use(statement)
        result = self._execute(warehouse, statement, unit, facts, replace_tables)
        self._changed_names.update(names)
        response = self._recorded(result, unit, facts)
        if response.skipped and unit is not None and change is not None:
            self._explain_skip(warehouse.catalog, response, unit, change.written)
        return result, response

    def _recorded(self, result: Result, unit: Unit | None, facts: CommitFacts) -> SiltResponse:
        """Records the commit of a statement, and returns the response."""
        if result.facts is not None:
            self._node.context.facts = result.facts
        response = SiltResponse.of(result.outcome, unit)
        response.note = result.note or None
        if unit is not None and unit.build is not None and not response.skipped:
            response.add_reason(self._node.context.built_because)
        if result.outcome is not None and (result.outcome.audits or result.outcome.quarantined):
            self._note_audits(result.outcome, response)
        if unit is not None:
            self._units.note_done(unit)
        if result.outcome is not None:
            self._recorder.record(response, facts, self._node.context.committed)
        return response

    def _note_audits(self, outcome: Outcome, response: SiltResponse) -> None:
        """Adds the verdicts of a node's tests to the response of its write, and keeps them for these tests."""
        response.add_audits(outcome)
        if self._node.context.audited:
            self._node.audited.note(self._node.context.audited, outcome.audits, response)

    def take_changed_name(self, name: RelationName) -> bool:
        """Returns whether a statement has created or dropped a relation of that name since the last such call."""
        try:
            self._changed_names.remove(name)
        except KeyError:
            return False
        return True

    def job_tags(self) -> tuple[str, ...]:
        """Returns the tags of this thread's Spark jobs: the node, its own tags, the query comment."""
        return job_tags((get_node_info().get("unique_id"), *self._node.context.tags, self._query_comment()))

    def label(self) -> str:
        """Returns the node or operation that runs this thread's statements, for display; a node with its batch."""
        name = get_node_info().get("node_name") or self._invocation.operation or "dbt"
        batch = self._node.context.batch_id
        return f"{name} {batch}" if batch else str(name)

    def note_skip(self, response: SiltResponse, unit: Unit) -> None:
        """Records that an earlier commit had done a unit of work."""
        self._recorder.record(response, self._facts(unit), self._node.context.committed)

    def note_reuse(self, response: SiltResponse) -> None:
        """Records that a node was reused; the run has no unit of work for it."""
        self._recorder.record(response, self._facts(None), self._node.context.committed)

    def end_hooks(self, catalog: Catalog) -> None:
        """Records that the hooks after a node's own write have run, if its build waits for them."""
        hooks, own = self._node.context.hooks, self._node.context.own
        if hooks is None or own is None or own.build is None or not own.build.ends:
            return
        log = log_of(catalog, hooks.own)
        if log is not None:
            hooks.end(log, own, self._facts(own).commit_info())

    def note_answer(self, text: str, read: Mapping[DeltaLog, Snapshot]) -> None:
        """Keeps the facts of a data test's query that was answered without Spark.

        Args:
            read: the tables that the node has read so far.
        """
        test = self._node.context.test
        self._node.context.facts = None if test is None else facts_of_answer(test, text, read)

    def _change(self, warehouse: Warehouse, statement: Statement) -> _Change | None:
        """Returns None if the statement leaves no change in a table, or no run has started."""
        if not self._invocation.has_started:
            return None
        written = warehouse.written(statement)
        return None if written is None else _Change(written, self._node.context.scope or self._outer_scope())

    def _unit_by_text(self, text: str, change: _Change | None) -> Unit | None:
        """Returns the statement's unit of work, identified by name if the project's own materialization runs it."""
        node = self._node.context
        named = node.named.pop(0) if node.named else None
        if named is not None or change is None or change.scope is None or not node.is_unit(change.written):
            return named
        unit = self._units.next(change.scope, text)
        is_own = node.node is not None and change.written.table == table_of(node.node, self._database)
        return node.versioned(unit) if is_own else unit

    def _execute(
        self, warehouse: Warehouse, statement: Statement, unit: Unit | None, facts: CommitFacts, replace_tables: bool
    ) -> Result:
        return warehouse.execute(
            statement,
            unit.txn if unit else None,
            commit_info=facts.commit_info(),
            isolation_level=IsolationLevel(unit.isolation_level) if unit and unit.isolation_level else None,
            user_metadata=unit.user_metadata if unit else None,
            replace_tables=replace_tables,
            build=self._build(unit),
            audits=unit.audits if unit else None,
        )

    def _build(self, unit: Unit | None) -> Build | None:
        if unit is None:
            return self._node.context.test
        hooks = self._node.context.hooks
        return unit.build if unit.build is None or hooks is None else hooks.build(unit.build)

    def _superseded(self, catalog: Catalog, unit: Unit | None, change: _Change | None) -> SiltResponse | None:
        """Returns the response to a statement that is too late: its node's own write was committed earlier."""
        node = self._node.context.node
        if unit is None or change is None or change.scope is None or node is None or change.scope.own_write is None:
            return None
        if self._node.context.is_done_again:
            return None
        table = table_of(node, self._database)
        log = log_of(catalog, table) if change.written.table == table else None
        own_write = None if log is None else self._units.own_write_already_done(unit, change.scope, log)
        return None if log is None or own_write is None else superseded(log, unit, own_write)

    def _explain_skip(self, catalog: Catalog, response: SiltResponse, unit: Unit, written: Written) -> None:
        """Logs an unexpected skip, and every skip in an operation, because dbt shows no results of operations."""
        if self._invocation.operation is not None:
            logger.info(f"{response}; to do it again, use a new run id")
        elif (log := log_of(catalog, written.table)) is not None:
            skipped(log, unit)

    def _outer_scope(self) -> StatementScope | None:
        """Returns the scope of the on-run hook, the operation, or the node that this thread runs."""
        invocation, here = self._invocation, self._node.context
        if invocation.operation is not None:
            return run_operation_scope(invocation.context, invocation.operation)
        if here.is_writing_node:
            return scope_of_node(invocation.context, here.node, invocation.full_refresh, self._database)
        hook = get_node_info().get("unique_id") if here.node is None else None
        return on_run_hook_scope(invocation.context, hook, invocation.full_refresh) if hook else None

    def _facts(self, unit: Unit | None) -> CommitFacts:
        node = get_node_info()
        return CommitFacts(
            invocation_id=self._invocation.id,
            target=self._target,
            run_id=unit.run_id if unit else self._invocation.run_id,
            node_id=node.get("unique_id") or self._invocation.operation,
            batch_id=self._node.context.batch_id,
            app_id=unit.app_id if unit else None,
            node_checksum=(unit.checksum if unit else None) or node.get("node_checksum"),
            code_hash=unit.code_hash if unit else None,
            query_comment=(self._query_comment() or "").strip() or None,
        )


def _check_is_unit(statement: Statement) -> None:
    """Refuses the statements of transactions, which dbt's units of work cannot be part of."""
    if isinstance(statement, Begin):
        raise UnsupportedStatementError(
            "dbt's statements are units of work, which are committed one by one, not in a transaction",
            remedy="Leave `begin` and `commit` out",
        )
    if isinstance(statement, (SetSetting, ResetSetting)) and statement.key == BRANCH_SETTING:
        raise UnsupportedStatementError(
            f"dbt's statements belong to their own run, so `{BRANCH_SETTING}` cannot be set",
            remedy="Use `silt sql` for statements on the branch of a run",
        )
