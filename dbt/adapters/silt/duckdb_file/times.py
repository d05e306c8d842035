"""Compares the dates and times of data files, as DuckDB reads them, with the types of the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.silt.duckdb_file.types import quoted
from dbt.adapters.silt.duckdb_file.views import TableView
from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType, primitive_types

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_OLD_CALENDAR: Final = """
SELECT key FROM parquet_kv_metadata([{paths}])
WHERE decode(key) IN ('org.apache.spark.legacyDateTime', 'org.apache.spark.legacyINT96')
    OR (decode(key) = 'org.apache.spark.version' AND decode(value) < '3.0.0')
"""
_TIMES: Final = """
SELECT file_name, name, duckdb_type FROM parquet_schema([{paths}])
WHERE duckdb_type IN ('TIMESTAMP', 'TIMESTAMP_NS', 'TIMESTAMP WITH TIME ZONE')
"""
_ZONES: Final = {"timestamp": True, "timestamp_ntz": False}
_WITH_ZONE: Final = "TIMESTAMP WITH TIME ZONE"
_FIRST: Final = {
    "date": "DATE '1582-10-15'",
    "timestamp": "TIMESTAMPTZ '1900-01-01 00:00:00+00'",
    "timestamp_ntz": "TIMESTAMP '1900-01-01 00:00:00'",
}
"""The first values of each type that mean the same in the calendar that Spark used before version 3."""


def without_zone(connection: DuckDBPyConnection, view: TableView) -> dict[str, set[str]]:
    """Returns the columns of each file whose times are stored the other way: without a zone for a type with a zone.

    Raises:
        UnsupportedFeatureError: if a time within a column is stored so.
    """
    fields = view.snapshot.schema
    own = {each.physical_name: _ZONES[_name(each.type)] for each in fields if _name(each.type) in _ZONES}
    within = {_ZONES[name] for name in _nested(view) if name in _ZONES}
    found: dict[str, set[str]] = defaultdict(set)
    for file, column, kind in _rows(connection, _TIMES, view):
        has_zone = kind == _WITH_ZONE
        # A time within a column has only its own name here, so all times must be alike.
        if within and {*own.values(), *within} != {has_zone}:
            raise _other_times(view)
        if own.get(column, has_zone) != has_zone:
            found[file].add(column)
    return found


def check_calendar(connection: DuckDBPyConnection, view: TableView, full: str) -> None:
    """Checks that no date or time is in the calendar that Spark used before version 3.

    Raises:
        UnsupportedFeatureError: if one is.
    """
    if not _rows(connection, _OLD_CALENDAR, view):
        return
    early = [
        f"{quoted(field.name)} < {_FIRST[_name(field.type)]}"
        for field in view.snapshot.schema
        if _name(field.type) in _FIRST
    ]
    query = f"SELECT count(*) FROM {full} WHERE {' OR '.join(early) or 'false'}"
    if connection.execute(query).fetchone() != (0,) or any(name in _FIRST for name in _nested(view)):
        raise _other_times(view)


def _rows(connection: DuckDBPyConnection, query: str, view: TableView) -> list[Any]:
    """Returns the result of a query on the footers of a table's files."""
    paths = view.paths
    return connection.execute(query.format(paths=paths)).fetchall() if paths else []


def _name(data_type: DataType) -> str:
    return getattr(data_type, "name", "")


def _nested(view: TableView) -> Iterator[str]:
    """Yields the names of the types within columns."""
    nested = (field.type for field in view.snapshot.schema if isinstance(field.type, StructType | ArrayType | MapType))
    yield from (each.name for data_type in nested for each in primitive_types(data_type))


def _other_times(view: TableView) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "DuckDB does not read the dates or times of its files as Spark does",
        remedy="Rewrite the table with dbt, then run it again",
        table=view.snapshot.table,
    )
