"""Runs statements: without Spark if the answer is certainly the same, else by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.silt.cli.shell.explaining import explanation
from dbt.adapters.silt.cli.shell.output import Explanation, Result, RowsFound
from dbt.adapters.silt.cli.shell.spark_process import STARTS, SparkProcess
from dbt.adapters.silt.engine.answers.explained import explained
from dbt.adapters.silt.engine.answers.quick import Quick
from dbt.adapters.silt.engine.answers.select_text import table_select
from dbt.adapters.silt.engine.answers.sessions import Names, change_no_answer, changes_session, known_zone
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.rows.types import uniform
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Statement
from dbt.adapters.silt.engine.sql.grammar.parse import parse
from dbt.adapters.silt.engine.sql.grammar.session import immediate
from dbt.adapters.silt.engine.sql.query.references import scanned


@dataclass(frozen=True)
class ShellContext:
    """The warehouse and settings of a shell's statements.

    Attributes:
        catalog: the warehouse.
        database, schema: the defaults of a name without these parts.
        spark_conf: the profile's settings of Spark, not rendered.
        has_own_spark: whether a Spark is started for the profile; such a Spark has no tables of its own.
        profile: the request that opens the warehouse in Spark's process.
        notice: the message to the user when that process starts.
        is_kept: whether its Spark may be kept between commands.
    """

    catalog: Catalog
    database: str
    schema: str
    spark_conf: Mapping[str, Any]
    has_own_spark: bool
    profile: Mapping[str, Any]
    notice: str = STARTS
    is_kept: bool = False


@dataclass
class Statements:
    """Runs the statements of a shell in order and in the same session, whose settings may change their meaning."""

    context: ShellContext
    spark: SparkProcess = field(init=False)
    is_in_transaction: bool = field(default=False, init=False)
    """Whether a transaction has begun and has not ended."""
    _is_plain: bool = field(init=False)
    _sessions_ended: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.spark = SparkProcess(self.context.profile, self.context.notice, self.context.is_kept)
        self._is_plain = self._begins_plain

    def run(self, text: str, most: int | None = None) -> Result:
        """Runs a statement.

        Args:
            most: the maximum number of its rows to return; by default all.

        Raises:
            SiltError, StatementFailedError: if it failed.
            CancelledError, KeyboardInterrupt: if it was cancelled.
        """
        self._check_session()
        statement = self._parsed(text)
        if isinstance(statement, ast.Explain) and statement.mode is None:
            return self._explained(statement)
        quick = self._quick()
        answer = None if quick is None or statement is None else quick.answer(statement, most)
        if answer is not None:
            return RowsFound(uniform(answer.rows))
        self._is_plain = self._is_plain and not changes_session(statement)
        if isinstance(statement, (ast.Commit, ast.Rollback)):
            self.is_in_transaction = False  # even if it fails
        found = self.spark.run(text, most, may_commit=statement is None or statement.changes_something)
        self.is_in_transaction = self.is_in_transaction or isinstance(statement, ast.Begin)
        return replace(found, rows=uniform(found.rows)) if isinstance(found, RowsFound) else found

    @property
    def _begins_plain(self) -> bool:
        return change_no_answer(self.context.spark_conf)

    def _check_session(self) -> None:
        """Checks that statements still have the same meaning.

        Raises:
            SparkEndedError: once after Spark has ended, if statements had changed its session: in a new session, the
                name after a `use` would mean another table.
        """
        ended, self._sessions_ended = self._sessions_ended, self.spark.sessions_ended
        if ended == self._sessions_ended or self._is_plain == self._begins_plain:
            return
        self._is_plain = self._begins_plain
        was_open, self.is_in_transaction = self.is_in_transaction, False
        lost = "the open transaction, which changed nothing, and " if was_open else ""
        raise errors.SparkEndedError(
            f"the statement was not run: Spark has ended, and {lost}"
            "the session's SET, USE and temporary views are lost",
            remedy="Run them again, then this statement",
        )

    def _parsed(self, text: str) -> Statement | None:
        """Returns the parsed statement, or None if only the session can parse it."""
        try:
            return None if immediate(text) is not None else parse(text)
        except errors.StatementSyntaxError:
            if self._is_plain:
                raise
            return None

    def close(self) -> None:
        """Stops Spark, if it was started."""
        self.spark.close()

    @property
    def names(self) -> Names:
        """The names in the warehouse; valid as long as no statement has changed their meaning."""
        given = self.context
        return Names(given.catalog.for_statement(), given.database, given.schema, given.has_own_spark)

    def _quick(self) -> Quick | None:
        return Quick(self.names, known_zone(self.context.spark_conf)) if self._is_plain else None

    def _explained(self, statement: ast.Explain) -> Explanation:
        quick = self._quick()
        if not isinstance(statement.statement, ast.Query):
            raise errors.UnsupportedStatementError(
                "only a query can be explained", remedy="Explain the query of the statement"
            )
        if quick is None:
            raise errors.UnsupportedStatementError(
                "settings of this session change the meaning of statements, so only Spark can explain them",
                remedy="Use Spark's plan, `explain extended ...`, or a new shell",
            )
        try:
            return explanation(explained(quick, statement.statement))
        except errors.RelationNotFoundError:
            if table_select(scanned(statement.statement.text)) is None:
                self.spark.run(statement.text)  # Spark's parser distinguishes a missing table from a syntax error
            raise
