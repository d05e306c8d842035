"""Answers the calls of `spark.catalog` about a warehouse; Spark answers the calls about its functions and its cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.connect.proto import catalog_pb2 as pc
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from pyspark.sql.types import StructField

from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName, completed
from dbt.adapters.silt.engine.kernel.errors import (
    InvalidNameError,
    RelationNotFoundError,
    SchemaNotFoundError,
    SiltError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote, split_name, string_literal
from dbt.adapters.silt.engine.statements.execute.describe_show import matching

_TEXT, _FLAG = pa.string(), pa.bool_()
_TABLES: Final = pa.schema(
    [
        *((name, _TEXT) for name in ("name", "catalog")),
        ("namespace", pa.list_(_TEXT)),
        *((name, _TEXT) for name in ("description", "tableType")),
        ("isTemporary", _FLAG),
    ]
)
_DATABASES: Final = pa.schema([(name, _TEXT) for name in ("name", "catalog", "description", "locationUri")])
_CATALOGS: Final = pa.schema([(name, _TEXT) for name in ("name", "description")])
_COLUMNS: Final = pa.schema(
    [
        *((name, _TEXT) for name in ("name", "description", "dataType")),
        *((name, _FLAG) for name in ("nullable", "isPartition", "isBucket", "isCluster")),
    ]
)
_OWN_VIEW: Final = re.compile(r"^__silt_|^_pyspark_connect_temp_view_|/[0-9a-f]{8}\.\d+$")
"""The temporary views of the engine itself, and of DataFrames in SQL texts."""


def answer(session: Session, call: pc.Catalog, only_reads: bool = True) -> pa.Table | None:
    """Returns the answer to a call, or None if Spark answers it.

    Args:
        only_reads: whether it may only read: it is a part of a plan, which may be analysed before it is run.

    Raises:
        UnsupportedStatementError: if it may only read, and changes something.
        SiltError: as the SQL statement that means the same.
    """
    kind = str(call.WhichOneof("cat_type"))
    if only_reads and kind in _CHANGES:
        raise UnsupportedStatementError(f"`{kind}` cannot be a part of a plan", remedy="Call it on its own")
    answering = (_READS | _CHANGES).get(kind)
    return None if answering is None else answering(session, getattr(call, kind))


def answers(call: pc.Catalog) -> bool:
    """Returns whether the endpoint answers a call."""
    return call.WhichOneof("cat_type") in _READS | _CHANGES


def _rows(schema: pa.Schema, rows: Sequence[Sequence[object]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _value(value: object) -> pa.Table:
    return pa.table({"value": [value]})


def _nothing(session: Session, call: Any) -> pa.Table:  # noqa: ARG001
    return pa.table({})


def _schema(session: Session, name: str) -> tuple[str, str]:
    """Returns database and schema of a name, by default the current schema.

    Raises:
        SchemaNotFoundError: if the warehouse has no such schema.
    """
    database, schema = session.current
    parts = _names(name)
    found = (parts[0], parts[1]) if len(parts) == 2 else (database, parts[0] if parts else schema)
    if not session.catalog.has_schema(*found):
        raise SchemaNotFoundError(f"the schema `{found[1]}` does not exist in database `{found[0]}`")
    return found


def _names(name: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in split_name(name)) if name else ()


def _databases(session: Session, call: Any) -> pa.Table:
    database = session.current[0]
    names = matching(session.catalog.schemas(database), call.pattern or None)
    return _rows(_DATABASES, [_database(database, name) for name in names])


def _database(database: str, schema: str) -> tuple[str, str, None, str]:
    return schema, database, None, ""


def _get_database(session: Session, call: Any) -> pa.Table:
    return _rows(_DATABASES, [_database(*_schema(session, call.db_name))])


def _database_exists(session: Session, call: Any) -> pa.Table:
    try:
        _schema(session, call.db_name)
    except (SchemaNotFoundError, InvalidNameError):
        return _value(False)
    return _value(True)


def _tables(session: Session, call: Any) -> pa.Table:
    return _rows(_TABLES, _relations(session, call, (RelationKind.TABLE, RelationKind.VIEW)))


def _views(session: Session, call: Any) -> pa.Table:
    return _rows(_TABLES, _relations(session, call, (RelationKind.VIEW,)))


def _relations(session: Session, call: Any, kinds: Sequence[RelationKind]) -> list[tuple[object, ...]]:
    database, schema = _schema(session, call.db_name)
    found = {each.name.identifier: each for each in session.catalog.relations(database, schema) if each.kind in kinds}
    rows = [_table(found[name].name, found[name].kind) for name in matching(found, call.pattern or None)]
    return rows + [_temporary(name) for name in matching(_temporary_views(session), call.pattern or None)]


def _table(name: RelationName, kind: RelationKind) -> tuple[object, ...]:
    word = "VIEW" if kind is RelationKind.VIEW else "MANAGED"
    return name.identifier, name.database, [name.schema], None, word, False


def _temporary(name: str) -> tuple[object, ...]:
    return name, None, [], None, "TEMPORARY", True


def _temporary_views(session: Session) -> list[str]:
    house = session.warehouse
    found = {each.name for each in house.spark.catalog.listTables() if each.isTemporary}
    return [each for each in {*found, *house.temporary_views} if not _OWN_VIEW.search(each)]


def _get_table(session: Session, call: Any) -> pa.Table:
    parts, name = _names(_full(call)), _full(call)
    if len(parts) == 1 and parts[0] in map(str.lower, _temporary_views(session)):
        return _rows(_TABLES, [_temporary(parts[0])])
    database, schema = session.current
    full = completed(parts, database, schema)
    entry = session.catalog.find(full)
    if entry is None:
        raise RelationNotFoundError("the table or view does not exist", table=name)
    return _rows(_TABLES, [_table(full, entry.kind)])


def _full(call: Any) -> str:
    return f"{quote(call.db_name)}.{call.table_name}" if getattr(call, "db_name", "") else str(call.table_name)


def _table_exists(session: Session, call: Any) -> pa.Table:
    try:
        session.warehouse.schema_of(f"select * from {_full(call)}")
    except (RelationNotFoundError, SchemaNotFoundError, InvalidNameError):
        return _value(False)
    except SiltError:  # of its rows
        return _value(True)
    return _value(True)


def _columns(session: Session, call: Any) -> pa.Table:
    name = _full(call)
    fields = session.warehouse.schema_of(f"select * from {name}").fields
    partitions = _partition_columns(session, name)
    rows = [
        (
            each.name,
            each.metadata.get("comment"),
            each.dataType.simpleString(),
            each.nullable,
            each.name in partitions,
            False,
            False,
        )
        for each in fields
    ]
    return _rows(_COLUMNS, rows)


def _partition_columns(session: Session, name: str) -> set[str]:
    described = session.warehouse.sql(f"describe table {name}").toArrow().column(0).to_pylist()
    at = described.index("# Partition Information") + 2 if "# Partition Information" in described else len(described)
    return set(described[at:])


def _by_sql(text: Callable[[Any], str]) -> Callable[[Session, Any], pa.Table]:
    """Answers a call by the rows of an SQL statement."""

    def run(session: Session, call: Any) -> pa.Table:
        frame = session.execute(text(call)).dataframe
        return pa.table({}) if frame is None else frame.toArrow()

    return run


def _if_exists(call: Any) -> str:
    return "if exists " if call.if_exists else ""


def _create_table(call: Any) -> str:
    if not call.HasField("schema"):
        raise UnsupportedStatementError(
            "a table of a warehouse is created with its columns", table=call.table_name, remedy="Give its schema"
        )
    fields: list[StructField] = proto_schema_to_pyspark_data_type(call.schema).fields  # type: ignore[attr-defined]
    columns = (f"{quote(f.name)} {f.dataType.simpleString()}{'' if f.nullable else ' not null'}" for f in fields)
    using = f" using {quote(call.source or 'delta')}"
    place = f" location {string_literal(call.path)}" if call.path else ""
    comment = f" comment {string_literal(call.description)}" if getattr(call, "description", "") else ""
    return f"create table {call.table_name} ({', '.join(columns)}){using}{place}{comment}"


_READS: Final[dict[str, Callable[[Session, Any], pa.Table]]] = {
    "current_catalog": lambda session, _: _value(session.current[0]),
    "current_database": lambda session, _: _value(session.current[1]),
    "list_catalogs": lambda session, call: _rows(
        _CATALOGS, [(name, None) for name in matching(session.catalog.databases(), call.pattern or None)]
    ),
    "list_databases": _databases,
    "get_database": _get_database,
    "database_exists": _database_exists,
    "list_tables": _tables,
    "list_views": _views,
    "get_table": _get_table,
    "table_exists": _table_exists,
    "list_columns": _columns,
    "is_cached": lambda *_: _value(False),
    "refresh_table": _nothing,
    "uncache_table": _nothing,
    "list_partitions": _by_sql(lambda call: f"show partitions {call.table_name}"),
    "get_table_properties": _by_sql(lambda call: f"show tblproperties {call.table_name}"),
    "get_create_table_string": _by_sql(lambda call: f"show create table {call.table_name}"),
}
_CHANGES: Final[dict[str, Callable[[Session, Any], pa.Table]]] = {
    "drop_temp_view": lambda session, call: _value(session.warehouse.drop_temporary_view(call.view_name)),
    "set_current_catalog": _by_sql(lambda call: f"use catalog {quote(call.catalog_name)}"),
    "set_current_database": _by_sql(lambda call: f"use {call.db_name}"),
    "create_table": _by_sql(_create_table),
    "create_external_table": _by_sql(_create_table),
    "cache_table": _by_sql(lambda call: f"cache table {call.table_name}"),
    "analyze_table": _by_sql(lambda call: f"analyze table {call.table_name} compute statistics"),
    "recover_partitions": _by_sql(lambda call: f"msck repair table {call.table_name}"),
    "drop_table": _by_sql(lambda call: f"drop table {_if_exists(call)}{call.table_name}"),
    "drop_view": _by_sql(lambda call: f"drop view {_if_exists(call)}{call.view_name}"),
    "truncate_table": _by_sql(lambda call: f"truncate table {call.table_name}"),
    "create_database": _by_sql(
        lambda call: f"create schema {'if not exists ' if call.if_not_exists else ''}{call.db_name}"
    ),
    "drop_database": _by_sql(
        lambda call: f"drop schema {_if_exists(call)}{call.db_name}{' cascade' if call.cascade else ''}"
    ),
}
