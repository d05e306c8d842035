"""Runs BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.statements.steps.context import Context, Result

_NOTHING = Result()
_VERSIONS = "table string, version bigint"


def begin(context: Context, statement: ast.Begin) -> Result:  # noqa: ARG001
    """Runs BEGIN: the following statements are published together by COMMIT."""
    context.transaction.begin(context.namespace.database)
    return _NOTHING


def commit(context: Context, statement: ast.Commit) -> Result:  # noqa: ARG001
    """Runs COMMIT, which returns the new version of each changed table."""
    versions = context.transaction.commit()
    return context.rows(sorted(versions.items()), _VERSIONS)


def rollback(context: Context, statement: ast.Rollback) -> Result:  # noqa: ARG001
    """Runs ROLLBACK, which drops the changes of the transaction."""
    context.transaction.rollback()
    return _NOTHING
