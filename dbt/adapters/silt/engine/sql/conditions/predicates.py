"""Translates conditions of SQL to predicates over a table's columns: for skipping files, and for read sets.

The condition always implies its predicate. Anything but a comparison of a column with a literal that has the same
meaning in every session is UNKNOWN, and so is a column that may not be the table's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from dbt.adapters.silt.engine.kernel.table import expressions
from dbt.adapters.silt.engine.kernel.table.schema import DataType, StructField, StructType
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions import conditions
from dbt.adapters.silt.engine.sql.conditions.literals import (
    LiteralKind,
    SqlLiteral,
    Strings,
    exact_string,
    fraction_of,
    read_literal,
    value_of,
)
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import tokenize


@dataclass(frozen=True)
class Relation:
    """A table as a query sees it: its columns, and its full name, whose last parts may qualify them."""

    schema: StructType
    name: Name = ()


class Resolve(Protocol):
    """Resolves a dotted name in a condition to a column of the table, with the path below it, if possible."""

    def __call__(self, parts: Name) -> Name | None: ...


def to_predicate(
    condition: str, schema: StructType, qualifiers: Collection[Name], time_zone: str
) -> expressions.Expression:
    """Returns the predicate that a condition over a table implies for its rows.

    Args:
        condition: SQL of an expression; its columns are all the table's, except in subqueries.
        qualifiers: names whose last parts may qualify columns.
        time_zone: time zone of the session, for literals without a time zone.
    """
    return predicate(tokenize(condition), schema, qualified_by(schema, qualifiers), time_zone)


def predicate(condition: Tokens, schema: StructType, resolve: Resolve, time_zone: str) -> expressions.Expression:
    """Translates the tokens of a condition like `to_predicate`; `resolve` identifies the table's columns."""
    try:
        return Translator(condition, schema, resolve, time_zone).translate(conditions.structure(condition))
    except RecursionError:
        return expressions.UNKNOWN


def conjunction(parts: Iterable[expressions.Expression]) -> expressions.Expression:
    """Returns the conjunction of the parts that rule out rows, or TRUE if no part does."""
    known = tuple(found for part in parts for found in _ruling_out(part))
    return known[0] if len(known) == 1 else expressions.And(known) if known else expressions.TRUE


def _ruling_out(expression: expressions.Expression) -> Iterator[expressions.Expression]:
    if isinstance(expression, expressions.And):
        for part in expression.parts:
            yield from _ruling_out(part)
    elif expression != expressions.UNKNOWN and not (
        isinstance(expression, expressions.Or) and expressions.UNKNOWN in expression.parts
    ):
        yield expression


def qualified_by(schema: StructType, qualifiers: Collection[Name]) -> Resolve:
    """Returns a resolver for conditions over a table: as in Spark, the longest qualifier is tried first."""

    def resolve(parts: Name) -> Name | None:
        for length in range(len(parts) - 1, -1, -1):
            if (length == 0 or is_suffix(parts[:length], qualifiers)) and field_at(schema, parts[length:]) is not None:
                return parts[length:]
        return None

    return resolve


def is_suffix(parts: Name, names: Iterable[Name]) -> bool:
    """Returns whether the parts are the last parts of any of the names, in any case."""
    wanted = tuple(part.lower() for part in parts)
    return any(tuple(part.lower() for part in name[-len(wanted) :]) == wanted for name in names)


def field_at(schema: StructType, path: Name) -> StructField | None:
    """Returns the column, or the member of struct columns, at a path of names in any case."""
    found: StructField | None = None
    inside: DataType | None = schema
    for part in path:
        found = inside.field(part) if isinstance(inside, StructType) else None
        inside = None if found is None else found.type
    return found


def column_path(tokens: Tokens, operand: conditions.Operand) -> Name | None:
    """Returns the operand as a dotted name, if it is a name."""
    found = tokens[operand.first : operand.after]
    is_dotted = len(found) % 2 == 1 and all(token.word == "." for token in found[1::2])
    if not is_dotted or not all(token.is_identifier for token in found[::2]):
        return None
    if len(found) == 1 and found[0].word in _NOT_A_COLUMN:
        return None
    return tuple(token.identifier for token in found[::2])


# Unquoted, these are values or functions without parentheses.
_NOT_A_COLUMN = frozenset(
    "NULL TRUE FALSE DEFAULT CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME CURRENT_USER SESSION_USER USER "
    "LOCALTIMESTAMP CURRENT_CATALOG CURRENT_DATABASE CURRENT_SCHEMA CURRENT_TIMEZONE".split()
)
_FLIPPED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Translator:
    """Translates the structure of a condition; see `predicate`."""

    tokens: Tokens
    schema: StructType
    resolve: Resolve
    time_zone: str
    strings: Strings = exact_string

    def translate(self, condition: conditions.Condition) -> expressions.Expression:
        """Returns the predicate that the condition implies."""
        match condition:
            case conditions.AllOf(parts):
                found = tuple(self.translate(part) for part in parts)
                return (
                    expressions.UNKNOWN
                    if all(part == expressions.UNKNOWN for part in found)
                    else expressions.And(found)
                )
            case conditions.AnyOf(parts):
                found = tuple(self.translate(part) for part in parts)
                return (
                    expressions.UNKNOWN if all(part == expressions.UNKNOWN for part in found) else expressions.Or(found)
                )
            case conditions.Negated(part):
                inner = self.translate(part)
                return expressions.UNKNOWN if inner == expressions.UNKNOWN else expressions.Not(inner)
            case conditions.Compared(operator, left, right):
                return self._compared(operator, left, right)
            case conditions.Among(value, choices):
                return self._in_list(value, choices)
            case conditions.Liked(value, pattern):
                return self._like(value, pattern)
            case conditions.NullTest(value):
                column = self._column(value)
                return expressions.UNKNOWN if column is None else expressions.IsNull(column[0])
            case conditions.Bare(value):
                return self._bare(value)
            case conditions.Opaque():
                return expressions.UNKNOWN

    def _literal(self, operand: conditions.Operand) -> SqlLiteral | None:
        return read_literal(self.tokens, operand, self.strings)

    def _column(self, operand: conditions.Operand) -> tuple[expressions.Column, DataType] | None:
        """Returns the operand as a column of the table with its type, if it is a column."""
        parts = column_path(self.tokens, operand)
        path = None if parts is None else self.resolve(parts)
        found = None if path is None else field_at(self.schema, path)
        if path is None or found is None or compares_otherwise(self.schema, path):
            return None
        return expressions.Column(path), found.type

    def _compared(self, operator: str, left: conditions.Operand, right: conditions.Operand) -> expressions.Expression:
        column, literal = self._column(left), self._literal(right)
        if column is None or literal is None:
            column, literal = self._column(right), self._literal(left)
            operator = _FLIPPED.get(operator, operator)
        if column is None or literal is None:
            return expressions.UNKNOWN
        return _comparison(operator, column, literal, self.time_zone)

    def _in_list(self, operand: conditions.Operand, choices: tuple[conditions.Operand, ...]) -> expressions.Expression:
        column = self._column(operand)
        literals = [self._literal(choice) for choice in choices]
        kinds = {literal.kind for literal in literals if literal is not None} - {LiteralKind.NULL}
        if column is None or None in literals or len(kinds) > 1:
            return expressions.UNKNOWN
        if kinds == {LiteralKind.STRING} and getattr(column[1], "name", "") not in ("string", "date"):
            return expressions.UNKNOWN  # without ANSI mode, Spark compares such a list as strings
        values: list[expressions.Value | None] = []
        for literal in literals:
            value = None if literal is None else value_of(literal, column[1], self.time_zone)
            if value is None and literal is not None and literal.kind is not LiteralKind.NULL:
                return expressions.UNKNOWN
            values.append(value)
        return expressions.In(column[0], tuple(values))

    def _like(self, operand: conditions.Operand, pattern: conditions.Operand) -> expressions.Expression:
        column, literal = self._column(operand), self._literal(pattern)
        if column is None or literal is None or literal.kind is not LiteralKind.STRING:
            return expressions.UNKNOWN
        if getattr(column[1], "name", "") != "string":
            return expressions.UNKNOWN
        text = literal.text
        if "\\" in text:
            return expressions.UNKNOWN  # an escaped wildcard
        prefix = text[: min((text + wildcard).index(wildcard) for wildcard in "%_")]
        if prefix == text:
            return expressions.Comparison("=", column[0], text)
        if not prefix:
            return expressions.UNKNOWN
        starts = expressions.StartsWith(column[0], prefix)
        return starts if text == prefix + "%" else expressions.And((starts, expressions.UNKNOWN))

    def _bare(self, operand: conditions.Operand) -> expressions.Expression:
        column = self._column(operand)
        if column is None or getattr(column[1], "name", "") != "boolean":
            return expressions.UNKNOWN
        return expressions.Comparison("=", column[0], True)


def compares_otherwise(schema: StructType, path: Name) -> bool:
    """Returns whether a column on the path is a blank-padded string, although its type is that of a plain string."""
    for length in range(1, len(path) + 1):
        found = field_at(schema, path[:length])
        metadata = {} if found is None else found.metadata
        if "char(" in str(metadata.get(_CHAR_TYPE, "")).replace("varchar(", ""):
            return True
    return False


def _comparison(
    operator: str, column: tuple[expressions.Column, DataType], literal: SqlLiteral, time_zone: str
) -> expressions.Expression:
    if literal.kind is LiteralKind.NULL:
        return (
            expressions.IsNull(column[0])
            if operator == "<=>"
            else expressions.Comparison(_operator(operator), column[0], None)
        )
    value = value_of(literal, column[1], time_zone)
    if value is not None:
        return expressions.Comparison(_operator(operator), column[0], value)
    fraction = fraction_of(literal, column[1])
    if fraction is None or operator not in _FLIPPED:
        return expressions.UNKNOWN
    if operator in ("<", "<="):
        return expressions.Comparison("<=", column[0], math.floor(fraction))
    return expressions.Comparison(">=", column[0], math.ceil(fraction))


_OPERATORS: Mapping[str, expressions.Operator] = {
    "=": "=",
    "<=>": "<=>",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}


def _operator(text: str) -> expressions.Operator:
    return _OPERATORS[text]
