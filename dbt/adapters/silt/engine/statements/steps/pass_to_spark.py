"""Passes statements that change nothing in a warehouse to Spark."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql.ast import DescribeQuery, InsertDirectory, Statement, Unrecognised
from dbt.adapters.silt.engine.sql.mistakes import statement_remedy
from dbt.adapters.silt.engine.statements.steps.context import Context, Result


def pass_to_spark(context: Context, statement: Statement) -> Result:
    """Runs a statement that names nothing in a warehouse, unchanged."""
    return Result(dataframe=context.spark.sql(statement.text))


def pass_with_query(context: Context, statement: Statement, query: str | None) -> Result:
    """Runs a statement on a relation of Spark, whose query may read tables of a warehouse."""
    if query is None:
        return pass_to_spark(context, statement)
    at = statement.text.rindex(query)
    resolved = context.resolver.query(query).texts[0]
    text = f"{statement.text[:at]}{resolved}{statement.text[at + len(query) :]}"
    return Result(dataframe=context.spark.sql(text))


def pass_with_own_query(context: Context, statement: DescribeQuery | InsertDirectory) -> Result:
    """Runs DESCRIBE QUERY or INSERT OVERWRITE DIRECTORY, which have a query and name no table."""
    return pass_with_query(context, statement, statement.query)


def pass_unrecognised(context: Context, statement: Unrecognised) -> Result:
    """Runs a statement of an unknown kind, unless any of its names may be in a warehouse.

    Raises:
        UnsupportedStatementError: if it mentions a name in a warehouse.
    """
    for name in statement.mentions:
        if context.namespace.may_be_in_warehouse(name):
            raise UnsupportedStatementError(
                f"a statement that names it is not supported: {statement.text[:80]}",
                table=".".join(name),
                remedy=statement_remedy(statement.text) or "Use a statement that the documentation lists",
            )
    return pass_to_spark(context, statement)
