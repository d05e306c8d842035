"""Resolves the names in DESCRIBE and answers it; `commands.tables.describe` creates the rows."""

from __future__ import annotations

from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.tables import describe
from dbt.adapters.silt.engine.commands.tables.describe import Answer
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.statements.execute.schemas import named_schema
from dbt.adapters.silt.engine.statements.resolve.namespace import (
    Meaning,
    SparkRelation,
    WarehouseTable,
    WarehouseView,
)
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.on_table import table_to_change
from dbt.adapters.silt.engine.statements.steps.pass_to_spark import pass_to_spark


def describe_table(context: Context, statement: ast.DescribeTable) -> Result:
    """Runs DESCRIBE [EXTENDED] of a table, a view or a column."""
    meaning = context.namespace.meaning(statement.table)
    if isinstance(meaning, SparkRelation):
        return pass_to_spark(context, statement)
    if statement.column is not None:
        return _column(context, statement, schema_of(context, statement.table, meaning))
    if isinstance(meaning, WarehouseTable):
        snapshot = meaning.log.snapshot()
        if statement.extended:
            return answer(context, describe.extended(meaning.log, snapshot))
        return answer(context, describe.columns(snapshot.schema, snapshot.partition_columns))
    return answer(context, describe.columns(schema_of(context, statement.table, meaning)))


def describe_history(context: Context, statement: ast.DescribeHistory) -> Result:
    """Runs DESCRIBE HISTORY."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    return answer(context, describe.history(table.log, statement.limit))


def describe_detail(context: Context, statement: ast.DescribeDetail) -> Result:
    """Runs DESCRIBE DETAIL."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    return answer(context, describe.detail(table.log, table.log.snapshot()))


def describe_schema(context: Context, statement: ast.DescribeSchema) -> Result:
    """Runs DESCRIBE SCHEMA."""
    schema = named_schema(context, statement.name)
    if schema is None:
        return pass_to_spark(context, statement)
    rows = (("Catalog Name", schema[0]), ("Namespace Name", schema[1]))
    return answer(context, Answer(rows, "info_name string, info_value string"))


def answer(context: Context, rows: Answer) -> Result:
    """Returns the result with these rows."""
    return context.rows(rows.rows, rows.schema)


def schema_of(context: Context, name: Name, meaning: Meaning) -> StructType:
    """Returns the columns of a relation; a view's columns have the comments of its statement."""
    if isinstance(meaning, WarehouseTable):
        return meaning.log.snapshot().schema
    written = ".".join(quote(part) for part in name)
    schema = kernel_schema(context.dataframe(f"select * from {written}").schema)
    return meaning.view.commented(schema) if isinstance(meaning, WarehouseView) else schema


def _column(context: Context, statement: ast.DescribeTable, schema: StructType) -> Result:
    name = statement.column or ()
    field = schema.field(name[-1]) if name else None
    if field is None:
        raise ColumnNotFoundError(f"there is no column `{'.'.join(name)}`", table=".".join(statement.table))
    rows = (("col_name", field.name), ("data_type", field.type.sql_name), ("comment", field.comment))
    return answer(context, Answer(rows, "info_name string, info_value string"))
