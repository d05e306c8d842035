"""Runs CREATE TABLE with a query, without a query, LIKE another relation and as a CLONE, and CONVERT TO DELTA."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dbt.adapters.silt.engine.builds.origins import origin_of
from dbt.adapters.silt.engine.changed_keys.keyed_query import keyed_query
from dbt.adapters.silt.engine.changed_keys.replacement import settings_of
from dbt.adapters.silt.engine.commands.insert.differences import create_by_differences
from dbt.adapters.silt.engine.commands.spark.file_formats import check_table_format
from dbt.adapters.silt.engine.commands.spark.types import column_type, kernel_schema
from dbt.adapters.silt.engine.commands.tables import clone as cloning
from dbt.adapters.silt.engine.commands.tables import convert as converting
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.clone import CloneOptions, CloneSource
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction.branch_log import note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import TimeTravel
from dbt.adapters.silt.engine.statements.execute.constraints import kept, named
from dbt.adapters.silt.engine.statements.execute.functions import refuse_calls
from dbt.adapters.silt.engine.statements.resolve import namespace
from dbt.adapters.silt.engine.statements.resolve.changes_functions import check_consumer
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.reads import Inputs, Resolved
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark, pass_with_query
from dbt.adapters.silt.engine.statements.steps.create_target import CreateTarget, create_target_of
from dbt.adapters.silt.engine.statements.steps.on_table import (
    Maker,
    Verb,
    make_table,
    report,
    settings_with,
    table_to_change,
)

_OPERATION = "CREATE TABLE"


def create_table(context: Context, statement: ast.CreateTable) -> Result:
    """Runs CREATE [OR REPLACE] TABLE [AS]."""
    target = create_target_of(context, statement.table, statement.mode)
    if target is None:
        return pass_with_query(context, statement, statement.query)

    def refuse(table: str) -> None:
        _refuse(context, statement, table)
        _refuse_differences(statement, table)
        _refuse_layout(statement, table)
        _refuse_functions(context, statement, table)

    def define(target: CreateTarget) -> Maker:
        definition = _definition(context, statement, target.label)
        texts = [] if statement.query is None else [SqlFragment(statement.query)]
        resolved = context.resolver.resolve(texts, target=target.log, replaces_target=True)
        check_consumer(resolved.positions, target.name)
        query = context.frame(resolved) if texts else None
        settings, mode = _settings(context, statement, resolved, target), target.mode(statement.mode)

        def make(log: DeltaLog) -> Outcome:
            tests = () if settings.judge is None else settings.judge.tests
            location = TableLocation(log, resolved.target, is_managed=target.path is None, tests=tests)
            if statement.differences_by and query is not None:
                return create_by_differences(context.spark, location, definition, query, mode, settings)
            return create.create(context.spark, location, definition, query, mode, settings)

        return Maker(settings, make)

    return make_table(context, statement, Verb(_OPERATION, refuse), target, define)


def _create_table_like(context: Context, statement: ast.CreateTableLike) -> Result:
    """Runs CREATE TABLE ... CREATE TABLE ... LIKE, which copies the schema of another relation without its rows."""
    target = create_target_of(context, statement.table, statement.mode)
    if target is None:
        if context.namespace.may_be_in_warehouse(statement.source):
            raise UnsupportedStatementError(
                "a table of Spark's own cannot be created LIKE a table of a warehouse",
                table=".".join(statement.source),
                remedy="Use `create table ... as select ... where false`",
            )
        return pass_to_spark(context, statement)

    def define(target: CreateTarget) -> Maker:
        definition, resolved = _like(context, statement)
        base = None if target.log is None else target.log.snapshot()
        settings, mode = settings_with(context, resolved, target.name), target.mode(statement.mode)

        def make(log: DeltaLog) -> Outcome:
            return create.create(context.spark, TableLocation(log, base), definition, None, mode, settings)

        return Maker(settings, make)

    refuse = partial(_refuse, context, statement)
    return make_table(context, statement, Verb(_OPERATION, refuse), target, define)


def _settings(context: Context, statement: ast.CreateTable, resolved: Resolved, target: CreateTarget) -> WriteSettings:
    """Returns the settings of the commit, which records with CHANGED KEYS the changes that the table contains.

    Raises:
        UnsupportedStatementError: if CHANGED KEYS is given without a query, or as `keyed_query`.
    """
    settings = settings_with(context, resolved, target.name)
    if statement.changed_keys is None:
        return settings
    if statement.query is None:
        raise UnsupportedStatementError("CHANGED KEYS needs a query", table=target.label, remedy="Leave it out")
    query = keyed_query(context, statement.changed_keys, resolved)
    return settings_of(query, resolved, resolved.target, target.label, settings)


def _like(context: Context, statement: ast.CreateTableLike) -> tuple[Definition, Resolved]:
    """Returns the definition of a table, or the columns of another relation, with their reads."""
    meaning = context.namespace.meaning(statement.source)
    if isinstance(meaning, WarehouseTable):
        source = meaning.log.snapshot()
        resolved = context.resolver.resolve([])
        inputs = Inputs({source.table: (source.version,)}).and_earlier(resolved.inputs)
        return Definition(properties=statement.properties, source=source), replace(resolved, inputs=inputs)
    name = ".".join(quote(part) for part in statement.source)
    resolved = replace(context.resolver, notes_reads=False).query(f"select * from {name}")
    schema = kernel_schema(context.frame(resolved).schema)
    columns = (ast.ColumnDefinition(each.name, each.sql_type, each.nullable, each.comment) for each in schema)
    return Definition(columns=tuple(columns), properties=statement.properties), resolved


def _refuse(context: Context, statement: ast.CreateTable | ast.CreateTableLike, table: str) -> None:
    check_table_format(context.spark, statement.using, table)
    if statement.location is not None:
        raise UnsupportedStatementError(
            "the location of a named table is its folder in the warehouse",
            table=table,
            remedy=f"Leave LOCATION out, or create it as delta.`{statement.location}`",
        )


def _refuse_differences(statement: ast.CreateTable, table: str) -> None:
    if statement.differences_by and (statement.query is None or statement.changed_keys is not None):
        raise UnsupportedStatementError(
            "WRITE DIFFERENCES BY needs a query, and cannot be combined with CHANGED KEYS",
            table=table,
            remedy="Leave it out",
        )


def _refuse_layout(statement: ast.CreateTable, table: str) -> None:
    if statement.options:
        raise UnsupportedStatementError("OPTIONS are not supported", table=table, remedy="Leave them out")


def _refuse_functions(context: Context, statement: ast.CreateTable, table: str) -> None:
    for column in statement.columns:
        refuse_calls(context, column.default, f"the default of the column `{column.name}`", table)
        refuse_calls(context, column.generated, f"the generated column `{column.name}`", table)
    for constraint in statement.constraints:
        refuse_calls(context, constraint.condition, "a check constraint", table)


def _kept(context: Context, column: ast.ColumnDefinition) -> ast.ColumnDefinition:
    default = None if column.default is None else context.kept(column.default)
    generated = None if column.generated is None else context.kept(column.generated)
    return replace(column, default=default, generated=generated)


def _definition(context: Context, statement: ast.CreateTable, table: str) -> Definition:
    constraints = named(kept(context, statement.constraints), context.namespace, table)
    return Definition(
        columns=tuple(_kept(context, column) for column in statement.columns),
        partition_columns=statement.partitioned_by,
        clustered_by=statement.clustered_by,
        comment=statement.comment,
        properties=statement.properties,
        constraints=constraints.checks,
        keys=constraints.keys,
        dropping=constraints.dropping,
        differences_by=statement.differences_by,
    )


def run_clone(context: Context, statement: ast.Clone) -> Result:
    """Runs CREATE TABLE ... SHALLOW | DEEP CLONE."""
    target = create_target_of(context, statement.table, statement.mode)
    source = table_to_change(context, statement.source)
    if target is None and source is None:
        return pass_to_spark(context, statement)
    if target is None or source is None:
        raise UnsupportedStatementError(
            "a table of a warehouse can only be cloned to a table of a warehouse",
            table=".".join(statement.table),
            remedy="Use `create table ... as select`",
        )
    return make_table(
        context,
        statement,
        Verb(cloning.OPERATION, lambda table: _refuse_location(statement, table)),
        target,
        lambda target: _clone(context, statement, target, source.log),
    )


def _clone(context: Context, statement: ast.Clone, target: CreateTarget, source: DeltaLog) -> Maker:
    cloned = CloneSource(source.name, source, _source_snapshot(context, source, statement.at))
    snapshot = cloned.snapshot
    origin = origin_of(source, snapshot.metadata.id, snapshot.version, snapshot.content)
    resolved = context.resolver.resolve([], target=target.log)
    inputs = Inputs({source.name: (cloned.snapshot.version,)}).and_earlier(resolved.inputs)
    settings = settings_with(context, replace(resolved, inputs=inputs), target.name)
    settings = settings.with_commit_info(origin.commit_info())

    def make(log: DeltaLog) -> Outcome:
        location = TableLocation(log, resolved.target, is_managed=target.path is None)
        options = CloneOptions(statement.shallow, statement.properties)
        return cloning.clone(location, cloned, options, target.mode(statement.mode), settings)

    return Maker(settings, make)


def _convert(context: Context, statement: ast.ConvertToDelta) -> Result:
    """Runs CONVERT TO DELTA of a folder; a folder inside a schema's folder is found by its name afterwards."""
    source = statement.source
    is_folder = len(source) == 2 and source[0].lower() in ("parquet", "delta")
    if not is_folder and not context.namespace.may_be_in_warehouse(source):
        return pass_to_spark(context, statement)
    if not is_folder or (source[0].lower() == "delta" and not context.catalog.table_at(source[1]).exists()):
        raise UnsupportedStatementError(
            "only a folder of Parquet files can be converted",
            table=".".join(source),
            remedy="Name it by its path: convert to delta parquet.`/the/folder`",
        )
    log = context.catalog.table_at(source[1])
    partitioning = [replace(column_type(str(each.type), log.name), name=each.name) for each in statement.partitioned_by]
    outcome = converting.convert(context.spark, log, partitioning, context.settings, statement.statistics)
    return report(context, log, Result(outcome=outcome))


def _refuse_location(statement: ast.Clone, table: str) -> None:
    if statement.location is not None:
        raise UnsupportedStatementError(
            "the location of a named table is its folder in the warehouse",
            table=table,
            remedy=f"Leave LOCATION out, or clone to delta.`{statement.location}`",
        )


def _source_snapshot(context: Context, log: DeltaLog, at: TimeTravel | None) -> Snapshot:
    if at is None:
        note_reads(log, ReadSet(whole_table=True))
    return log.snapshot() if at is None else log.snapshot_at(namespace.version_of(context.namespace, log, at))


ROUTES: Routes = {
    ast.CreateTable: create_table,
    ast.CreateTableLike: _create_table_like,
    ast.Clone: run_clone,
    ast.ConvertToDelta: _convert,
}
