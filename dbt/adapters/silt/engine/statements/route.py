"""Maps each kind of statement to the function that runs it.

A kind in the table is run, or refused with an error that names it. A statement of an unknown kind is passed to Spark
only if it mentions no relation of a warehouse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
from dbt.adapters.silt.engine.statements.resolve.build_facts import facts_of_query
from dbt.adapters.silt.engine.statements.steps.context import (
    Context,
    Result,
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


_ROUTES: Mapping[type[Statement], Callable[[Context, Any], Result]] = {
    ast.Query: _query,
    ast.Explain: _explain,
    ast.Unrecognised: pass_unrecognised,
    # tables, views, schemas
    ast.CreateTable: create_table.create_table,
    ast.CreateTableLike: create_table.create_table_like,
    ast.CreateView: views.create_view,
    ast.CreateViewUsing: pass_to_spark,
    ast.AlterViewQuery: views.alter_view_query,
    ast.CreateSchema: session.create_schema,
    ast.DropSchema: session.drop_schema,
    ast.DropTable: alter.drop_table,
    ast.DropView: views.drop_view,
    ast.Rename: alter.rename,
    ast.CreateFunction: functions.create_function,
    ast.DropFunction: functions.drop_function,
    # definitions of tables
    ast.AddColumns: alter.add_columns,
    ast.DropColumns: alter.drop_columns,
    ast.AlterColumns: alter.alter_columns_,
    ast.SetProperties: alter.set_properties,
    ast.UnsetProperties: alter.unset_properties,
    ast.AddConstraint: alter.add_constraint,
    ast.DropConstraint: alter.drop_constraint,
    ast.CommentOn: alter.comment_on,
    ast.AlterOther: alter.alter_other,
    # rows
    ast.Insert: insert.insert,
    ast.InsertDirectory: pass_with_own_query,
    ast.WriteRows: dataframe_write.write,
    ast.Delete: dml.delete,
    ast.Update: dml.update,
    ast.Merge: dml.merge,
    ast.Truncate: dml.truncate,
    # answers
    ast.DescribeTable: describe_show.describe_table,
    ast.DescribeHistory: describe_show.describe_history,
    ast.DescribeDetail: describe_show.describe_detail,
    ast.DescribeQuery: pass_with_own_query,
    ast.DescribeSchema: describe_show.describe_schema,
    ast.DescribeFunction: functions.describe_function,
    ast.Show: describe_show.show,
    # the session
    ast.Use: session.use,
    ast.SetSetting: session.set_setting,
    ast.ResetSetting: session.reset_setting,
    # transactions
    ast.Begin: session.begin,
    ast.Commit: session.commit,
    ast.Rollback: session.rollback,
    # maintenance
    ast.Cache: _not_yet("CACHE TABLE", lambda s: s.table),
    ast.Uncache: _not_yet("UNCACHE TABLE", lambda s: s.table or ()),
    ast.Refresh: maintenance.refresh,
    ast.Analyze: maintenance.analyze,
    ast.Optimize: maintenance.optimize,
    ast.Vacuum: maintenance.vacuum,
    ast.Restore: maintenance.restore,
    ast.Clone: create_table.clone,
    ast.ConvertToDelta: create_table.convert,
    ast.Call: pass_to_spark,
}
