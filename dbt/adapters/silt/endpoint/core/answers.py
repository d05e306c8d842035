"""The results of statements as values: columns with Spark's types, rows as Arrow, and failures with an SQLSTATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.failures.causes import causes
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.session.errors import known_error, shown

_GENERAL: Final = "HY000"
_STATES: Final[Mapping[type[errors.SiltError], str]] = {
    errors.EmptyStatementError: "42617",
    errors.StatementSyntaxError: "42601",
    errors.UnsupportedStatementError: "0A000",
    errors.UnsupportedFeatureError: "0A000",
    errors.FunctionNotFoundError: "42883",
    errors.RelationNotFoundError: "42P01",
    errors.RelationExistsError: "42P07",
    errors.SchemaNotFoundError: "42704",
    errors.ColumnNotFoundError: "42703",
    errors.TypeMismatchError: "42804",
    errors.InvalidNameError: "42602",
    errors.StoredCodeError: "42501",
    errors.ExternalPathError: "42501",
    errors.ReadOnlyStorageError: "25006",
    errors.InvalidStatementError: "42000",
    errors.NotNullViolationError: "23502",
    errors.CheckViolationError: "23514",
    errors.MultipleSourceRowsError: "21000",
    errors.StatementCancelledError: "57014",
    errors.ResultTooLargeError: "54000",
    errors.ValueNotCastableError: "22018",
    errors.DataRejectedError: "22000",
    errors.CommitStateUnknownError: "40003",
    errors.RunAgainError: "40001",
    errors.TableDamagedError: "58030",
    errors.NoSpaceError: "53100",
    errors.SparkUnavailableError: "08006",
    errors.UnavailableError: "58000",
}
"""The SQLSTATE of each error that Spark did not raise; an error without its own has its base's."""


_CONDITIONS: Final[Mapping[type[Exception], str]] = {
    errors.EmptyStatementError: "PARSE_EMPTY_STATEMENT",
    errors.StatementSyntaxError: "PARSE_SYNTAX_ERROR",
    errors.FunctionNotFoundError: "UNRESOLVED_ROUTINE",
    errors.RelationNotFoundError: "TABLE_OR_VIEW_NOT_FOUND",
    errors.RelationExistsError: "TABLE_OR_VIEW_ALREADY_EXISTS",
    errors.SchemaNotFoundError: "SCHEMA_NOT_FOUND",
    errors.NotNullViolationError: "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    errors.CheckViolationError: "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    errors.MultipleSourceRowsError: "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    errors.ConcurrentAppendError: "DELTA_CONCURRENT_APPEND",
    errors.ConcurrentKeyError: "DELTA_CONCURRENT_APPEND",
    errors.ConcurrentDeleteReadError: "DELTA_CONCURRENT_DELETE_READ",
    errors.ConcurrentDeleteDeleteError: "DELTA_CONCURRENT_DELETE_DELETE",
    errors.ConcurrentTransactionError: "DELTA_CONCURRENT_TRANSACTION",
    errors.CommitAttemptsExhaustedError: "DELTA_CONCURRENT_WRITE",
    errors.MetadataChangedError: "DELTA_METADATA_CHANGED",
    errors.ProtocolChangedError: "DELTA_PROTOCOL_CHANGED",
}
"""Spark's and Delta's conditions for errors that programs look for by them, even in the message."""


@dataclass(frozen=True)
class Column:
    """A column of a result, with Spark's type as `decimal(12,2)` or `array<int>`."""

    name: str
    type: str


@dataclass(frozen=True)
class Answer:
    """The result of a statement.

    Attributes:
        columns: empty if the statement has no rows; several may have the same name.
        rows: the rows, in the order of `columns`, whose names in it are unique. Instants are local times in the
            session's zone, and types that Arrow lacks are strings.
        outcome: the effect on a table, if it has one; the rows then are a single row that summarises it.
    """

    columns: tuple[Column, ...]
    rows: pa.Table
    outcome: Outcome | None = None

    @property
    def rows_affected(self) -> int | None:
        """The number of inserted, updated and deleted rows, if it is known."""
        return None if self.outcome is None else self.outcome.rows_affected


NO_ROWS: Final = Answer((), pa.table({}))


def answer_of(rows: pa.Table) -> Answer:
    """Returns the answer with rows that were read without Spark."""
    return Answer(tuple(Column(field.name, spark_type(field.type)) for field in rows.schema), rows)


def spark_type(kind: pa.DataType) -> str:
    """Returns the name of Spark's type for a type of Arrow."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{each.name}:{spark_type(each.type)}' for each in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    return _NAMES.get(str(kind), "string")


_NAMES: Final = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "binary": "binary",
    "date32[day]": "date",
    "null": "void",
}


@dataclass(frozen=True)
class Problem:
    """A failed statement, for a client.

    Attributes:
        message: code, problem and remedy; before them the condition, if Spark or Delta would raise the same error.
        code: this package's code.
        condition: the error condition of Spark or Delta, or the code if they have none for the error.
        state: the SQLSTATE.
        of_spark: Spark's error, if the condition is its.
    """

    message: str
    code: str
    condition: str
    state: str
    of_spark: Exception | None = None


def problem_of(error: BaseException, catalog: Callable[[], Catalog]) -> Problem:
    """Describes an error.

    Args:
        catalog: returns the catalog, which names the table if Spark has found a damaged file.
    """
    known = known_error(error, catalog) if isinstance(error, Exception) else None
    if known is None:
        return Problem(f"[{errors.InternalError.code}] {type(error).__name__}: {error}", "", "INTERNAL_ERROR", "XX000")
    code = known.code if isinstance(known, errors.SiltError) else ""
    found = [(each, cause) for each in _chain(error) for cause in causes(each) if cause.condition]
    if found:
        of_spark, cause = found[0]
        return Problem(shown(known), code, cause.condition, cause.state or _state(known), of_spark)
    condition, state = _CONDITIONS.get(type(known)), _state(known)
    text = shown(known) if condition is None else f"[{condition}] {shown(known)}"
    return Problem(text, code, condition or code, state)


def _chain(error: BaseException) -> list[Exception]:
    """Returns an error and the errors that led to it: an error of Spark is the context of the engine's."""
    found: list[Exception] = []
    at: BaseException | None = error
    while isinstance(at, Exception) and at not in found:
        found.append(at)
        at = at.__cause__ or at.__context__
    return found


def _state(error: Exception) -> str:
    return next((_STATES[kind] for kind in type(error).__mro__ if kind in _STATES), _GENERAL)
