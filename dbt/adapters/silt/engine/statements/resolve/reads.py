"""Records the reads of statements: the files of each table, and the basis of a later write of the same unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.catalog.names.file_lists import fingerprint
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.kernel.log.builds import DEFINITIONS_KEY, FILES_KEY
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet, merged_reads
from dbt.adapters.silt.engine.kernel.transaction.positions import Position
from dbt.adapters.silt.engine.statements.resolve.expansion import ExpandedQuery

Versions: TypeAlias = Mapping[str, tuple[int, ...]]
"""A table's name -> its sorted versions: several after time travel, or if the table has a new version meanwhile."""


@dataclass(frozen=True)
class Inputs:
    """Everything that determines the rows of queries, in addition to their SQL.

    Attributes:
        versions: versions of each table that they read.
        definitions: name of each view and function of the warehouse -> the fingerprint of its document.
        files: the sources of files outside of tables, by path.
        snapshots: each table at the newest of the versions.
    """

    versions: Versions = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, FileSource] = field(default_factory=dict)
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)

    def and_earlier(self, earlier: Inputs) -> Inputs:
        """Returns these inputs combined with the inputs of earlier queries of the same unit."""
        versions = {name: set(each) for name, each in earlier.versions.items()}
        for name, each in self.versions.items():
            versions.setdefault(name, set()).update(each)
        return Inputs(
            {name: tuple(sorted(each)) for name, each in versions.items()},
            {**earlier.definitions, **self.definitions},
            {**earlier.files, **self.files},
            {**earlier.snapshots, **self.snapshots},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables, views and functions, sorted."""
        return tuple(sorted({*self.versions, *self.definitions}))

    def commit_info(self) -> dict[str, Json]:
        """Returns the fields of `commitInfo` for inputs without versions: fingerprints of definitions and files."""
        files: dict[str, Json] = dict(self.fingerprints())
        known: dict[str, Json] = {DEFINITIONS_KEY: dict(self.definitions), FILES_KEY: files}
        return {name: value for name, value in known.items() if value}

    def fingerprints(self) -> dict[str, str | None]:
        """Returns the fingerprints of the lists of files, by path.

        The files are listed now, before Spark lists them: a file that arrives in between counts as changed later.
        """
        return {path: fingerprint(source.path, source.open_store) for path, source in self.files.items()}


@dataclass(frozen=True)
class Read:
    """The read of a table by a reference: files of a snapshot, under a predicate.

    Attributes:
        times: how often the text with the reference occurs in the statement; a view may be named several times.
    """

    log: DeltaLog
    snapshot: Snapshot
    files: pa.Table
    predicate: Expression
    is_latest: bool
    times: int = 1


@dataclass(frozen=True)
class Resolved:
    """Texts that Spark can run, in the given order, and all their reads.

    Attributes:
        functions: identifiers of session functions in the texts -> the names of the functions that they replace.
        inputs: inputs of the texts, and of earlier queries of the same unit.
        expanded: the texts, expanded but not pinned.
        positions: positions in the changes that the texts consume, to commit with the statement's change.
        cut: the newest snapshot of each table.
    """

    texts: tuple[str, ...]
    reads: tuple[Read, ...]
    target: Snapshot | None = None
    target_reads: ReadSet = field(default_factory=ReadSet)
    only_warehouse_tables: bool = False
    functions: Mapping[str, str] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=Inputs)
    expanded: tuple[ExpandedQuery, ...] = ()
    positions: tuple[Position, ...] = ()
    cut: Mapping[DeltaLog, Snapshot] = field(default_factory=dict)

    @property
    def bytes_read(self) -> int | None:
        """The bytes that the texts read, or None if they read anything but tables of the warehouse."""
        if not self.only_warehouse_tables or not self.reads:
            return None
        return sum((pc.sum(read.files["size"]).as_py() or 0) * read.times for read in self.reads)

    def shown(self, column: str) -> str:
        """Returns a column's name, with the warehouse functions' names in place of session functions' identifiers."""
        for label, name in self.functions.items():
            column = column.replace(f"{label}(", f"{name}(")
        return column


@dataclass
class ReadHistory:
    """The reads of each table by earlier statements of the same unit.

    A later write is based on the version that they saw first, so that another writer's commit in between is a conflict,
    which a retry of the write alone cannot resolve.
    """

    first: dict[DeltaLog, tuple[Snapshot, ReadSet]] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=Inputs)

    def note(self, reads: Sequence[Read], inputs: Inputs) -> None:
        """Adds a query's reads, and replaces the inputs by the query's, which include the inputs of earlier queries."""
        self.inputs = inputs
        for log in {read.log for read in reads if read.is_latest}:
            own = [read for read in reads if read.log is log and read.is_latest]
            snapshot, earlier = self.first.get(log, (own[0].snapshot, ReadSet()))
            self.first[log] = (snapshot, merged_reads(earlier, read_set(own)))

    def forget(self, log: DeltaLog) -> None:
        """Forgets the reads of a table that the unit itself has written."""
        self.first.pop(log, None)


def versions_of(reads: Iterable[Read]) -> Versions:
    """Returns the versions of each table that was read."""
    found: dict[str, set[int]] = {}
    for read in reads:
        found.setdefault(read.log.name, set()).add(read.snapshot.version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def snapshots_of(reads: Iterable[Read]) -> Mapping[str, Snapshot]:
    """Returns each table that was read, at the newest version."""
    by_version = sorted(reads, key=lambda read: read.snapshot.version)
    return {read.log.name: read.snapshot for read in by_version}


def read_set(reads: Sequence[Read]) -> ReadSet:
    """Returns the read set of the reads of a table, for a commit to it."""
    return ReadSet(
        predicates=tuple(read.predicate for read in reads),
        paths=frozenset(path for read in reads for path in read.files.column("path").to_pylist()),
        whole_table=any(read.predicate == TRUE for read in reads),
    )
