"""Reads the clustering columns of a table from the domain `delta.clustering`.

This engine does not cluster files: it adds files to the clustered files, with statistics of these columns. Source: the
Delta specification, section "Clustered Table".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType

CLUSTERING_DOMAIN: Final = "delta.clustering"

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


def physical_path(schema: StructType, path: Path) -> Path:
    """Returns the path of a column by physical names; `element`, `key` and `value` are kept."""
    names = []
    inside: DataType = schema
    for part in path:
        field = inside.field(part) if isinstance(inside, StructType) else None
        if field is not None:
            names.append(field.physical_name)
            inside = field.type
            continue
        names.append(part.lower())
        if isinstance(inside, ArrayType):
            inside = inside.element_type
        elif isinstance(inside, MapType):
            inside = inside.key_type if part.lower() == "key" else inside.value_type
    return tuple(names)
