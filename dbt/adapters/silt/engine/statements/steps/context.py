"""Context and Result: what a statement runs in, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.session_quotes import quotes_for
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.sql.query.quotes import at_rest
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver

_CHANGES_SCHEMA = (
    "operation string, version bigint, num_affected_rows bigint, num_inserted_rows bigint, "
    "num_updated_rows bigint, num_deleted_rows bigint, skipped boolean"
)


@dataclass(frozen=True)
class Result:
    """The result of a statement: rows to read (not yet computed), or the outcome of a change, or neither."""

    dataframe: DataFrame | None = None
    outcome: Outcome | None = None

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows to read; of a change, one row that says what it did."""
        if self.dataframe is not None:
            return self.dataframe
        return spark.createDataFrame([] if self.outcome is None else [_changes(self.outcome)], _CHANGES_SCHEMA)


@dataclass(frozen=True)
class Context:
    """One statement's surroundings: the session, what names mean in it, and how a write is to commit."""

    spark: SparkSession
    namespace: Namespace
    resolver: Resolver
    settings: WriteSettings

    @property
    def catalog(self) -> Catalog:
        return self.namespace.catalog

    def dataframe(self, query: str) -> DataFrame:
        """The query over pinned snapshots."""
        return self.frame(self.resolver.query(query))

    def frame(self, resolved: Resolved) -> DataFrame:
        """The first of the texts, a query."""
        frame = self.spark.sql(resolved.texts[0])
        return frame.toDF(*map(resolved.shown, frame.columns)) if resolved.functions else frame

    def kept(self, text: str) -> str:
        """A text of the statement as a table or the catalog keeps it."""
        return at_rest(text, quotes_for(self.spark, text))

    def rows(self, rows: Sequence[Sequence[object]], schema: str) -> Result:
        """An answer that the engine itself has; `schema` is in Spark's DDL form."""
        return Result(dataframe=self.spark.createDataFrame([tuple(row) for row in rows], schema))


def _changes(outcome: Outcome) -> tuple[object, ...]:
    counts = (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted)
    known = [count for count in counts if count is not None]
    affected = sum(known) if known else None
    return (outcome.operation, outcome.version, affected, *counts, outcome.skipped)
