"""Checks the rules of a table on rows while they are written, and shows a row that breaks a rule.

A check never fails a job: `files.write` counts the rows that break it, on the same pass, and raises its error
afterwards, before anything is committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark import partitions
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.commands.writing.conversion import fitted
from dbt.adapters.silt.engine.kernel import errors, foreign_json
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    all_fields,
    nullable,
    primitive_types,
    without_collations,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type, has_lengths, length_limit
from dbt.adapters.silt.engine.sql.query.column_names import column_names
from dbt.adapters.silt.engine.sql.query.rule_texts import one_line
from dbt.adapters.silt.engine.sql.tokens import tokenize

Test = Callable[[Column], Column]

_STRING = PrimitiveType("string")
_COLUMNS = 8
_CHARACTERS = 200


@dataclass(frozen=True)
class Check:
    """A rule that every written row must meet.

    Args:
        violation: a boolean column, true for a row that breaks the rule; null counts as false.
        example: a string column that shows such a row.
        error: creates the error from the number of rows that break the rule and an example row.
        constraint: the name of the CHECK constraint that it checks, if it does.
    """

    violation: Column
    example: Column
    error: Callable[[int, str | None], errors.SiltError]
    constraint: str | None = None


def table_checks(schema: StructType, properties: TableProperties, table: str) -> tuple[Check, ...]:
    """Returns the checks of every row: NOT NULL, string lengths, CHECK constraints, invariants, generated columns."""
    return (
        *not_null_checks(schema, table),
        *_length_checks(schema, table),
        *constraint_checks(schema, properties, table),
        *_invariant_checks(schema, table),
        *_generation_checks(schema, table),
    )


def not_null_checks(schema: StructType, table: str) -> tuple[Check, ...]:
    """Returns a check for each column, and each value inside of a column, that is declared NOT NULL."""
    strict = [member for member in schema if _forbids_null(member)]
    if not strict:
        return ()
    example = example_row(schema)
    return tuple(
        Check(has_null(F.col(quote(member.name))), example, _not_null_error(path, table))
        for member in strict
        for path, has_null in _nulls(member, member.name)
    )


def constraint_checks(schema: StructType, properties: TableProperties, table: str) -> tuple[Check, ...]:
    """Returns a check for each CHECK constraint; a condition that is null breaks the constraint."""
    if not properties.constraints:
        return ()
    return tuple(
        replace(
            _condition_check(f"the check constraint `{name}`", condition, example_row(schema, condition), table),
            constraint=name,
        )
        for name, condition in properties.constraints.items()
    )


def counted(count: int, verb: str, verb_of_one: str) -> str:
    """Returns a phrase such as `1 row breaks` or `3 rows break`."""
    return f"1 row {verb_of_one}" if count == 1 else f"{count} rows {verb}"


def _length_checks(schema: StructType, table: str) -> Iterator[Check]:
    for member in filter(has_lengths, schema):
        column = F.col(quote(member.name))
        for path, limit, is_too_long in _limits(declared_type(member), member.name):
            yield Check(is_too_long(column), column.cast("string"), _length_error(path, limit, table))


def _limits(data_type: DataType, name: str) -> Iterator[tuple[str, tuple[str, int], Test]]:
    """Yields the path, the limit and a test for longer strings of each value in a column that has a length limit."""
    limit = length_limit(data_type)
    if limit is not None:
        most = limit[1]
        yield name, limit, lambda value: F.char_length(value) > most
    for inner, path, inside in _parts(data_type, name):
        for found, inner_limit, is_too_long in _limits(inner, path):
            yield found, inner_limit, inside(is_too_long)


def _parts(data_type: DataType, name: str) -> Iterator[tuple[DataType, str, Callable[[Test], Test]]]:
    """Yields the types inside of a type, each with its path and a function that lifts a test to the whole value."""
    if isinstance(data_type, StructType):
        for member in data_type:
            yield member.type, f"{name}.{member.name}", partial(_of_member, member.name)
    elif isinstance(data_type, ArrayType):
        yield data_type.element_type, f"{name}.element", partial(_of_any, lambda value: value)
    elif isinstance(data_type, MapType):
        yield data_type.key_type, f"{name}.key", partial(_of_any, F.map_keys)
        yield data_type.value_type, f"{name}.value", partial(_of_any, F.map_values)


def _invariant_checks(schema: StructType, table: str) -> Iterator[Check]:
    for member in all_fields(schema):
        text = member.metadata.get("delta.invariants")
        if text is not None:
            condition = foreign_json.loads(text)["expression"]["expression"]
            yield _condition_check(
                f"the invariant of the column `{member.name}`", condition, example_row(schema, condition), table
            )


def _condition_check(what: str, condition: str, example: Column, table: str) -> Check:
    # The line break ends a comment at the condition's end.
    violation = F.expr(f"not (({rules.rule(condition, what, table)}\n) <=> true)")
    return Check(violation, example, _check_error(what, condition, table))


def _forbids_null(member: StructField) -> bool:
    return not member.nullable or nullable(member.type) != member.type


def _nulls(member: StructField, name: str) -> Iterator[tuple[str, Test]]:
    """Yields each path in a column that forbids null, and a test whether a value of the column has a null there."""
    if not member.nullable:
        yield name, lambda value: value.isNull()
    for path, has_null in _inner_nulls(member.type, name):
        yield path, _where_present(has_null)


def _inner_nulls(data_type: DataType, name: str) -> Iterator[tuple[str, Test]]:
    if isinstance(data_type, StructType):
        for member in data_type:
            for path, has_null in _nulls(member, f"{name}.{member.name}"):
                yield path, _of_member(member.name, has_null)
    elif isinstance(data_type, ArrayType):
        element = StructField("element", data_type.element_type, data_type.contains_null)
        for path, has_null in _nulls(element, f"{name}.element"):
            yield path, _of_any(lambda value: value, has_null)
    elif isinstance(data_type, MapType):
        for path, has_null in _inner_nulls(data_type.key_type, f"{name}.key"):
            yield path, _of_any(F.map_keys, has_null)
        value_field = StructField("value", data_type.value_type, data_type.value_contains_null)
        for path, has_null in _nulls(value_field, f"{name}.value"):
            yield path, _of_any(F.map_values, has_null)


def _generation_checks(schema: StructType, table: str) -> Iterator[Check]:
    for member in schema:
        if member.generation_expression is not None:
            rule = f"{quote(member.name)} <=> ({one_line(member.generation_expression)})"
            error = _check_error(f"the rule of the generated column `{member.name}`", rule, table)
            given = f"({rules.generation(member, table)}\n)"
            if without_collations(member.type) == _STRING:
                given = f"cast({given} as {member.type.sql_name})"  # Spark compares no strings of two collations
            # A string is compared after padding and truncation, as it is stored.
            computed = fitted(F.expr(given), declared_type(member))
            yield Check(~F.col(quote(member.name)).eqNullSafe(computed), example_row(schema, rule), error)


def _where_present(test: Test) -> Test:
    return lambda value: value.isNotNull() & test(value)


def _of_member(name: str, test: Test) -> Test:
    return lambda value: test(value.getField(name))


def _of_any(elements: Test, test: Test) -> Test:
    return lambda value: F.exists(elements(value), test)


def _not_null_error(name: str, table: str) -> Callable[[int, str | None], errors.SiltError]:
    def error(count: int, example: str | None) -> errors.SiltError:
        rows = counted(count, "have", "has")
        return errors.NotNullViolationError(
            f"{rows} a null in the NOT NULL column `{name}`{shown(example)}",
            table=table,
            details={"column": name, "rows": count},
        )

    return error


def _length_error(name: str, limit: tuple[str, int], table: str) -> Callable[[int, str | None], errors.SiltError]:
    def error(count: int, example: str | None) -> errors.SiltError:
        kind, most = limit
        return errors.ValueNotCastableError(
            f"{counted(count, 'have', 'has')} a string in `{name}` that is longer than {kind}({most}){shown(example)}",
            table=table,
            details={"column": name, "rows": count},
        )

    return error


def _check_error(what: str, condition: str, table: str) -> Callable[[int, str | None], errors.SiltError]:
    def error(count: int, example: str | None) -> errors.SiltError:
        rows = counted(count, "break", "breaks")
        return errors.CheckViolationError(
            f"{rows} {what}, {one_line(condition)}{shown(example)}", table=table, details={"rows": count}
        )

    return error


def partition_checks(metadata: Metadata, table: str) -> tuple[Check, ...]:
    """Returns a check for each kind of value that a partition column cannot have; it raises a PartitionValueError.

    An empty string would be read as null, by this engine and by every other reader; a string that cannot be in the name
    of a folder would fail the job with an error of the file system (decision 0044).
    """
    schema = StructType.from_json(metadata.schema_string)
    return tuple(
        Check(is_unfit, F.col(quote(name)).cast("string"), _partition_error(schema.require(name).name, what, table))
        for name, copy in partitions.copy_names(metadata).items()
        for what, is_unfit in partitions.unfit(schema.require(name), copy).items()
    )


def _partition_error(name: str, what: str, table: str) -> Callable[[int, str | None], errors.SiltError]:
    def error(count: int, example: str | None) -> errors.SiltError:
        rows = counted(count, "have", "has")
        return errors.PartitionValueError(
            f"{rows} {what}, in the partition column `{name}`{shown(example)}",
            remedy="Nothing was written: give such rows another value in the query, such as null, or partition by"
            " another column",
            table=table,
            details={"column": name, "rows": count},
        )

    return error


def example_row(schema: StructType, rule: str = "") -> Column:
    """Returns a row as JSON: the rule's columns, then further columns, at most eight; no binary values and variants.

    Args:
        rule: the expression that the row breaks.
    """
    named = {part.lower() for each in column_names(tokenize(rule)) for part in each.parts} if rule else set()
    members = sorted(schema, key=lambda member: member.name.lower() not in named)
    first = [_column(each) for each in itertools.islice(filter(_has_shown_part, members), _COLUMNS)]
    return F.to_json(F.struct(*first), {"ignoreNullFields": "false"}) if first else F.lit("")


def shown(example: str | None) -> str:
    """Returns an example as the end of an error's message."""
    if not example:
        return ""
    text = example if len(example) <= _CHARACTERS else example[:_CHARACTERS] + "..."
    return f", for example {text}"


def _column(member: StructField) -> Column:
    column = F.col(quote(member.name))
    is_nested = isinstance(member.type, ArrayType | MapType | StructType)
    return (_visible(member.type, column) if is_nested else column.cast("string")).alias(member.name)


def _visible(data_type: DataType, value: Column) -> Column:
    """Returns the value without the parts that are not shown; the type must have parts that are shown."""
    if _is_shown_whole(data_type):
        return value
    if isinstance(data_type, StructType):
        parts = [_visible(each.type, value.getField(each.name)).alias(each.name) for each in _shown_members(data_type)]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(data_type, ArrayType):
        return F.transform(value, partial(_visible, data_type.element_type))
    assert isinstance(data_type, MapType)
    return F.transform_values(value, lambda _, each: _visible(data_type.value_type, each))


def _shown_members(data_type: StructType) -> list[StructField]:
    return list(filter(_has_shown_part, data_type))


def _has_shown_part(member: StructField) -> bool:
    return _has_shown(member.type)


def _has_shown(data_type: DataType) -> bool:
    """Returns whether an example shows any part of values of the type."""
    if isinstance(data_type, StructType):
        return bool(_shown_members(data_type))
    if isinstance(data_type, ArrayType):
        return _has_shown(data_type.element_type)
    if isinstance(data_type, MapType):
        return _is_shown_whole(data_type.key_type) and _has_shown(data_type.value_type)
    return _is_shown_whole(data_type)


def _is_shown_whole(data_type: DataType) -> bool:
    return not any(each.name in ("binary", "variant", "void") for each in primitive_types(data_type))
