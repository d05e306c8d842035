"""Asks Spark's own parser for the position of a mistake in SQL text."""

from __future__ import annotations

import re
from typing import Final

from dbt.adapters.silt.engine.commands.spark.errors import SPARKS, condition, syntax_remedy
from dbt.adapters.silt.engine.commands.spark.failures.causes import first_line
from dbt.adapters.silt.engine.commands.spark.failures.conditions import SYNTAX
from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.engine.sql.tokens import syntax_error
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace

_PLACE: Final = re.compile(r"\(line (\d+), pos (\d+)\)")


def mistake(namespace: Namespace, sql: str, *, is_query: bool) -> StatementSyntaxError | None:
    """Returns the first mistake in a query or an expression, unless Spark can parse it.

    The text is explained, not run: Spark parses it before it looks up its tables.
    """
    try:
        namespace.spark.sql(f"{'explain' if is_query else 'explain select'}\n{sql}")
    except SPARKS as error:
        if condition(error) in SYNTAX:
            return _placed(error, sql)
    return None


def _placed(error: Exception, sql: str) -> StatementSyntaxError:
    """Returns Spark's message with the position in the text; Spark counts the line of EXPLAIN as the first."""
    said = first_line(error).partition(" (line ")[0].rstrip(".")
    place = _PLACE.search(str(error))
    remedy = syntax_remedy(said)
    if place is None:
        return StatementSyntaxError(said, remedy=remedy)
    line, column = int(place[1]) - 2, int(place[2])
    return syntax_error(said, sql, sum(len(each) + 1 for each in sql.split("\n")[:line]) + column, remedy)
