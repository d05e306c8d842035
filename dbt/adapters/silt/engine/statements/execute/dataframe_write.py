"""Writes rows of a DataFrame into a table, as Spark's DataFrameWriter does: each mode maps to a statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypedDict

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind
from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.tables import stats_columns
from dbt.adapters.silt.engine.kernel import errors, near_names
from dbt.adapters.silt.engine.kernel.identifiers import quote, split_name
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by, clustering_columns, logical_paths
from dbt.adapters.silt.engine.kernel.table.keys import constraint_names
from dbt.adapters.silt.engine.kernel.table.properties import is_settable
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.branch_log import note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, InsertMode, Name, SaveMode
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.engine.statements.execute import create_table, insert
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes
from dbt.adapters.silt.engine.statements.steps.create_target import CreateTarget, create_target_of

_MODES: Final[Mapping[str, SaveMode]] = {
    "append": SaveMode.APPEND,
    "overwrite": SaveMode.OVERWRITE,
    "error": SaveMode.ERROR,
    "errorifexists": SaveMode.ERROR,
    "default": SaveMode.ERROR,
    "ignore": SaveMode.IGNORE,
}


class WriteOptions(TypedDict, total=False):
    """The options of `Warehouse.write`.

    Attributes:
        partition_by: the partition columns of a new table; for an existing table, its own partition columns.
        cluster_by: the clustering columns of a new table, dotted if they are inside of structs; for an existing table,
            its own.
        merge_schema: whether columns that only the rows have are added to the table.
        overwrite_schema: with the mode `overwrite`: whether the rows' columns replace the table's columns; its comment
            and properties are kept.
        replace_where: with the mode `overwrite`: a condition in SQL; the rows that meet it are replaced, and each new
            row must meet it.
        user_metadata: as for `Warehouse.sql`.
    """

    partition_by: str | Sequence[str]
    cluster_by: str | Sequence[str]
    merge_schema: bool
    overwrite_schema: bool
    replace_where: str
    user_metadata: str


def statement(table: str, view: str, mode: str, options: Mapping[str, Any]) -> ast.WriteRows:
    """Returns the statement for a call of `Warehouse.write`.

    Args:
        table: SQL of the table's name.
        view: temporary view of the rows.
        options: options of WriteOptions.

    Raises:
        InvalidArgumentError: if the mode or an option is unknown, or if options contradict each other.
        StatementSyntaxError: if `table` is not a name.
    """
    near_names.check(options, ("mode", "txn", *WriteOptions.__annotations__), "a write of rows")
    found = _MODES.get(mode.lower()) if isinstance(mode, str) else None
    if found is None:
        raise errors.InvalidArgumentError(
            f"unknown write mode {mode!r}", remedy="The modes are append, overwrite, error and ignore"
        )
    written = ast.WriteRows(
        text=f"write of rows to {table}",
        table=_name(table),
        view=view,
        mode=found,
        partition_by=_columns(options.get("partition_by")),
        cluster_by=_columns(options.get("cluster_by")),
        merge_schema=options.get("merge_schema", False),
        overwrite_schema=options.get("overwrite_schema", False),
        replace_where=options.get("replace_where"),
    )
    _check_options(written)
    return written


def _columns(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    return (given,) if isinstance(given, str) else None if given is None else tuple(given)


def _write(context: Context, statement: ast.WriteRows) -> Result:
    """Creates the table, or appends to or overwrites an existing table."""
    target = create_target_of(context, statement.table, CreateMode.CREATE)
    if target is None:
        raise _not_in_warehouse(statement.table)
    if target.log is None or not target.exists or statement.mode in (SaveMode.ERROR, SaveMode.IGNORE):
        return _create(context, statement, target)
    snapshot = target.log.snapshot()
    if statement.overwrite_schema:
        return create_table.create_table(context, _replacement(context, statement, target, snapshot))
    _check_partitions(statement, snapshot)
    _check_clustering(statement, snapshot)
    return insert.insert(context, _insert(statement, target))


def recorded_version(namespace: Namespace, table: str, app_id: str) -> int | None:
    """Returns the latest version that an application has committed to a table, if any.

    Raises:
        InvalidNameError, SchemaNotFoundError: if the name is not in the warehouse.
        UnsupportedStatementError: if the name is a view's.
    """
    log = _table(namespace, _name(table))
    if log is None:
        return None
    note_reads(log, ReadSet(transactions=True))
    version = log.snapshot().transaction_version(app_id)
    return None if version is None or version < 0 else version


def _table(namespace: Namespace, name: Name) -> DeltaLog | None:
    if ast.is_path(name):
        log = namespace.catalog.table_at(name[1])
        return log if log.exists() else None
    full = namespace.writable(name)
    if full is None:
        raise _not_in_warehouse(name)
    entry = namespace.catalog.find(full)
    if entry is not None and entry.kind is not RelationKind.TABLE:
        raise errors.UnsupportedStatementError(
            "a view records no transaction identifiers", table=str(full), remedy="Name a table"
        )
    return None if entry is None else namespace.catalog.table(full)


def _not_in_warehouse(name: Name) -> errors.InvalidNameError:
    return errors.InvalidNameError(
        f"`{'.'.join(name)}` is not in a warehouse",
        remedy="Name one of its schemas, such as `main`; a table of Spark's own is written by `df.writeTo`",
    )


def _check_options(written: ast.WriteRows) -> None:
    replaces_where = written.replace_where is not None
    is_overwrite = written.mode is SaveMode.OVERWRITE
    contradictions = (
        ("`overwrite_schema` is for the mode `overwrite` only", written.overwrite_schema and not is_overwrite),
        ("`replace_where` is for the mode `overwrite` only", replaces_where and not is_overwrite),
        ("`overwrite_schema` replaces all rows, `replace_where` some", written.overwrite_schema and replaces_where),
        (
            "`overwrite_schema` drops the columns that `merge_schema` keeps",
            written.overwrite_schema and written.merge_schema,
        ),
    )
    for problem, is_met in contradictions:
        if is_met:
            raise errors.InvalidArgumentError(problem, table=".".join(written.table), remedy="Leave one of the two out")


def _name(text: str) -> Name:
    if not isinstance(text, str):
        raise errors.InvalidArgumentError(f"the name of a table cannot be {text!r}", remedy="Pass it as a string")
    cursor = Cursor(text, tokenize(text))
    name = cursor.name()
    cursor.finished()
    return name


def _create(context: Context, statement: ast.WriteRows, target: CreateTarget) -> Result:
    """Creates the table with the rows; if another writer creates it first, writes them into that table."""
    mode = CreateMode.CREATE_IF_NOT_EXISTS if statement.mode is SaveMode.IGNORE else CreateMode.CREATE
    creation = ast.CreateTable(
        text=statement.text,
        table=_full_name(target),
        mode=mode,
        partitioned_by=statement.partition_by or (),
        clustered_by=tuple(map(split_name, statement.cluster_by or ())),
        query=_rows(statement),
    )
    if not target.exists and statement.replace_where is not None:
        # The write itself checks the rows; only this call creates the empty table.
        empty = replace(creation, mode=CreateMode.CREATE_IF_NOT_EXISTS, query=f"{_rows(statement)} where false")
        settings = replace(context.settings, txn=None, audits=None)
        create_table.create_table(replace(context, settings=settings), empty)
        return _write(context, statement)
    try:
        return create_table.create_table(context, creation)
    except (errors.ConcurrentCreateError, errors.RelationExistsError):
        is_there = create_target_of(context, statement.table, CreateMode.CREATE)
        if statement.mode in (SaveMode.ERROR, SaveMode.IGNORE) or is_there is None or not is_there.exists:
            raise
        return _write(context, statement)


def _replacement(context: Context, statement: ast.WriteRows, target: CreateTarget, there: Snapshot) -> ast.CreateTable:
    """Returns the statement that replaces the table by a table with the rows' columns."""
    constraints = constraint_names(there.metadata.configuration)
    if constraints:
        raise errors.UnsupportedStatementError(
            f"`overwrite_schema` would drop its constraints: {', '.join(constraints)}",
            table=target.label,
            remedy="Drop them first, with alter table ... drop constraint, or use create or replace table",
        )
    partition_by = there.partition_columns if statement.partition_by is None else statement.partition_by
    columns = query_schema(context.spark.table(quote(statement.view)))
    properties = stats_columns.among(there.metadata.configuration, columns)
    return ast.CreateTable(
        text=statement.text,
        table=_full_name(target),
        mode=CreateMode.CREATE_OR_REPLACE,
        partitioned_by=partition_by,
        clustered_by=_kept_clustering(statement, there, columns),
        comment=there.metadata.description,
        properties={key: value for key, value in properties.items() if is_settable(key)},
        query=_rows(statement),
    )


def _check_partitions(statement: ast.WriteRows, there: Snapshot) -> None:
    wanted = statement.partition_by
    if wanted is None or [name.lower() for name in wanted] == [name.lower() for name in there.partition_columns]:
        return
    own = ", ".join(there.partition_columns) or "nothing"
    raise errors.InvalidArgumentError(
        f"it is partitioned by {own}, and `partition_by` says {', '.join(wanted) or 'nothing'}",
        table=there.table,
        remedy="Leave `partition_by` out, or write with mode `overwrite` and `overwrite_schema=True`",
    )


def _check_clustering(statement: ast.WriteRows, there: Snapshot) -> None:
    wanted, own = statement.cluster_by, clustered_by(there.schema, there.domains)
    if wanted is None or [name.lower() for name in wanted] == [name.lower() for name in own]:
        return
    raise errors.InvalidArgumentError(
        f"it is clustered by {', '.join(own) or 'nothing'}, and `cluster_by` says {', '.join(wanted) or 'nothing'}",
        table=there.table,
        remedy="Leave `cluster_by` out, or change it by `alter table ... cluster by`",
    )


def _kept_clustering(statement: ast.WriteRows, there: Snapshot, columns: StructType) -> tuple[Name, ...]:
    """Returns the columns to cluster by: the statement's, or else the table's that the rows still have."""
    if statement.cluster_by is not None:
        return tuple(map(split_name, statement.cluster_by))
    own = logical_paths(there.schema, clustering_columns(there.domains))
    return () if statement.partition_by else tuple(path for path in own if path[0] in columns)


def _insert(statement: ast.WriteRows, target: CreateTarget) -> ast.Insert:
    mode = InsertMode.INTO if statement.mode is SaveMode.APPEND else InsertMode.OVERWRITE
    return ast.Insert(
        text=statement.text,
        table=_full_name(target),
        query=_rows(statement),
        mode=mode if statement.replace_where is None else InsertMode.REPLACE_WHERE,
        condition=statement.replace_where,
        by_name=True,
        schema_evolution=statement.merge_schema,
    )


def _full_name(target: CreateTarget) -> Name:
    """Returns the full name, which cannot mean a temporary view."""
    if target.name is None:
        return ("delta", str(target.path))
    return (target.name.database, target.name.schema, target.name.identifier)


def _rows(statement: ast.WriteRows) -> str:
    return f"select * from {quote(statement.view)}"


ROUTES: Routes = {
    ast.WriteRows: _write,
}
