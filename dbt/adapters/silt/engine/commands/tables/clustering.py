"""Runs ALTER TABLE ... CLUSTER BY, and checks the columns that a table is clustered by; touches no data file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbt.adapters.silt.engine.commands.tables.metadata_commit import MetadataChange, commit_metadata
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel.files.statistics import indexed_columns
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.clustering import (
    FEATURE,
    Path,
    checked_columns,
    clustered_by,
    clustering_columns,
    clustering_domain,
    spelled,
)
from dbt.adapters.silt.engine.kernel.table.properties import FEATURE_PREFIX, TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Operation

OPERATION = "CLUSTER BY"


def checked(columns: Sequence[Path], metadata: Metadata, table: str) -> tuple[Path, ...]:
    """Returns the paths, by physical names, of columns that a statement names in CLUSTER BY.

    Raises:
        InvalidStatementError, ColumnNotFoundError, UnsupportedStatementError: as `clustering.checked_columns`.
    """
    schema, by = StructType.from_json(metadata.schema_string), metadata.partition_columns
    indexed = {each.path for each in indexed_columns(schema, TableProperties(metadata.configuration), by)}
    return checked_columns(columns, schema, indexed, by, table)


def cluster_by(target: Target, columns: Sequence[Path], settings: WriteSettings) -> Outcome:
    """Changes the columns that the table is clustered by; OPTIMIZE clusters the files written from now on.

    Args:
        columns: the columns by the names that users know; none for CLUSTER BY NONE.

    Raises:
        InvalidStatementError, ColumnNotFoundError, UnsupportedStatementError: as `checked`.
        ConcurrentModificationError: if another writer changed the table's metadata or clustering.
    """
    target.check_writable()
    snapshot = target.snapshot
    by, present = checked(columns, snapshot.metadata, target.name), clustering_columns(snapshot.domains)
    operation = Operation(
        OPERATION,
        {
            "oldClusteringColumns": ",".join(clustered_by(snapshot.schema, snapshot.domains)),
            "newClusteringColumns": ",".join(spelled(snapshot.schema, by)),
        },
    )
    change = MetadataChange(operation, snapshot.metadata)
    if by != present:
        features = {f"{FEATURE_PREFIX}{FEATURE}": "supported"} if by else {}
        change = replace(change, features=features, domains=(clustering_domain(by),))
    return commit_metadata(target, change, settings)
