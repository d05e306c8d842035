"""Commits a change of a table's metadata, with rewritten rows if it needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.commit import commit, note_reads
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.rows import file_rows
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.commands.writing.checks import Check
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata, Metadata
from dbt.adapters.silt.engine.kernel.table.features import check_writable, needed_features, upgraded
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet

_ROWS = "rows"


@dataclass(frozen=True)
class MetadataChange:
    """A table's new metadata, with the changes that belong to it.

    Args:
        reads: the parts of the table that the change depends on; the whole table if it adds a rule for all rows.
        written: all rows of the table in the new schema; None if the data files are kept.
        features: properties that enable a feature by name, and are not stored.
        domains: domains of metadata to set.
    """

    operation: Operation
    metadata: Metadata
    reads: ReadSet = field(default_factory=ReadSet)
    written: Written | None = None
    features: Mapping[str, str] = field(default_factory=dict)
    domains: tuple[DomainMetadata, ...] = ()


def commit_metadata(target: Target, change: MetadataChange, settings: WriteSettings) -> Outcome:
    """Commits the metadata and the protocol that it needs; a change without effect is committed only for its `txn`.

    Raises:
        UnsupportedFeatureError: if the new metadata needs a feature that this engine does not write.
        ConcurrentModificationError: if another writer's commit conflicts.
    """
    snapshot, operation, metadata, written = target.snapshot, change.operation, change.metadata, change.written
    schema = StructType.from_json(metadata.schema_string)
    asked = {**metadata.configuration, **change.features}
    protocol = upgraded(snapshot.protocol, needed_features(schema, asked))
    check_writable(protocol, target.name, metadata)
    is_same = metadata == snapshot.metadata
    unchanged = is_same and protocol == snapshot.protocol and written is None and not change.domains
    if unchanged and not settings.must_commit:
        note_reads(target.log, change.reads, settings)
        return Outcome(operation.name, target.name, snapshot.version, attempts=0)
    now = target.log.clock.now_ms()
    changes = Changes(
        operation,
        adds=() if written is None else written.adds,
        removes=() if written is None else tuple(add.remove(now) for add in snapshot.add_files()),
        metadata=None if change.domains and is_same else metadata,
        protocol=None if protocol == snapshot.protocol else protocol,
        domains=change.domains,
    )
    kept = () if written is None else (written,)
    committed = commit(target.log, snapshot, changes, change.reads, settings, kept)
    return Outcome(
        operation.name,
        target.name,
        committed.version,
        files_added=len(changes.adds),
        files_removed=len(changes.removes),
        attempts=committed.attempts,
    )


def check_rows(spark: SparkSession, target: Target, candidates: pa.Table, checks: Sequence[Check]) -> None:
    """Checks that no row of these files breaks a rule; runs a single Spark job for all files, if any.

    Raises:
        DataRejectedError: if rows break a rule.
        DataFileChangedError: if a file differs from the file that the log names.
    """
    if candidates.num_rows == 0 or not checks:
        return
    frame = scan.read(spark, target.log, target.snapshot, candidates)
    aggregates = []
    for position, check in enumerate(checks):
        aggregates.append(F.count_if(check.violation).alias(f"violations {position}"))
        aggregates.append(F.max(F.when(check.violation, check.example)).alias(f"example {position}"))
    with errors.mapped(target.name, target.snapshot.version):
        found = frame.agg(F.count(F.lit(1)).alias(_ROWS), *aggregates).collect()[0]
    expected = file_rows.row_count(target, candidates)
    if found[_ROWS] != expected:
        raise file_rows.miscounted(
            target, candidates, f"{found[_ROWS]} rows were checked of files that hold {expected}"
        )
    for position, check in enumerate(checks):
        if found[f"violations {position}"]:
            raise check.error(found[f"violations {position}"], found[f"example {position}"])
