"""Refuses statements of a client that run code on this machine or name files, before Spark sees their SQL.

A client sends any statement, and it runs as the user of the process that serves the client. The queries and conditions
in it are checked when they are resolved, as SQL that another user has stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import (
    ExternalPathError,
    InvalidNameError,
    StatementSyntaxError,
    StoredCodeError,
)
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name, Statement
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.stored_texts import names_files
from dbt.adapters.silt.engine.sql.tokens import Token, tokenize
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.resolve.stored_code import Allowed, is_exported

_REFUSED: Final = (ast.InsertDirectory, ast.CreateViewUsing, ast.ConvertToDelta, ast.Call)
"""The kinds that load jars, run procedures, or read and write files that they name."""

_FIRST_WORDS: Final = frozenset(
    "ADD ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COMMIT CREATE DECLARE DELETE DESC DESCRIBE DFS DROP EXECUTE "
    "EXPLAIN EXPORT FROM GRANT IMPORT INSERT LIST LOAD LOCK MAP MERGE MSCK REDUCE REFRESH REPAIR REPLACE RESET REVOKE "
    "ROLLBACK SELECT SET SHOW START TABLE TRUNCATE UNCACHE UNLOCK UPDATE USE VALUES WITH".split()
)
"""The words that begin the statements of Spark; extensions of Spark add others."""

_SETTINGS: Final = (
    *("silt.", "spark.databricks.delta.", "spark.sql.session.timeZone", "spark.sql.shuffle.", "spark.sql.adaptive."),
    *("spark.sql.ansi.", "spark.sql.sources.partitionOverwriteMode", "spark.sql.storeAssignmentPolicy"),
    *("spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout", "spark.sql.crossJoin.", "spark.sql.cbo."),
    *("spark.sql.optimizer.", "spark.sql.join.", "spark.sql.parser.", "spark.sql.legacy.timeParserPolicy"),
    *("spark.sql.files.max", "spark.sql.parquet.compression.codec", "spark.sql.execution.arrow."),
    *("spark.sql.mapKeyDedupPolicy", "spark.sql.groupByOrdinal", "spark.sql.orderByOrdinal"),
    *("spark.sql.inMemoryColumnarStorage.", "spark.sql.redaction.", "spark.job.description"),
)
"""The settings of a session, or their prefixes, that a client may change: others name classes, files and hosts."""

_VARIABLE: Final = ("VAR", "VARIABLE")

_OF_CODE: Final = "If you trust all clients, set `stored_code: true` in the profile of the process that serves them"
_OF_FILES: Final = "If you trust all clients, set `external_paths: true` in the profile of the process that serves them"


def check(allowed: Allowed, statement: Statement, namespace: Namespace, client: str) -> None:
    """Checks a statement of a client.

    Args:
        client: the words for it in messages.

    Raises:
        StoredCodeError: if it is of a kind that may run code, changes a setting of Spark that may name code, or is
            about a table outside of the warehouse.
        StatementSyntaxError: if Spark has no statement that begins so.
        ExternalPathError: if it names files.
    """
    values = _values_of_variables(statement)
    stored = _stored(statement) if values is None else values
    if not allowed.external_paths:
        _check_files(allowed, statement, stored, namespace, client)
    if not allowed.stored_code and values is None:
        _check_code(statement, namespace, client)
    if isinstance(statement, ast.Explain):
        check(allowed, statement.statement, namespace, client)
    for text in stored:
        allowed.check_text(text, client)


def _check_files(
    allowed: Allowed, statement: Statement, stored: Sequence[str], namespace: Namespace, client: str
) -> None:
    names = [getattr(statement, part, None) for part in ("table", "source", "name")]
    named = [getattr(statement, "location", None), *(_files(name, namespace) for name in names)]
    for text in stored:
        for each in table_references(text):
            named.append(_files(each.parts, namespace) if each.files is None else each.files.path)
    found = next((each for each in named if each and not _may_read(allowed, each)), None)
    if found is not None:
        raise ExternalPathError(f"{client} names the files `{found}`", remedy=_OF_FILES)


def _files(name: object, namespace: Namespace) -> str | None:
    """Returns the files that a name of a relation asks for, if any."""
    if not isinstance(name, tuple) or len(name) != 2:
        return None
    is_ours = not ast.is_path(name) and (namespace.is_schema(name[0]) or _is_schema(name, namespace))
    return name[1] if not is_ours and names_files(name) else None


def _is_schema(name: tuple[str, ...], namespace: Namespace) -> bool:
    """Returns whether it is a schema with its database: `show tables in silt.main`."""
    try:
        return namespace.is_database(name[0]) and namespace.catalog.has_schema(*name)
    except InvalidNameError:
        return False


def _may_read(allowed: Allowed, location: str) -> bool:
    return location in allowed.file_locations or is_exported(location)


def _check_code(statement: Statement, namespace: Namespace, client: str) -> None:
    kind = " ".join(statement.text.split()[:2])
    if isinstance(statement, ast.Unrecognised):
        if (first := kind.partition(" ")[0]).upper() not in _FIRST_WORDS:
            raise StatementSyntaxError(
                f"{client} begins with `{first}`, which begins no statement of Spark",
                remedy="Correct it; a statement of an extension of Spark needs `stored_code: true` in the profile",
            )
        problem = f"{client} begins with `{kind}`, which is not known here and may run code or use files"
        raise StoredCodeError(problem, remedy=f"Correct it if it is misspelt. {_OF_CODE}")
    if isinstance(statement, _REFUSED) or (isinstance(statement, ast.CreateFunction) and statement.body is None):
        raise StoredCodeError(f"{client} is of a kind that may run code or use files: `{kind}`", remedy=_OF_CODE)
    if isinstance(statement, ast.SetSetting) and statement.value is not None:
        if not (statement.key or "").startswith(_SETTINGS):
            raise StoredCodeError(f"{client} changes the setting `{statement.key}`", remedy=_OF_CODE)
    table: Name = getattr(statement, "table", ()) if statement.effect is not None else ()
    if len(table) > 1 and namespace.name_in_warehouse(table) is None and _is_sparks(table, namespace):
        raise StoredCodeError(f"{client} changes `{'.'.join(table)}`, which is not in the warehouse", remedy=_OF_CODE)


def _is_sparks(table: Name, namespace: Namespace) -> bool:
    return len(table) > 2 or namespace.is_spark_schema(table[0])


def _stored(statement: Statement) -> tuple[str, ...]:
    """Returns the query in a statement, or the body of its SQL function: Spark may get them."""
    if isinstance(statement, ast.CreateFunction):
        return () if statement.language is not None or statement.body is None else (statement.body,)
    query = getattr(statement, "query", None)
    return (query,) if isinstance(query, str) else ()


def _is_about_variable(tokens: Sequence[Token]) -> bool:
    """Returns whether a statement declares, sets or drops a variable of the session."""
    first, second, third, *_ = (*(each.word for each in tokens[:3]), "", "", "")
    is_dropped = (first, second) == ("DROP", "TEMPORARY") and third in _VARIABLE
    return first == "DECLARE" or (first == "SET" and second in _VARIABLE) or is_dropped


def _values_of_variables(statement: Statement) -> tuple[str, ...] | None:
    """Returns a query of the values that a statement gives to variables of the session; None if it is not about any."""
    if not isinstance(statement, ast.Unrecognised):
        return None
    tokens = tokenize(statement.text)
    if not _is_about_variable(tokens):
        return None
    begin = next((each.end for each in tokens if each.word in ("DEFAULT", "=")), None)
    return () if begin is None else (f"select {statement.text[begin:]}\n",)
