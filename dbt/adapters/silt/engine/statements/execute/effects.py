"""Which statements can change a table, a view, a schema or a function, and which only look or set up the session."""

from __future__ import annotations

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.grammar.parse import parse

_LOOKING = (
    ast.Query,
    ast.DescribeTable,
    ast.DescribeHistory,
    ast.DescribeDetail,
    ast.DescribeQuery,
    ast.DescribeSchema,
    ast.DescribeFunction,
    ast.Show,
    ast.Explain,
    ast.Use,
    ast.SetSetting,
    ast.ResetSetting,
    ast.Cache,
    ast.Uncache,
    ast.Refresh,
    ast.Analyze,
)


def changes_something(text: str) -> bool:
    """Whether a statement may leave something behind it; one that is not recognised may.

    Raises:
        StatementSyntaxError: see `parse`.
        UnsupportedStatementError: see `parse`.
    """
    statement = parse(text)
    if isinstance(statement, ast.Vacuum):
        return not statement.dry_run
    return not isinstance(statement, _LOOKING)
