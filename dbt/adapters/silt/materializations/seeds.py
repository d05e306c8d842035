"""Stages a seed's rows as a temporary view, and checks them before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import agate
from dbt_common.clients.agate_helper import Integer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import CHAR_VARCHAR_KEY
from dbt.adapters.silt.engine.sql.portable_types import TYPES, type_remedy
from dbt.adapters.silt.runs.agate_tables import number_type, to_arrow


@dataclass(frozen=True)
class StagedSeed:
    """A seed's rows in the session.

    Attributes:
        name: the seed's name, for messages.
        view: the temporary view, quoted.
        table: the rows as dbt read them.
        types: the type that each column of `column_types` is cast to; dbt has read these columns as strings.
        numbers: the type of every other column of numbers.
    """

    name: str
    view: str
    table: agate.Table
    types: Mapping[str, str]
    numbers: Mapping[str, str]

    @property
    def sized(self) -> dict[str, str]:
        """The types with a length: the table must declare them, because Spark's cast to them is a cast to string."""
        kinds = {column: column_type(kind) for column, kind in self.types.items()}
        return {column: kind.sql_type for column, kind in kinds.items() if CHAR_VARCHAR_KEY in kind.metadata}

    def check_values(self, session: SparkSession) -> None:
        """Checks that every value can be cast to its column's type.

        Raises:
            TypeMismatchError: if a value cannot be cast; the error names its column, row and value.
        """
        for column, kind in self.types.items():
            text = self._misfit(session, column, kind)
            if text is not None:
                row = list(self.table.columns[column].values()).index(text) + 1
                raise errors.TypeMismatchError(
                    f"the seed {self.name} has `{text}` in row {row} of the column `{column}`, which is not of the "
                    f"type {kind}",
                    remedy="Correct the file, or the seed's `column_types`",
                    details={"column": column, "row": row, "value": text, "type": kind},
                )

    def _misfit(self, session: SparkSession, column: str, kind: str) -> str | None:
        """Returns the first string of a column that cannot be cast to the type."""
        name = quote(column)
        query = (
            f"select {name} from {self.view} where {name} is not null and try_cast({name} as {kind}) is null limit 1"
        )
        try:
            row = session.sql(query).first()
        except PySparkException:  # no string can be cast to these types: Spark's own error reports it
            return None
        return None if row is None else row[0]


def stage(session: SparkSession, name: str, view: str, table: agate.Table, types: Mapping[str, str]) -> StagedSeed:
    """Registers a seed's rows as a temporary view.

    Raises:
        InvalidNameError: if the names of two columns differ in case only.
        InvalidSettingError: if `column_types` has an unknown type.
        TypeMismatchError: if an integer has more digits than dbt keeps.
    """
    _check_names(name, table)
    given = {column: types[column] for column in table.column_names if types.get(column)}
    for column, kind in given.items():
        _check_type(name, column, kind)
    rows = to_arrow(table)
    # A single file: a seed is small, and Spark would write a file for each of its cores.
    frames.frame_of_rows(session, rows).coalesce(1).createOrReplaceTempView(view)
    numbers = {
        each.name: number_type(each.type)
        for each, kind in zip(rows.schema, table.column_types, strict=True)
        if isinstance(kind, agate.Number | Integer)
    }
    return StagedSeed(name, view, table, given, numbers)


def _check_names(name: str, table: agate.Table) -> None:
    seen: dict[str, str] = {}
    for column in table.column_names:
        before = seen.setdefault(column.lower(), column)
        if before != column:
            raise errors.InvalidNameError(
                f"the seed {name} has the columns `{before}` and `{column}`, whose names differ in case only",
                remedy="Rename one of them in the file's first line",
            )


def _check_type(name: str, column: str, kind: str) -> None:
    try:
        column_type(kind)
    except errors.StatementSyntaxError as error:
        raise errors.InvalidSettingError(
            f"`column_types` of the seed {name} gives the column `{column}` the type `{kind}`, unknown to Spark",
            remedy=type_remedy(kind) or TYPES,
            details={"column": column, "type": kind},
        ) from error
