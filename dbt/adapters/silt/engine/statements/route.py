"""From a statement's kind to what carries it out: one table.

A kind that stands in the table is carried out, or refused by name; a statement of an unknown kind goes to Spark only if
nothing that it mentions is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.silt.engine.kernel.errors import InternalError, UnsupportedStatementError
from dbt.adapters.silt.engine.statements import (
    alterations,
    answers,
    changes,
    definitions,
    foreign,
    functions,
    inserts,
    kinds,
    past,
    tables,
    upkeep,
    writes,
)
from dbt.adapters.silt.engine.statements.context import Context, Result
from dbt.adapters.silt.engine.statements.kinds import Statement


def route(statement: Statement, context: Context) -> Result:
    """Carries out one statement.

    Raises:
        SiltError: see `kernel.errors`.
    """
    carry_out = _ROUTES.get(type(statement))
    if carry_out is None:
        raise InternalError(f"no route for a statement of kind {type(statement).__name__}")
    return carry_out(context, statement)


def _query(context: Context, statement: kinds.Query) -> Result:
    return Result(dataframe=context.dataframe(statement.text))


def _explain(context: Context, statement: kinds.Explain) -> Result:
    if not isinstance(statement.statement, kinds.Query):
        raise UnsupportedStatementError(
            "EXPLAIN of anything but a query is not supported", remedy="Explain the query that the statement holds"
        )
    return foreign.pass_with_query(context, statement, statement.statement.text)


def _not_yet(name: str, names: Callable[[Any], kinds.Name]) -> Callable[[Context, Any], Result]:
    """A statement of ours that is understood and has no command; on Spark's own tables it is Spark's."""

    def refuse(context: Context, statement: Any) -> Result:
        if not context.namespace.may_be_ours(names(statement)):
            return foreign.pass_to_spark(context, statement)
        raise UnsupportedStatementError(
            f"{name} is understood, but not supported", table=".".join(names(statement)), remedy="Leave it out"
        )

    return refuse


_ROUTES: Mapping[type[Statement], Callable[[Context, Any], Result]] = {
    kinds.Query: _query,
    kinds.Explain: _explain,
    kinds.Unrecognised: foreign.pass_unrecognised,
    # tables, views, schemas
    kinds.CreateTable: tables.create_table,
    kinds.CreateTableLike: tables.create_table_like,
    kinds.CreateView: definitions.create_view,
    kinds.CreateViewUsing: foreign.pass_to_spark,
    kinds.AlterViewQuery: definitions.alter_view_query,
    kinds.CreateSchema: definitions.create_schema,
    kinds.DropSchema: definitions.drop_schema,
    kinds.DropTable: definitions.drop_table,
    kinds.DropView: definitions.drop_view,
    kinds.Rename: definitions.rename,
    kinds.CreateFunction: functions.create_function,
    kinds.DropFunction: functions.drop_function,
    # what a table is
    kinds.AddColumns: alterations.add_columns,
    kinds.DropColumns: alterations.drop_columns,
    kinds.AlterColumns: alterations.alter_columns_,
    kinds.SetProperties: alterations.set_properties,
    kinds.UnsetProperties: alterations.unset_properties,
    kinds.AddConstraint: alterations.add_constraint,
    kinds.DropConstraint: alterations.drop_constraint,
    kinds.CommentOn: alterations.comment_on,
    kinds.AlterOther: alterations.alter_other,
    # rows
    kinds.Insert: inserts.insert,
    kinds.InsertDirectory: inserts.insert_directory,
    kinds.WriteRows: writes.write,
    kinds.Delete: changes.delete,
    kinds.Update: changes.update,
    kinds.Merge: changes.merge,
    kinds.Truncate: changes.truncate,
    # answers
    kinds.DescribeTable: answers.describe_table,
    kinds.DescribeHistory: answers.describe_history,
    kinds.DescribeDetail: answers.describe_detail,
    kinds.DescribeQuery: answers.describe_query,
    kinds.DescribeSchema: answers.describe_schema,
    kinds.DescribeFunction: functions.describe_function,
    kinds.Show: answers.show,
    # the session
    kinds.Use: definitions.use,
    kinds.SetSetting: definitions.set_setting,
    kinds.ResetSetting: definitions.reset_setting,
    # upkeep
    kinds.Cache: _not_yet("CACHE TABLE", lambda s: s.name),
    kinds.Uncache: _not_yet("UNCACHE TABLE", lambda s: s.name or ()),
    kinds.Refresh: answers.nothing_to_do,
    kinds.Analyze: answers.nothing_to_do,
    kinds.Optimize: upkeep.optimize,
    kinds.Vacuum: upkeep.vacuum,
    kinds.Restore: past.restore,
    kinds.Clone: past.clone,
    kinds.ConvertToDelta: past.convert,
    kinds.Call: foreign.pass_to_spark,
}
