"""Renders the rows of a fixture as SQL, and rejects rows with a value that its column cannot hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, SiltError, TypeMismatchError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.query.quotes import Quotes
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.materializations.row_comparison import sql_name
from dbt.adapters.silt.materializations.unit_tests.literals import (
    NO_FIELD,
    Cell,
    Literals,
    cells,
    fits,
    is_for_spark,
    is_nested,
)

_NOT_COLLECTED = (T.CalendarIntervalType, T.YearMonthIntervalType, T.VariantType)


@dataclass(frozen=True)
class Expression:
    """A value of an array, map or struct type, given as an SQL expression."""

    text: str


@dataclass(frozen=True)
class Fixture:
    """A fixture of a unit test.

    Args:
        name: its name for messages.
        kinds: the type of each column, by its name in lower case.
        warehouse: runs the checks that need Spark.
        literals: renders values.
    """

    name: str
    kinds: Mapping[str, T.DataType]
    warehouse: Warehouse
    literals: Literals

    def rendered(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Returns a mapping for each row: the columns that it gives -> SQL expressions.

        Raises:
            TypeMismatchError: if a column's type does not hold a value.
            InvalidStatementError: if an SQL expression for a value is invalid.
        """
        read = [{name.lower(): _read(value, self.kinds[name.lower()]) for name, value in row.items()} for row in rows]
        self.check([{name: self._evaluated(name, value) for name, value in row.items()} for row in read])
        return [{name: self._rendered(value, self.kinds[name]) for name, value in row.items()} for row in read]

    def check_query(self, query: str) -> None:
        """Checks that the columns' types hold the rows of a query; skips columns whose types are equal.

        Raises:
            TypeMismatchError: if a value does not fit.
        """
        frame = self.warehouse.sql(query)
        given = {field.name.lower(): field.dataType for field in frame.schema.fields}
        others = {
            name: kind
            for name, kind in self.kinds.items()
            if name in given and not isinstance(given[name], T.NullType) and sql_name(given[name]) != sql_name(kind)
        }
        self.check(_collected(frame, others))

    def check(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Checks that the columns' types hold all values of the rows.

        Raises:
            TypeMismatchError: if a value does not fit.
        """
        found = [(at, cell) for at, row in enumerate(rows, 1) for cell in self._cells(row)]
        for at, cell in found:
            if not fits(cell):
                raise self._misfit(at, cell)
        self._check_by_spark([(at, cell) for at, cell in found if is_for_spark(cell)])

    def _cells(self, row: Mapping[str, Any]) -> Iterator[Cell]:
        for name, value in row.items():
            yield from cells(name, value, self.kinds[name])

    def _check_by_spark(self, found: Sequence[tuple[int, Cell]]) -> None:
        asked = dict.fromkeys((cell.value, sql_name(cell.kind)) for _, cell in found)
        kinds = dict.fromkeys(kind for _, kind in asked)
        held = {kind: self._held([text for text, other in asked if other == kind], kind) for kind in kinds}
        for at, cell in found:
            if cell.value not in held[sql_name(cell.kind)]:
                raise self._misfit(at, cell)

    def _held(self, texts: Sequence[str], kind: str) -> set[str]:
        """Returns the strings that are values of the type; a date must not have a time of day other than midnight."""
        rows = ", ".join(f"({at}, {self.literals.quotes.constant(text)})" for at, text in enumerate(texts))
        value = f"try_cast(text as {kind})"
        condition = f"{value} is not null"
        if kind == "date":
            condition = f"try_cast(text as timestamp_ntz) = cast({value} as timestamp_ntz)"
        query = f"select at from values {rows} as given(at, text) where {condition}"
        return {texts[row[0]] for row in self.warehouse.sql(query).collect()}

    def _rendered(self, value: Any, kind: T.DataType) -> str:
        if isinstance(value, Expression):
            return f"cast({value.text} as {sql_name(kind)})"
        return self.literals.of(value, kind)

    def _evaluated(self, name: str, value: Any) -> Any:
        if not isinstance(value, Expression):
            return value
        kind = self.kinds[name]
        try:
            frame = self.warehouse.sql(f"select {value.text} as {quote(name)}")
            (row,) = _collected(frame, {name: kind})
        except (SiltError, PySparkException) as error:
            raise InvalidStatementError(
                f"{self.name} has `{value.text}` in the column `{name}`, which is neither JSON nor an SQL expression "
                f"of the type {sql_name(kind)}: {error}",
                remedy="Write the value as a list or a mapping of YAML, as JSON, or as an SQL expression",
                details={"column": name, "value": value.text, "type": sql_name(kind)},
            ) from error
        return row[name]

    def _misfit(self, row: int, cell: Cell) -> TypeMismatchError:
        column, kind = cell.path, _type_name(cell.kind)
        reason = "which its struct lacks" if cell.kind is NO_FIELD else f"whose type {kind} cannot hold it unchanged"
        return TypeMismatchError(
            f"{self.name} has the value `{cell.value}` in row {row} of the column `{column}`, {reason}",
            remedy="Write a value that the column can hold, or change the column's type in its model",
            details={"column": column, "row": row, "value": str(cell.value), "type": kind},
        )


def fixture(name: str, types: Mapping[str, str], warehouse: Warehouse, quotes: Quotes) -> Fixture:
    """Returns the fixture for a relation with the given column types, in SQL's syntax."""
    kinds = {column.lower(): T.DataType.fromDDL(text) for column, text in types.items()}
    return Fixture(name, kinds, warehouse, Literals(quotes))


def in_one_order(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Returns expected rows with their columns in the order of the first row: UNION ALL combines columns by position.

    Raises:
        InvalidStatementError: if a row has other columns than the first: nothing says what the test compares.
    """
    first = set(rows[0])
    for at, row in enumerate(rows, 1):
        if others := sorted(first ^ set(row)):
            raise InvalidStatementError(
                f"the expected output has {_listed(others)} in only one of its rows 1 and {at}",
                remedy="Give each expected row the same columns, with null for a value that is null",
                details={"row": at, "columns": others},
            )
    return [{name: row[name] for name in rows[0]} for row in rows]


def _listed(names: Sequence[str]) -> str:
    return ("the column " if len(names) == 1 else "the columns ") + ", ".join(f"`{name}`" for name in names)


def _collected(frame: DataFrame, kinds: Mapping[str, T.DataType]) -> list[dict[str, Any]]:
    """Returns the rows of a query in the form of a fixture, with only the columns that Spark can return to Python."""
    known = {field.name.lower(): field for field in frame.schema.fields if not _holds(field.dataType, _NOT_COLLECTED)}
    names = [name for name in kinds if name in known]
    rows = frame.select(*(quote(known[name].name) for name in names)).collect() if names else []
    return [
        {name: _plain(value, kinds[name]) for name, value in zip(names, row, strict=True)} for row in rows
    ]  # fmt: skip


def _read(value: Any, kind: T.DataType) -> Any:
    """Parses a string for a nested type as JSON or an SQL expression, and for a variant as JSON if it is JSON."""
    if not isinstance(value, str) or not (is_nested(kind) or isinstance(kind, T.VariantType)):
        return value
    try:
        found = json.loads(value, parse_float=Decimal if is_nested(kind) else None)
    except ValueError:
        return Expression(value) if is_nested(kind) else value
    return found if isinstance(found, list | dict) or not is_nested(kind) else Expression(value)


def _plain(value: Any, kind: T.DataType) -> Any:
    """Converts a value of Spark to its YAML form; a struct's fields are matched by position, as in a cast."""
    if isinstance(value, T.Row) and isinstance(kind, T.StructType) and len(value) == len(kind.fields):
        pairs = zip(kind.fields, value, strict=True)
        return {member.name: _plain(each, member.dataType) for member, each in pairs}
    if isinstance(value, list) and isinstance(kind, T.ArrayType):
        return [_plain(each, kind.elementType) for each in value]
    if isinstance(value, dict) and isinstance(kind, T.MapType):
        return {key: _plain(each, kind.valueType) for key, each in value.items()}
    return value


def _holds(kind: T.DataType, types: tuple[type, ...]) -> bool:
    if isinstance(kind, T.ArrayType):
        return _holds(kind.elementType, types)
    if isinstance(kind, T.MapType):
        return _holds(kind.keyType, types) or _holds(kind.valueType, types)
    if isinstance(kind, T.StructType):
        return any(_holds(member.dataType, types) for member in kind.fields)
    return isinstance(kind, types)


def _type_name(kind: T.DataType) -> str:
    """Returns the type's name for messages, with the length of a `char` or `varchar`."""
    (member,) = kernel_schema(T.StructType([T.StructField("value", kind)]))
    return member.sql_type


_SQL = "sql"


@dataclass(frozen=True)
class GivenQuery:
    """An input given as a query.

    Attributes:
        original: the node or source of the project that it replaces.
        query: the compiled query.
    """

    original: Any
    query: str


def given_queries(test: Mapping[str, Any], manifest: Any) -> Iterator[GivenQuery]:
    """Yields all inputs of a unit test, if any of them has `format: sql`.

    Args:
        test: the node of the unit test, compiled; each of its inputs is an ephemeral model.
        manifest: the project's manifest.
    """
    definition = manifest.unit_tests.get(test["unique_id"])
    if definition is None or all(str(given.format.value) != _SQL for given in definition.given):
        return
    for cte in test["extra_ctes"]:
        found = list(_originals(cte["id"], manifest))
        if len(found) == 1:  # dbt's name of an input does not distinguish the versions of a model
            yield GivenQuery(found[0], _query(cte["sql"]))


def missing_input(given: Mapping[str, Any], manifest: Any) -> str:
    """Returns the reason why an input has no columns in the warehouse, with the remedy.

    Args:
        given: the input, as the model that stands for it in the test.
        manifest: the project's manifest.
    """
    original = next(_originals(given["unique_id"], manifest), None)
    kind = str(getattr(original, "resource_type", "model"))
    if kind == "model" and original is not None and original.config.materialized == "ephemeral":
        return f"it is ephemeral: no table or view has its columns. Instead, {_AS_QUERY}"
    remedy = f"{_BUILDS[kind]} {given['name']}" if kind in _BUILDS else f"Create its table first, or {_AS_QUERY}"
    return f"the relation doesn't exist. {remedy}"


_AS_QUERY = "give its rows as a query, which names its columns and their types: `format: sql`"
_BUILDS: Mapping[str, str] = {
    "model": "Build it first, without rows if you like: dbt run --empty --select",
    "seed": "Build it first: dbt seed --select",
    "snapshot": "Build it first: dbt snapshot --select",
}
"""The command that builds an input, by its kind; no command of dbt builds a source."""


def _originals(input_id: str, manifest: Any) -> Iterator[Any]:
    _, package, name = input_id.split(".", 2)
    for node in manifest.nodes.values():
        if node.is_refable and (node.package_name, node.name) == (package, name):
            yield node
    for source in manifest.sources.values():
        if (source.package_name, f"{source.source_name}__{source.name}") == (package, name):
            yield source


def _query(cte: str) -> str:
    """Returns the query within `name as (...)`, in dbt's layout."""
    return cte.partition(" as (\n")[2].removesuffix("\n)")
