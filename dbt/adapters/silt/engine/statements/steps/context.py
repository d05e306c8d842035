"""Context and Result: the environment of a statement, and its result; for example of a statement that Spark runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.session_settings import quotes_for
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import string_literal
from dbt.adapters.silt.engine.kernel.log.builds import BuildFacts
from dbt.adapters.silt.engine.sql.ast import DescribeQuery, InsertDirectory, Statement, Unrecognised
from dbt.adapters.silt.engine.sql.mistakes import statement_remedy
from dbt.adapters.silt.engine.sql.query.quotes import at_rest
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver
from dbt.adapters.silt.engine.statements.transactions.session_transaction import SessionTransaction

_COUNTS: Final = ("version", "num_affected_rows", "num_inserted_rows", "num_updated_rows", "num_deleted_rows")


@dataclass(frozen=True)
class Result:
    """The result of a statement: rows to read (not yet computed), or the outcome of a change, or neither.

    Attributes:
        facts: the facts that determine a query's rows, if they were requested.
        note: the rows of a maintenance statement as a line for people; empty if people read the rows.
    """

    dataframe: DataFrame | None = None
    outcome: Outcome | None = None
    facts: BuildFacts | None = None
    note: str = ""

    def rows(self, spark: SparkSession) -> DataFrame:
        """Returns the rows to read, or, for a change, a single row that summarises it."""
        if self.dataframe is not None:
            return self.dataframe
        return spark.sql(_changes(self.outcome))


@dataclass(frozen=True)
class Context:
    """The environment of a statement: the session, the namespace, the settings of a write, and the transaction."""

    spark: SparkSession
    namespace: Namespace
    resolver: Resolver
    settings: WriteSettings
    transaction: SessionTransaction

    @property
    def catalog(self) -> Catalog:
        return self.namespace.catalog

    def dataframe(self, query: str) -> DataFrame:
        """Returns the DataFrame of the query over pinned snapshots."""
        return self.frame(self.resolver.query(query))

    def frame(self, resolved: Resolved, at: int = 0) -> DataFrame:
        """Returns the DataFrame of a resolved text, a query, by its position."""
        frame = self.spark.sql(resolved.texts[at])
        return frame.toDF(*map(resolved.shown, frame.columns)) if resolved.functions else frame

    def kept(self, text: str) -> str:
        """Returns the SQL as a table or the catalog stores it."""
        return at_rest(text, quotes_for(self.spark, text))

    def rows(self, rows: Sequence[Sequence[object]], schema: str) -> Result:
        """Returns rows of the engine itself; `schema` is in Spark's DDL form."""
        return Result(dataframe=self.spark.createDataFrame([tuple(row) for row in rows], schema))


def _changes(outcome: Outcome | None) -> str:
    """Returns a query for the row that summarises a change, or for no row if there was no change."""
    if outcome is None:
        return f"{_changes(Outcome('', '', None))} limit 0"
    values = (outcome.version, outcome.rows_affected, *outcome.rows)
    counts = (
        f"cast({'null' if value is None else value} as bigint) as {name}"
        for name, value in zip(_COUNTS, values, strict=True)
    )
    operation = string_literal(outcome.operation)
    return f"select {operation} as operation, {', '.join(counts)}, {str(outcome.skipped).lower()} as skipped"


Routes: TypeAlias = Mapping[type[Statement], Callable[[Context, Any], Result]]
"""The kinds of statements that a module runs, each with its function."""


def pass_to_spark(context: Context, statement: Statement) -> Result:
    """Runs a statement that names nothing in a warehouse, unchanged."""
    return Result(dataframe=context.spark.sql(statement.text))


def pass_with_query(context: Context, statement: Statement, query: str | None) -> Result:
    """Runs a statement on a relation of Spark, whose query may read tables of a warehouse.

    Raises:
        UnsupportedStatementError: if the statement has audits of the table that it changes.
    """
    if context.settings.audits is not None and context.settings.audits.table is None:
        raise UnsupportedStatementError(
            "only a statement on a table of a warehouse can be audited", remedy="Leave the audits out"
        )
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
