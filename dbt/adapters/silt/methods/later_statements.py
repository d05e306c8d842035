"""Macro API for statements that run after the publication of the run (`after_publish`, `silt_after_publish`).

A node or an on-run hook states them while it runs, rendered and checked; they are kept with the branch of the run. The
process that publishes the run runs them, or the next process of the run if that is killed. In a command whose changes
are visible at once, the macros run them as hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.units import StatementScope, model_hook_scope, on_run_hook_scope

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.catalog.branches import later_statements
    from dbt.adapters.silt.engine.sql import ast, tokens
    from dbt.adapters.silt.engine.statements.transactions import session_transaction
else:
    later_statements = lazy_module("dbt.adapters.silt.engine.catalog.branches.later_statements")
    ast = lazy_module("dbt.adapters.silt.engine.sql.ast")
    tokens = lazy_module("dbt.adapters.silt.engine.sql.tokens")
    session_transaction = lazy_module("dbt.adapters.silt.engine.statements.transactions.session_transaction")

_ROLE = "after_publish"


class LaterStatementMethods(metaclass=AdapterMeta):
    """The part of the adapter that leaves statements to the end of a published run."""

    config: Any
    connections: SiltConnectionManager

    @available.parse_none
    def end_hooks(self) -> None:
        """Records that the hooks after a node's own write have run: from now on, the write counts as a build."""
        if self.connections.node.context.hooks is not None:
            with self.connections.exception_handler("record that the hooks have run"):
                self.connections.sessions.runner.end_hooks(self.connections.catalog)

    def begin_later(self, model: Mapping[str, Any]) -> None:
        """Drops the statements that an earlier command of the run has left for the node, which states them again."""
        later = self.connections.publication.later
        if later is not None:
            with self.connections.exception_handler("read the statements that run after the publication"):
                later.begin(model["unique_id"])

    @available.parse(lambda *_, **__: False)
    def add_later(self, model: Mapping[str, Any], sql: str) -> bool:
        """Leaves the statements of SQL to the end of a run that is published; returns False for any other command.

        Args:
            model: the node, or the on-run hook.
        """
        later = self.connections.publication.later
        if later is None:
            return False
        with self.connections.exception_handler(sql):
            texts = tokens.split_statements(sql)
            for each in texts:
                self._check_later(each)
            scope = self._later_scope(model)
            later.add(
                model["unique_id"],
                [later_statements.LaterStatement(each, scope.unit(each, 1).app_id) for each in texts],
            )
        return True

    def _check_later(self, text: str) -> None:
        """Checks a statement before anything is published.

        Raises:
            StatementSyntaxError: if it is not a statement.
            UnsupportedStatementError: if it cannot run by itself.
        """
        statement = self.connections.handle.warehouse.parsed(text)
        is_branch = isinstance(statement, ast.SetSetting) and statement.key == session_transaction.BRANCH_SETTING
        if is_branch or isinstance(statement, (ast.Begin, ast.Commit, ast.Rollback)):
            raise UnsupportedStatementError(
                f"`{text}` cannot run after the publication: each statement there is committed by itself",
                remedy="Leave it out",
            )

    def _later_scope(self, model: Mapping[str, Any]) -> StatementScope:
        context = self.connections.invocation.context
        of_hook = on_run_hook_scope(context, model["unique_id"], False)
        return of_hook or model_hook_scope(context, model, _ROLE, str(model.get("relation_name")), False)
