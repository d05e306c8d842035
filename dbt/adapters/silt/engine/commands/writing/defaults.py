"""Checks the default values of columns (specification: "Default Columns")."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.commands.writing.conversion import conversion
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, TypeMismatchError
from dbt.adapters.silt.engine.kernel.table.schema import CURRENT_DEFAULT, PrimitiveType, StructField, StructType


def check_defaults(spark: SparkSession, schema: StructType, table: str) -> None:
    """Checks that each column can hold its default.

    Raises:
        InvalidStatementError: if a default is not an expression or names a column, or if the column is generated.
        TypeMismatchError: if a default's type cannot be stored in its column.
    """
    for member in schema:
        if CURRENT_DEFAULT in member.metadata:
            _check(spark, member, table)


def _check(spark: SparkSession, member: StructField, table: str) -> None:
    if member.is_computed:
        raise InvalidStatementError(
            f"the column `{member.name}` is generated, and cannot also have a default", table=table
        )
    try:
        chosen = spark.range(0).select().select(F.expr(f"({rules.default(member, table)}\n)"))
        given = kernel_schema(chosen.schema).fields[0].type
    except (AnalysisException, ParseException) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidStatementError(
            f"the default of the column `{member.name}`, {member.default}, cannot be used: {reason}", table=table
        ) from error
    if given != PrimitiveType("void") and conversion(given, member.type, by_name=True) is None:
        raise TypeMismatchError(
            f"the default of the column `{member.name}`, {member.default}, has the type {given.sql_name}, which cannot "
            f"be stored in type {member.type.sql_name}",
            remedy="Give a default of the column's type",
            table=table,
        )
