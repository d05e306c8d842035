"""Which statements can change a table, a view, a schema or a function, and which only look or set up the session."""

from __future__ import annotations

from dbt.adapters.silt.engine.statements import kinds
from dbt.adapters.silt.engine.statements.parse import parse

_LOOKING = (
    kinds.Query,
    kinds.DescribeTable,
    kinds.DescribeHistory,
    kinds.DescribeDetail,
    kinds.DescribeQuery,
    kinds.DescribeSchema,
    kinds.DescribeFunction,
    kinds.Show,
    kinds.Explain,
    kinds.Use,
    kinds.SetSetting,
    kinds.ResetSetting,
    kinds.Cache,
    kinds.Uncache,
    kinds.Refresh,
    kinds.Analyze,
)


def changes_something(text: str) -> bool:
    """Whether a statement may leave something behind it; one that is not recognised may.

    Raises:
        StatementSyntaxError: see `parse`.
        UnsupportedStatementError: see `parse`.
    """
    statement = parse(text)
    if isinstance(statement, kinds.Vacuum):
        return not statement.dry_run
    return not isinstance(statement, _LOOKING)
