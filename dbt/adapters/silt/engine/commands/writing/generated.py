"""Checks default values, and computes and checks generated columns: expressions over other columns of the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema, spark_schema
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.commands.writing.conversion import Conversion, conversion, fitted
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    StructField,
    StructType,
    all_fields,
    nullable,
    nullable_schema,
    without_collations,
)
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type
from dbt.adapters.silt.engine.sql.query.quotes import without_quoted
from dbt.adapters.silt.engine.sql.query.rule_texts import one_line

T = TypeVar("T")

# Spark treats these functions as constants, because their value is the same for all rows of a statement.
_OF_THE_STATEMENT = re.compile(
    r"\b(current_(timestamp|date|time|user|catalog|database|schema|timezone|metastore)|now|curdate|localtimestamp"
    r"|session_user|user|version|input_file_name|input_file_block_\w+)\b(?=\s*\()|\b(current_timestamp|current_date"
    r"|current_time|current_user|session_user|localtimestamp)\b",
    re.IGNORECASE,
)
_QUERY = re.compile(r"\(\s*(select|with|from|table|values)\b", re.IGNORECASE)


def generated_columns(schema: StructType) -> tuple[StructField, ...]:
    """Returns the table's generated columns, in order."""
    return tuple(member for member in schema if member.generation_expression is not None)


def value(member: StructField, table: str) -> Column:
    """Returns the value of a generated column, over the table's columns."""
    # The line break ends a comment at the expression's end.
    given = F.expr(f"cast(({rules.generation(member, table)}\n) as {member.type.sql_name})")
    return fitted(given, declared_type(member))


def computed(rows: DataFrame, schema: StructType, when: Mapping[str, Column | None], table: str) -> DataFrame:
    """Returns the rows with some generated columns computed; columns that are not the table's are kept.

    Args:
        rows: rows with the table's columns; the generated columns of `when` may be missing.
        when: the generated columns to compute, by the table's names, each with the condition of the rows that get the
            computed value; None for all rows.
    """
    if not when:
        return rows
    columns: dict[str, str | Column] = {member.name: quote(member.name) for member in schema}
    for member in schema:
        if member.name in when:
            condition, old = when[member.name], F.col(quote(member.name))
            new = value(member, table) if condition is None else F.when(condition, value(member, table)).otherwise(old)
            columns[member.name] = new.alias(member.name, metadata=dict(member.metadata))
    more = {name: quote(name) for name in rows.columns if name not in schema}
    return frames.select(rows, {**columns, **more})


def check_expressions(spark: SparkSession, schema: StructType, table: str) -> None:
    """Checks the expressions of the table's generated columns.

    Raises:
        InvalidStatementError: if an expression is invalid, names anything but plain columns of the table, or is not
            deterministic.
        TypeMismatchError: if an expression is of another type than its column.
    """
    members = generated_columns(schema)
    if len(members) < sum(GENERATION_EXPRESSION in member.metadata for member in all_fields(schema)):
        raise errors.InvalidStatementError("a member of a struct cannot be generated", table=table)
    base = schema.drop(*(member.name for member in schema if member.is_computed))
    for member in members:
        _check_expression(spark, base, member, table)


def check_not_used(spark: SparkSession, schema: StructType, names: Iterable[str], table: str) -> None:
    """Checks that no generated column is computed from any of these columns.

    Raises:
        InvalidStatementError: if a generated column is computed from a column in `names`.
    """
    members = generated_columns(schema)
    for name in names if members else ():
        without = schema.drop(name)
        for member in members:
            if member.name.lower() != name.lower() and not _resolves(spark, without, member, table):
                raise errors.InvalidStatementError(
                    f"the column `{name}` cannot be changed: the generated column `{member.name}` is computed from it, "
                    f"as {one_line(str(member.generation_expression))}",
                    remedy=f"Drop the column `{member.name}` first, or re-create the table",
                    table=table,
                )


def _check_expression(spark: SparkSession, base: StructType, member: StructField, table: str) -> None:
    text = one_line(str(member.generation_expression))

    def refused(reason: str) -> errors.SiltError:
        return errors.InvalidStatementError(
            f"the column `{member.name}` cannot be generated as {text}: {reason}",
            remedy="Use the table's other columns, and functions that always return the same value for a row",
            table=table,
        )

    plain = without_quoted(str(member.generation_expression))
    found = _OF_THE_STATEMENT.search(plain)
    if found is not None:
        raise refused(f"{found.group()} differs from one statement to the next")
    if _QUERY.search(plain):
        raise refused("it contains a query")
    text_to_run = rules.generation(member, table)
    rows = _empty(spark, base)
    given = _analysed(lambda: kernel_schema(rows.select(F.expr(f"({text_to_run}\n)")).schema).fields[0].type, refused)
    # Spark allows no aggregate, window or random value in the condition of a join.
    _analysed(lambda: rows.join(_empty(spark, StructType()), F.expr(f"({text_to_run}\n) is null")).schema, refused)
    if without_collations(nullable(given)) != without_collations(nullable(member.type)):
        raise errors.TypeMismatchError(
            f"the column `{member.name}` of type {member.type.sql_name} cannot be generated as {text}, "
            f"which is of type {given.sql_name}",
            remedy=f"Write cast({text} as {member.type.sql_name}), or give the column the other type",
            table=table,
        )


def _analysed(analyse: Callable[[], T], refused: Callable[[str], errors.SiltError]) -> T:
    try:
        return analyse()
    except (AnalysisException, ParseException) as error:
        raise refused(str(error).partition("\n")[0]) from error


def _resolves(spark: SparkSession, schema: StructType, member: StructField, table: str) -> bool:
    try:
        _empty(spark, schema).select(value(member, table)).schema  # noqa: B018 -- reading the schema resolves the columns
    except AnalysisException:
        return False
    return True


def _empty(spark: SparkSession, schema: StructType) -> DataFrame:
    return spark.createDataFrame([], spark_schema(nullable_schema(schema)))


def check_defaults(spark: SparkSession, schema: StructType, table: str) -> None:
    """Checks that each column can hold its default.

    Raises:
        InvalidStatementError: if a default is not an expression or names a column, or if the column is generated.
        TypeMismatchError: if a default's type cannot be stored in its column.
        ValueNotCastableError: if the column's type cannot hold the default's value.
    """
    for member in schema:
        if CURRENT_DEFAULT in member.metadata:
            _check(spark, member, table)


def _check(spark: SparkSession, member: StructField, table: str) -> None:
    if member.is_computed:
        raise errors.InvalidStatementError(
            f"the column `{member.name}` is generated, and cannot also have a default", table=table
        )
    try:
        value = F.expr(f"({rules.default(member, table)}\n)")
        given = kernel_schema(spark.range(0).select().select(value).schema).fields[0].type
        way = conversion(given, member.type, by_name=True)
        is_lost = way is not None and _is_lost(spark, value, way)
    except PySparkException as error:
        reason = str(error).partition("\n")[0]
        raise errors.InvalidStatementError(
            f"the default of the column `{member.name}`, {member.default}, cannot be used: {reason}", table=table
        ) from error
    if is_lost:
        raise errors.ValueNotCastableError(
            f"the column `{member.name}` of type {member.type.sql_name} cannot hold its default, {member.default}",
            remedy="Give a default of the column's type",
            table=table,
            details={"column": member.name},
        )
    if way is None:
        raise errors.TypeMismatchError(
            f"the default of the column `{member.name}`, {member.default}, has the type {given.sql_name}, which cannot "
            f"be stored in type {member.type.sql_name}",
            remedy="Give a default of the column's type",
            table=table,
        )


def _is_lost(spark: SparkSession, value: Column, way: Conversion) -> bool:
    """Returns whether a conversion loses a value: each INSERT would fail or, without ANSI mode, store another value."""
    if way.loses is None:
        return False
    row = spark.range(1).select(way.loses(value)).first()
    return bool(row and row[0])
