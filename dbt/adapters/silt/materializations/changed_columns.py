"""Explains a write that failed because the columns of its query differ from those of its table.

The query is compared with the table only after a failure: a successful write has no extra cost, and a strategy that
does not need a column may omit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.materializations.incremental.config_columns import without_quotes

_OF_MISSING = re.compile(r"SILT_COLUMN_NOT_FOUND|UNRESOLVED_COLUMN")
_OF_TYPES = re.compile(r"SILT_TYPE_MISMATCH|DATATYPE_MISMATCH")
_OF_VALUES = re.compile(r"SILT_VALUE_NOT_CASTABLE|CAST_INVALID_INPUT|CONVERSION_INVALID_INPUT|ARITHMETIC_OVERFLOW")
_VALUE = re.compile(r"The value (.+?) of the type")


@dataclass(frozen=True)
class ChangedColumns:
    """The columns of a query and of the table that it is written to, each with its type, in order.

    Attributes:
        table: the table's name.
        query, stored: type by name.
        keys: the columns of the config `unique_key`.
        is_snapshot: whether the table is a snapshot, which is never rebuilt.
    """

    table: str
    query: Mapping[str, str]
    stored: Mapping[str, str]
    keys: Sequence[str] = ()
    is_snapshot: bool = False

    def explained(self, failure: str, cause: BaseException | None) -> errors.SiltError | None:
        """Returns the error that names the columns at fault, or None if the write failed for another reason.

        Args:
            failure: the message of the failed write.
            cause: the exception that it was raised from.
        """
        if _OF_MISSING.search(failure) and self._missing():
            problem = f"the query no longer returns {_listed(self._missing())}, which the table has"
            return errors.ColumnNotFoundError(problem, remedy=self._remedy_of_missing(), table=self.table)
        is_of_value, retyped = _OF_VALUES.search(failure), self._retyped()
        if not retyped or not (is_of_value or _OF_TYPES.search(failure)):
            return None
        # A problem that begins with an error condition of Spark does not name a column.
        if isinstance(cause, errors.TypeMismatchError | errors.ValueNotCastableError) and not cause.problem.startswith(
            "["
        ):
            return type(cause)(cause.problem, remedy=self._remedy_of_types(), table=self.table, details=cause.details)
        keys = [each for each in retyped if each.lower() in self._key_names()]
        kind = errors.ValueNotCastableError if is_of_value else errors.TypeMismatchError
        return kind(self._of_types(keys or retyped, failure), remedy=self._remedy_of_types(), table=self.table)

    def _missing(self) -> list[str]:
        given = {name.lower() for name in self.query}
        return [f"{quote(name)} ({kind})" for name, kind in self.stored.items() if name.lower() not in given]

    def _retyped(self) -> list[str]:
        """Returns the names of the query's columns whose type differs in the table."""
        stored = {name.lower(): kind for name, kind in self.stored.items()}
        return [name for name, kind in self.query.items() if stored.get(name.lower(), kind) != kind]

    def _key_names(self) -> set[str]:
        return {without_quotes(each.strip()).lower() for each in self.keys}

    def _of_types(self, names: Sequence[str], failure: str) -> str:
        value = _VALUE.search(failure)
        found = "" if value is None else f": the value {value[1]} cannot be compared with the table's"
        return f"{', '.join(self._differences(names))}{found}"

    def _differences(self, names: Sequence[str]) -> Iterator[str]:
        stored = {name.lower(): kind for name, kind in self.stored.items()}
        for name in names:
            of_key = " of the `unique_key`" if name.lower() in self._key_names() else ""
            kinds = f"as {self.query[name]}, but the table has it as {stored[name.lower()]}"
            yield f"the query returns {quote(name)}{of_key} {kinds}"

    def _remedy_of_missing(self) -> str:
        if self.is_snapshot:
            return f"Nothing was written: add the column to the query again. {_NEW_HISTORY}"
        return (
            "Nothing was written: add the column to the query again, or configure `on_schema_change`: "
            "`append_new_columns` leaves it null in new rows, and `sync_all_columns` drops it. `--full-refresh` "
            "rebuilds the table from the query"
        )

    def _remedy_of_types(self) -> str:
        cast = "Nothing was written: correct the data, or cast the column in the query to the table's type"
        if self.is_snapshot:
            return f"{cast}. {_NEW_HISTORY}"
        return (
            f"{cast}. `--full-refresh` rebuilds the table with the query's type. With `on_schema_change`, "
            "`append_new_columns` adds the new fields of structs, and `sync_all_columns` changes the column's type if "
            "its values can be cast"
        )


_NEW_HISTORY = (
    "`--full-refresh` and `on_schema_change` do not apply to snapshots: to start a new history, set an `alias`"
)


def _listed(columns: Sequence[str]) -> str:
    return f"the column {columns[0]}" if len(columns) == 1 else f"the columns {', '.join(columns)}"
