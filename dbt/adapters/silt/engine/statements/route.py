"""Maps each kind of statement to the function that runs it.

A kind in the table is run, or refused with an error that names it. A statement of an unknown kind is passed to Spark
only if it mentions no relation of a warehouse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt.adapters.silt.engine.builds.build_facts import facts_of_query
from dbt.adapters.silt.engine.kernel.errors import InternalError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Statement
from dbt.adapters.silt.engine.statements.execute import (
    alter,
    create_table,
    dataframe_write,
    describe_show,
    dml,
    functions,
    insert,
    maintenance,
    session,
    views,
)
from dbt.adapters.silt.engine.statements.steps.context import (
    Context,
    Result,
    Routes,
    pass_to_spark,
    pass_unrecognised,
    pass_with_own_query,
    pass_with_query,
)


def route(statement: Statement, context: Context) -> Result:
    """Runs a statement.

    Raises:
        SiltError: see `kernel.errors`.
    """
    carry_out = _ROUTES.get(type(statement))
    if carry_out is None:
        raise InternalError(f"no route for a statement of kind {type(statement).__name__}")
    return carry_out(context, statement)


def _query(context: Context, statement: ast.Query) -> Result:
    resolved, build = context.resolver.query(statement.text), context.settings.build
    facts = None if build is None else facts_of_query(build, resolved, context.resolver.time_zone)
    return Result(dataframe=context.frame(resolved), facts=facts)


def _explain(context: Context, statement: ast.Explain) -> Result:
    if not isinstance(statement.statement, ast.Query):
        raise UnsupportedStatementError(
            "EXPLAIN of anything but a query is not supported", remedy="Explain the query that the statement holds"
        )
    return pass_with_query(context, statement, statement.statement.text)


def _not_yet(name: str, names: Callable[[Any], ast.Name]) -> Callable[[Context, Any], Result]:
    """Refuses a statement that is parsed but not supported; on Spark's own tables, Spark runs it."""

    def refuse(context: Context, statement: Any) -> Result:
        if not context.namespace.may_be_in_warehouse(names(statement)):
            return pass_to_spark(context, statement)
        raise UnsupportedStatementError(
            f"{name} is understood, but not supported", table=".".join(names(statement)), remedy="Leave it out"
        )

    return refuse


_ROUTES: Routes = {
    **create_table.ROUTES,
    **views.ROUTES,
    **session.ROUTES,
    **alter.ROUTES,
    **functions.ROUTES,
    **insert.ROUTES,
    **dataframe_write.ROUTES,
    **dml.ROUTES,
    **describe_show.ROUTES,
    **maintenance.ROUTES,
    ast.Query: _query,
    ast.Explain: _explain,
    ast.Unrecognised: pass_unrecognised,
    ast.CreateViewUsing: pass_to_spark,
    ast.InsertDirectory: pass_with_own_query,
    ast.DescribeQuery: pass_with_own_query,
    ast.Cache: _not_yet("CACHE TABLE", lambda s: s.table),
    ast.Uncache: _not_yet("UNCACHE TABLE", lambda s: s.table or ()),
    ast.Call: pass_to_spark,
}
