"""From a statement's kind to what carries it out: one table.

A kind that stands in the table is carried out, or refused by name; a statement of an unknown kind goes to Spark only if
nothing that it mentions is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.silt.engine.kernel.errors import InternalError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Statement
from dbt.adapters.silt.engine.statements import (
    alterations,
    answers,
    changes,
    definitions,
    foreign,
    functions,
    inserts,
    past,
    tables,
    upkeep,
    writes,
)
from dbt.adapters.silt.engine.statements.context import Context, Result


def route(statement: Statement, context: Context) -> Result:
    """Carries out one statement.

    Raises:
        SiltError: see `kernel.errors`.
    """
    carry_out = _ROUTES.get(type(statement))
    if carry_out is None:
        raise InternalError(f"no route for a statement of kind {type(statement).__name__}")
    return carry_out(context, statement)


def _query(context: Context, statement: ast.Query) -> Result:
    return Result(dataframe=context.dataframe(statement.text))


def _explain(context: Context, statement: ast.Explain) -> Result:
    if not isinstance(statement.statement, ast.Query):
        raise UnsupportedStatementError(
            "EXPLAIN of anything but a query is not supported", remedy="Explain the query that the statement holds"
        )
    return foreign.pass_with_query(context, statement, statement.statement.text)


def _not_yet(name: str, names: Callable[[Any], ast.Name]) -> Callable[[Context, Any], Result]:
    """A statement of ours that is understood and has no command; on Spark's own tables it is Spark's."""

    def refuse(context: Context, statement: Any) -> Result:
        if not context.namespace.may_be_ours(names(statement)):
            return foreign.pass_to_spark(context, statement)
        raise UnsupportedStatementError(
            f"{name} is understood, but not supported", table=".".join(names(statement)), remedy="Leave it out"
        )

    return refuse


_ROUTES: Mapping[type[Statement], Callable[[Context, Any], Result]] = {
    ast.Query: _query,
    ast.Explain: _explain,
    ast.Unrecognised: foreign.pass_unrecognised,
    # tables, views, schemas
    ast.CreateTable: tables.create_table,
    ast.CreateTableLike: tables.create_table_like,
    ast.CreateView: definitions.create_view,
    ast.CreateViewUsing: foreign.pass_to_spark,
    ast.AlterViewQuery: definitions.alter_view_query,
    ast.CreateSchema: definitions.create_schema,
    ast.DropSchema: definitions.drop_schema,
    ast.DropTable: definitions.drop_table,
    ast.DropView: definitions.drop_view,
    ast.Rename: definitions.rename,
    ast.CreateFunction: functions.create_function,
    ast.DropFunction: functions.drop_function,
    # what a table is
    ast.AddColumns: alterations.add_columns,
    ast.DropColumns: alterations.drop_columns,
    ast.AlterColumns: alterations.alter_columns_,
    ast.SetProperties: alterations.set_properties,
    ast.UnsetProperties: alterations.unset_properties,
    ast.AddConstraint: alterations.add_constraint,
    ast.DropConstraint: alterations.drop_constraint,
    ast.CommentOn: alterations.comment_on,
    ast.AlterOther: alterations.alter_other,
    # rows
    ast.Insert: inserts.insert,
    ast.InsertDirectory: inserts.insert_directory,
    ast.WriteRows: writes.write,
    ast.Delete: changes.delete,
    ast.Update: changes.update,
    ast.Merge: changes.merge,
    ast.Truncate: changes.truncate,
    # answers
    ast.DescribeTable: answers.describe_table,
    ast.DescribeHistory: answers.describe_history,
    ast.DescribeDetail: answers.describe_detail,
    ast.DescribeQuery: answers.describe_query,
    ast.DescribeSchema: answers.describe_schema,
    ast.DescribeFunction: functions.describe_function,
    ast.Show: answers.show,
    # the session
    ast.Use: definitions.use,
    ast.SetSetting: definitions.set_setting,
    ast.ResetSetting: definitions.reset_setting,
    # upkeep
    ast.Cache: _not_yet("CACHE TABLE", lambda s: s.name),
    ast.Uncache: _not_yet("UNCACHE TABLE", lambda s: s.name or ()),
    ast.Refresh: answers.nothing_to_do,
    ast.Analyze: answers.nothing_to_do,
    ast.Optimize: upkeep.optimize,
    ast.Vacuum: upkeep.vacuum,
    ast.Restore: past.restore,
    ast.Clone: past.clone,
    ast.ConvertToDelta: past.convert,
    ast.Call: foreign.pass_to_spark,
}
