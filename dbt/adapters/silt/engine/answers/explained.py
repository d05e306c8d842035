"""Explains a query without Spark: the files of each table that it reads, and why it skips the other files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from dbt.adapters.silt.engine.answers.quick import Prepared, Quick, Source
from dbt.adapters.silt.engine.answers.sessions import Names
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.files.stats_json import num_records
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.skipping import Skipped, skipped
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.sql.ast import Query
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.conditions.pruning import pruning_predicates
from dbt.adapters.silt.engine.sql.query.references import scanned
from dbt.adapters.silt.engine.sql.query.scans import Reference


@dataclass(frozen=True)
class TableRead:
    """A query's reference to a table.

    Attributes:
        by_limit: the files not opened because other files have enough rows; 0 if unknown beforehand.
        by_log: whether the log answers, and no file is opened.
    """

    table: str
    snapshot: Snapshot
    skipped: Skipped
    by_limit: int = 0
    by_log: bool = False

    @property
    def files_read(self) -> int:
        return 0 if self.by_log else self.skipped.read.num_rows - self.by_limit


@dataclass(frozen=True)
class Explained:
    """A description of how a query is answered.

    Attributes:
        source: the source of the rows.
        reads: each table that the query, or a view in it, names.
        unknown: names that only Spark can look up.
    """

    source: Source
    reads: tuple[TableRead, ...]
    unknown: tuple[str, ...] = ()


def explained(quick: Quick, query: Query) -> Explained:
    """Describes how the query is answered; reads only logs, and the footers that the log's answers need.

    Raises:
        SiltError: as for the query.
    """
    prepared = quick.prepared(query)
    source = None if prepared is None else prepared.source()
    if prepared is not None and source is not None:
        return Explained(source, (_of_prepared(prepared, source),))
    found = list(_reads(query.text, quick.names, quick.time_zone, ()))
    reads = tuple(each for each in found if isinstance(each, TableRead))
    return Explained(Source.SPARK, reads, tuple(each for each in found if isinstance(each, str)))


def _of_prepared(prepared: Prepared, source: Source) -> TableRead:
    predicate = prepared.predicate if prepared.calls is None else prepared.calls.question.predicate
    found = skipped(prepared.snapshot, predicate or TRUE)
    by_limit = _files_after_limit(found, prepared.limit) if predicate == TRUE and prepared.limit is not None else 0
    return TableRead(prepared.log.name, prepared.snapshot, found, by_limit, source is Source.LOG)


def _files_after_limit(found: Skipped, limit: int) -> int:
    """Counts the files after the first files that have enough rows."""
    counts = num_records(found.read).to_pylist() if found.read.num_rows else []
    if None in counts or found.read["deletion_vector"].null_count < len(counts):
        return 0
    before = [0, *accumulate(counts)][: len(counts)]
    return sum(rows >= limit for rows in before)


def _reads(text: str, names: Names, time_zone: str, inside: tuple[str, ...]) -> Iterator[TableRead | str]:
    """Yields the tables of a query and of its views, each with the files that the query's own conditions leave."""
    query = scanned(text)
    found = {reference: _relation(reference, names) for reference in query.scan.references}
    snapshots = {reference: _snapshot(reference, log) for reference, log in found.items() if isinstance(log, DeltaLog)}
    relations = {
        reference: Relation(snapshot.schema, tuple(_name(found[reference]).split(".")))
        for reference, snapshot in snapshots.items()
        if snapshot is not None
    }
    predicates = pruning_predicates(query, relations, time_zone)
    for reference, relation in found.items():
        snapshot = snapshots.get(reference)
        if isinstance(relation, View) and str(relation.name) not in inside:
            yield from _reads(relation.text, names.within(relation), time_zone, (*inside, str(relation.name)))
        elif isinstance(relation, DeltaLog) and snapshot is not None:
            yield TableRead(relation.name, snapshot, skipped(snapshot, predicates.get(reference, TRUE)))
        else:
            yield ".".join(reference.parts) or text[reference.start : reference.end]


def _relation(reference: Reference, names: Names) -> DeltaLog | View | None:
    if reference.is_path or reference.files is not None or reference.reads_changes:
        return None
    return names.find(reference.parts)


def _name(relation: DeltaLog | View | None) -> str:
    return relation.name if isinstance(relation, DeltaLog) else ""


def _snapshot(reference: Reference, log: DeltaLog) -> Snapshot | None:
    """Returns the version that is read, or None if Spark has to compute it."""
    if reference.timestamp is not None or not (reference.version or "0").isdecimal():
        return None
    return log.snapshot() if reference.version is None else log.snapshot_at(int(reference.version))
