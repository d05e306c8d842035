"""The clustering columns of a table, in the domain `delta.clustering`, and the tags of clustered files.

Files that were clustered together are a cube: they share the tag `ZCUBE_ID`, and name the columns that they were
clustered by. Sources: the Delta specification, section "Clustered Table"; the tags and the provider are delta-spark's
(`ZCubeInfo`), so that both engines continue each other's work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    CorruptLogError,
    InvalidStatementError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.identifiers import quote_if_needed
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

CLUSTERING_DOMAIN: Final = "delta.clustering"
FEATURE: Final = "clustering"

PROVIDER: Final = "liquid"
"""The clustering implementation of delta-spark, which this engine continues (`clusteringProvider`)."""

CUBE_ID: Final = "ZCUBE_ID"
_CUBE_COLUMNS: Final = "ZCUBE_ZORDER_BY"
_CUBE_CURVE: Final = "ZCUBE_ZORDER_CURVE"
_CURVE: Final = "zorder"

MOST_COLUMNS: Final = 4
"""The number of columns that delta-spark clusters by at most."""

_ORDERED: Final = frozenset("byte short integer long float double date timestamp timestamp_ntz string".split())
"""The types, besides decimals, whose values delta-spark skips files by."""

Path: TypeAlias = tuple[str, ...]


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[Path, ...]:
    """Returns the paths, by physical names, of the columns that the table is clustered by, if any.

    Raises:
        CorruptLogError: if the domain's configuration contradicts the specification.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        columns = foreign_json.loads(domain.configuration)["clusteringColumns"]
        # delta-spark writes a path as a list of names; the specification's own example has plain names.
        paths = tuple((column,) if isinstance(column, str) else tuple(map(str, column)) for column in columns)
        if not all(paths):
            raise ValueError("a column has no name")
        return paths
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(f"the domain {CLUSTERING_DOMAIN} cannot be read ({error!r})") from error


def clustering_domain(columns: Sequence[Path]) -> DomainMetadata:
    """Returns the domain that names clustering columns, by physical names, as delta-spark writes it."""
    configuration = {"clusteringColumns": [list(path) for path in columns], "domainName": CLUSTERING_DOMAIN}
    return DomainMetadata(CLUSTERING_DOMAIN, json.dumps(configuration, ensure_ascii=False, separators=(",", ":")))


def logical_paths(schema: StructType, columns: Sequence[Path]) -> list[Path]:
    """Returns the paths of clustering columns by the names that users know; a column that is missing keeps its name."""
    return [_logical_path(schema, path) for path in columns]


def clustered_by(schema: StructType, domains: Mapping[str, DomainMetadata]) -> list[str]:
    """Returns the columns that the table is clustered by, as SQL spells them.

    Raises:
        CorruptLogError: as `clustering_columns`.
    """
    return spelled(schema, clustering_columns(domains))


def spelled(schema: StructType, columns: Sequence[Path]) -> list[str]:
    """Returns columns, given by physical names, as SQL spells them."""
    return [".".join(map(quote_if_needed, path)) for path in logical_paths(schema, columns)]


def checked_columns(
    columns: Sequence[Path], schema: StructType, indexed: Collection[Path], partitioned_by: Sequence[str], table: str
) -> tuple[Path, ...]:
    """Returns the paths, by physical names, of columns that a statement names in CLUSTER BY.

    Args:
        indexed: the paths, by physical names, of the columns with statistics.
        partitioned_by: the partition columns of the table.

    Raises:
        InvalidStatementError: if the columns are too many, a column is named twice, or the table has partitions.
        ColumnNotFoundError: if a column does not exist.
        UnsupportedStatementError: if a column has no statistics by which files can be left out.
    """
    if columns and partitioned_by:
        raise InvalidStatementError(
            "a table is either clustered or partitioned", remedy="Leave out CLUSTER BY or PARTITIONED BY", table=table
        )
    if len(columns) > MOST_COLUMNS:
        raise InvalidStatementError(
            f"CLUSTER BY lists {len(columns)} columns, and can list {MOST_COLUMNS}",
            remedy="Name the few columns that queries filter by",
            table=table,
        )
    found = tuple(_checked_column(path, schema, indexed, table) for path in columns)
    if len(set(found)) < len(found):
        raise InvalidStatementError("CLUSTER BY names a column twice", remedy="Name each column once", table=table)
    return found


def cube_tags(cube: str, columns: Sequence[str]) -> dict[str, str]:
    """Returns the tags of a file of a cube.

    Args:
        cube: the id of the cube.
        columns: the clustering columns, as SQL spells them.
    """
    return {CUBE_ID: cube, _CUBE_COLUMNS: _columns_text(columns), _CUBE_CURVE: _CURVE}


def is_clustered_by(tags: Mapping[str, str | None], columns: Sequence[str]) -> bool:
    """Returns whether a file belongs to a cube of these clustering columns."""
    try:
        return tags.get(CUBE_ID) is not None and foreign_json.loads(tags.get(_CUBE_COLUMNS) or "") == list(columns)
    except ValueError:
        return False


def _columns_text(columns: Sequence[str]) -> str:
    return json.dumps(list(columns), ensure_ascii=False, separators=(",", ":"))


def _checked_column(path: Path, schema: StructType, indexed: Collection[Path], table: str) -> Path:
    name = ".".join(map(quote_if_needed, path))
    found = column_at(schema, path)
    if found is None:
        raise ColumnNotFoundError(f"CLUSTER BY names the column {name}, which does not exist", table=table)
    physical, data_type = found
    if not _is_ordered(data_type):
        raise UnsupportedStatementError(
            f"files cannot be clustered by {name}: its type {data_type.sql_name} has no minimum and maximum",
            remedy="Cluster by columns of numbers, strings, dates or times",
            table=table,
        )
    if physical not in indexed:
        raise UnsupportedStatementError(
            f"files cannot be clustered by {name}, because they have no statistics of it",
            remedy="Add it to `delta.dataSkippingStatsColumns`, or raise `delta.dataSkippingNumIndexedCols`",
            table=table,
        )
    return physical


def _is_ordered(data_type: DataType) -> bool:
    if isinstance(data_type, DecimalType):
        return True
    return isinstance(data_type, PrimitiveType) and data_type.name in _ORDERED


def physical_path(schema: StructType, path: Path) -> Path:
    """Returns the path of a column by physical names; `element`, `key` and `value` are kept."""
    steps = _steps(schema, path, StructType.field)
    return tuple(part.lower() if field is None else field.physical_name for part, field in steps)


def column_at(schema: StructType, path: Path) -> tuple[Path, DataType] | None:
    """Returns the path of a column, by physical names, and its type; None if the column does not exist."""
    fields = [field for _, field in _steps(schema, path, StructType.field) if field is not None]
    return (physical_path(schema, path), fields[-1].type) if len(fields) == len(path) else None


def _logical_path(schema: StructType, path: Path) -> Path:
    return tuple(part if field is None else field.name for part, field in _steps(schema, path, _by_physical_name))


def _by_physical_name(inside: StructType, name: str) -> StructField | None:
    return next((each for each in inside.fields if each.physical_name == name), None)


def _steps(
    schema: StructType, path: Path, find: Callable[[StructType, str], StructField | None]
) -> Iterator[tuple[str, StructField | None]]:
    """Yields for each part of a path the part, and the field that it names, if any."""
    inside: DataType = schema
    for part in path:
        field = find(inside, part) if isinstance(inside, StructType) else None
        inside = _inside(inside, part) if field is None else field.type
        yield part, field


def _inside(data_type: DataType, part: str) -> DataType:
    if isinstance(data_type, ArrayType):
        return data_type.element_type
    if isinstance(data_type, MapType):
        return data_type.key_type if part.lower() == "key" else data_type.value_type
    return data_type
