"""Answers DESCRIBE and SHOW from the catalog and the logs; `commands.tables.describe` creates the rows."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationEntry, RelationKind
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.commands.tables import describe
from dbt.adapters.silt.engine.commands.tables.describe import Answer
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    InvalidSettingError,
    RelationNotFoundError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Name, ShowKind
from dbt.adapters.silt.engine.statements.execute.session import named_schema
from dbt.adapters.silt.engine.statements.resolve import namespace
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark
from dbt.adapters.silt.engine.statements.steps.on_table import table_to_change

SHOW_TABLES: Final = "silt.show_tables"
"""The session's setting for the columns of SHOW TABLES and SHOW VIEWS: `spark`, or `hive` for the names alone."""


def _describe_table(context: Context, statement: ast.DescribeTable) -> Result:
    """Runs DESCRIBE [EXTENDED] of a table, a view or a column."""
    meaning = context.namespace.meaning(statement.table)
    if isinstance(meaning, namespace.SparkRelation):
        return pass_to_spark(context, statement)
    if statement.column is not None:
        return _column(context, statement, _schema_of(context, statement.table, meaning))
    if isinstance(meaning, namespace.WarehouseTable):
        snapshot = meaning.log.snapshot()
        if statement.extended:
            return _answer(context, describe.extended(meaning.log, snapshot))
        return _answer(context, describe.columns(snapshot.schema, snapshot.partition_columns))
    return _answer(context, describe.columns(_schema_of(context, statement.table, meaning)))


def _describe_history(context: Context, statement: ast.DescribeHistory) -> Result:
    """Runs DESCRIBE HISTORY."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    return _answer(context, describe.history(table.log, statement.limit))


def _describe_detail(context: Context, statement: ast.DescribeDetail) -> Result:
    """Runs DESCRIBE DETAIL."""
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_to_spark(context, statement)
    return _answer(context, describe.detail(table.log, table.log.snapshot()))


def _describe_schema(context: Context, statement: ast.DescribeSchema) -> Result:
    """Runs DESCRIBE SCHEMA."""
    schema = named_schema(context, statement.name)
    if schema is None:
        return pass_to_spark(context, statement)
    rows = (("Catalog Name", schema[0]), ("Namespace Name", schema[1]))
    return _answer(context, Answer(rows, "info_name string, info_value string"))


def _answer(context: Context, rows: Answer) -> Result:
    """Returns the result with these rows."""
    return context.rows(rows.rows, rows.schema)


def _schema_of(context: Context, name: Name, meaning: namespace.Meaning) -> StructType:
    """Returns the columns of a relation; a view's columns have the comments of its statement."""
    if isinstance(meaning, namespace.WarehouseTable):
        return meaning.log.snapshot().schema
    written = ".".join(quote(part) for part in name)
    schema = kernel_schema(context.dataframe(f"select * from {written}").schema)
    return meaning.view.commented(schema) if isinstance(meaning, namespace.WarehouseView) else schema


def _column(context: Context, statement: ast.DescribeTable, schema: StructType) -> Result:
    name = statement.column or ()
    field = schema.field(name[-1]) if name else None
    if field is None:
        raise ColumnNotFoundError(f"the column `{'.'.join(name)}` does not exist", table=".".join(statement.table))
    rows = (("col_name", field.name), ("data_type", field.type.sql_name), ("comment", field.comment))
    return _answer(context, Answer(rows, "info_name string, info_value string"))


def _show(context: Context, statement: ast.Show) -> Result:
    """Runs SHOW on objects of the catalog; Spark shows its own objects."""
    shown = _SHOWN[statement.what](context, statement)
    return pass_to_spark(context, statement) if shown is None else _answer(context, shown)


def _tables(context: Context, statement: ast.Show) -> Answer | None:
    schema = named_schema(context, statement.name)
    if schema is None:
        return None
    temporary = dict.fromkeys(context.namespace.temporary, True)
    entries = {each.name.identifier: False for each in context.catalog.relations(*schema)} | temporary
    names = matching(entries, statement.pattern)
    if _lists_names(context):
        return _names(names)
    rows = tuple(("" if entries[n] else schema[1], n, entries[n]) for n in names)
    return Answer(rows, "namespace string, tableName string, isTemporary boolean")


def _names(names: Iterable[str]) -> Answer:
    return Answer(tuple((name,) for name in names), "tab_name string")


def _lists_names(context: Context) -> bool:
    """Returns whether SHOW TABLES and SHOW VIEWS return only names, as in Hive, whose clients read the first column.

    Raises:
        InvalidSettingError: if the session's setting has another value.
    """
    value = (context.spark.conf.get(SHOW_TABLES, None) or "spark").strip("'\"").lower()
    if value not in ("spark", "hive"):
        raise InvalidSettingError(f"`{SHOW_TABLES}` is `{value}`", remedy="Set it to `spark` or `hive`")
    return value == "hive"


def _tables_extended(context: Context, statement: ast.Show) -> Answer | None:
    schema = named_schema(context, statement.name)
    if schema is None:
        return None
    entries = {each.name.identifier: each for each in context.catalog.relations(*schema)}
    found = ((name, _information(context, entries[name])) for name in matching(entries, statement.pattern))
    rows = tuple((schema[1], name, False, text) for name, text in found if text is not None)
    return Answer(rows, "namespace string, tableName string, isTemporary boolean, information string")


def _information(context: Context, entry: RelationEntry) -> str | None:
    """Returns the description of a relation, in lines, if it still exists."""
    try:
        if entry.kind is RelationKind.VIEW:
            return f"Name: {entry.name}\nType: VIEW\nView Text: {context.catalog.view(entry.name).text}"
        log = context.catalog.table(entry.name)
        return describe.information(log, log.snapshot())
    except RelationNotFoundError:
        return None


def _views(context: Context, statement: ast.Show) -> Answer | None:
    schema = named_schema(context, statement.name)
    if schema is None:
        return None
    found = [e.name.identifier for e in context.catalog.relations(*schema) if e.kind is RelationKind.VIEW]
    names = matching(found, statement.pattern)
    if _lists_names(context):
        return _names(names)
    rows = tuple((schema[1], name, False) for name in names)
    return Answer(rows, "namespace string, viewName string, isTemporary boolean")


def _schemas(context: Context, statement: ast.Show) -> Answer | None:
    database = context.namespace.database if statement.name is None else statement.name[0]
    if not context.namespace.is_database(database):
        return None
    return Answer(
        tuple((name,) for name in matching(context.catalog.schemas(database), statement.pattern)), "namespace string"
    )


def _catalogs(context: Context, statement: ast.Show) -> Answer:
    names = matching([*context.catalog.databases(), "spark_catalog"], statement.pattern)
    return Answer(tuple((name,) for name in names), "catalog string")


def _columns(context: Context, statement: ast.Show) -> Answer | None:
    name = statement.name or ()
    meaning = context.namespace.meaning(name)
    return (
        None
        if isinstance(meaning, namespace.SparkRelation)
        else describe.column_names(_schema_of(context, name, meaning))
    )


def _properties(context: Context, statement: ast.Show) -> Answer | None:
    meaning = context.namespace.meaning(statement.name or ())
    if isinstance(meaning, namespace.WarehouseTable):
        configuration = meaning.log.snapshot().metadata.configuration
    elif isinstance(meaning, namespace.WarehouseView):
        configuration = meaning.view.properties
    else:
        return None
    if statement.key is None:
        return describe.properties(configuration)
    return describe.properties({statement.key: configuration.get(statement.key, "the property is not set")})


def _create_table(context: Context, statement: ast.Show) -> Answer | None:
    name = statement.name or ()
    meaning = context.namespace.meaning(name)
    if isinstance(meaning, namespace.SparkRelation | namespace.TemporaryView):
        return None
    if isinstance(meaning, namespace.WarehouseTable):
        written = ".".join(quote(part) for part in name) if meaning.name is None else meaning.name.quoted
        return describe.create_statement(written, meaning.log.snapshot())
    view = meaning.view
    columns = f" ({', '.join(quote(column.name) for column in view.columns)})" if view.columns else ""
    return Answer(((f"CREATE VIEW {view.name.quoted}{columns} AS {view.text}",),), "createtab_stmt string")


def _partitions(context: Context, statement: ast.Show) -> Answer | None:
    meaning = context.namespace.meaning(statement.name or ())
    if not isinstance(meaning, namespace.WarehouseTable):
        return None
    snapshot = meaning.log.snapshot()
    if not snapshot.partition_columns:
        raise UnsupportedStatementError("the table is not partitioned", table=meaning.log.name)
    fields = [snapshot.schema.require(name) for name in snapshot.partition_columns]
    values = (dict(each) for each in snapshot.files["partition_values"].to_pylist())
    found = {"/".join(f"{field.name}={_or_null(each.get(field.physical_name))}" for field in fields) for each in values}
    return Answer(tuple((each,) for each in sorted(found)), "partition string")


def _or_null(partition_value: str | None) -> str:
    """Returns the value as Spark shows it; an empty string means null."""
    return partition_value or "null"


def _functions(context: Context, statement: ast.Show) -> Answer | None:
    """Returns the catalog's functions of a schema, and Spark's; the session's functions represent the catalog's."""
    schema = named_schema(context, statement.name)
    if schema is None or statement.scope == "system":
        return None
    kept = {each.identifier: str(each) for each in context.catalog.functions(*schema)}
    rows = [kept[name] for name in matching(kept, statement.pattern)]
    if statement.scope != "user":
        spark = [row[0] for row in context.spark.sql("show system functions").collect()]
        rows += matching(spark, statement.pattern)
    return Answer(tuple((row,) for row in rows), "function string")


_SHOWN: Mapping[ShowKind, Callable[[Context, ast.Show], Answer | None]] = {
    ShowKind.TABLES: _tables,
    ShowKind.TABLE_EXTENDED: _tables_extended,
    ShowKind.VIEWS: _views,
    ShowKind.SCHEMAS: _schemas,
    ShowKind.CATALOGS: _catalogs,
    ShowKind.COLUMNS: _columns,
    ShowKind.CREATE_TABLE: _create_table,
    ShowKind.PROPERTIES: _properties,
    ShowKind.PARTITIONS: _partitions,
    ShowKind.FUNCTIONS: _functions,
}


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Returns the names that match a pattern of Spark: `*` for anything, `|` between choices, in any case."""
    if pattern is None:
        return sorted(names)
    choices = [re.compile(fnmatch.translate(each.strip().lower())) for each in pattern.split("|")]
    return sorted(name for name in names if any(choice.match(name.lower()) for choice in choices))


ROUTES: Routes = {
    ast.DescribeTable: _describe_table,
    ast.DescribeHistory: _describe_history,
    ast.DescribeDetail: _describe_detail,
    ast.DescribeSchema: _describe_schema,
    ast.Show: _show,
}
