"""Keeps what statements read: which files of which tables, and what a later write of the same unit is based on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.catalog.file_lists import fingerprint
from dbt.adapters.silt.engine.commands.commit import merged
from dbt.adapters.silt.engine.commands.spark.file_source import FileSource
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet

Versions: TypeAlias = Mapping[str, tuple[int, ...]]
"""A table's name -> its versions, in order: several where one reference travels in time, or the table moved on."""


@dataclass(frozen=True)
class Inputs:
    """The inputs that decide about the rows of queries, besides their texts.

    Attributes:
        versions: of each table that they read.
        definitions: of each view and function of the warehouse, by its name: the fingerprint of its document.
        files: the paths of files that belong to no table, each with its source.
    """

    versions: Versions = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, FileSource] = field(default_factory=dict)

    def and_earlier(self, earlier: Inputs) -> Inputs:
        """Returns them with those of earlier queries of the same unit."""
        versions = {name: set(each) for name, each in earlier.versions.items()}
        for name, each in self.versions.items():
            versions.setdefault(name, set()).update(each)
        return Inputs(
            {name: tuple(sorted(each)) for name, each in versions.items()},
            {**earlier.definitions, **self.definitions},
            {**earlier.files, **self.files},
        )

    def commit_info(self) -> dict[str, Json]:
        """Returns the fields of `commitInfo` for what has no version: fingerprints, by name and by path.

        The files are listed now, before Spark lists them: a file that arrives in between counts as changed later.
        """
        files: dict[str, Json] = {
            path: fingerprint(source.path, source.open_store) for path, source in self.files.items()
        }
        known: dict[str, Json] = {"readDefinitions": dict(self.definitions), "readFiles": files}
        return {name: value for name, value in known.items() if value}


@dataclass(frozen=True)
class Read:
    """One table as one reference reads it: which files of which snapshot, under which predicate.

    Attributes:
        times: how often the statement holds the text that has the reference; a view may be named several times.
    """

    log: DeltaLog
    snapshot: Snapshot
    files: pa.Table
    predicate: Expression
    is_latest: bool
    times: int = 1


@dataclass(frozen=True)
class Resolved:
    """Texts that Spark can run, in the order given, and all that they read.

    Attributes:
        functions: identifiers of session functions in the texts -> the names of the functions that they replace.
        inputs: of the texts, and of earlier queries of the same unit.
    """

    texts: tuple[str, ...]
    reads: tuple[Read, ...]
    target: Snapshot | None = None
    target_reads: ReadSet = field(default_factory=ReadSet)
    only_warehouse_tables: bool = False
    functions: Mapping[str, str] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=Inputs)

    @property
    def bytes_read(self) -> int | None:
        """How much data the texts read; None where they read anything but tables of the warehouse."""
        if not self.only_warehouse_tables or not self.reads:
            return None
        return sum((pc.sum(read.files["size"]).as_py() or 0) * read.times for read in self.reads)

    def shown(self, column: str) -> str:
        """A column's name, with the own name of a function of the warehouse whose call gave it."""
        for label, name in self.functions.items():
            column = column.replace(f"{label}(", f"{name}(")
        return column


@dataclass
class ReadHistory:
    """What earlier statements of one unit have read of each table.

    A write that comes after them is based on the version that they saw first, so that a commit of somebody else in
    between is a conflict, and not one that a second run of the write alone could resolve.
    """

    first: dict[DeltaLog, tuple[Snapshot, ReadSet]] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=Inputs)

    def note(self, reads: Sequence[Read], inputs: Inputs) -> None:
        """Keeps what a query read, and its inputs with those of the queries before it."""
        self.inputs = inputs
        for log in {read.log for read in reads if read.is_latest}:
            own = [read for read in reads if read.log is log and read.is_latest]
            snapshot, earlier = self.first.get(log, (own[0].snapshot, ReadSet()))
            self.first[log] = (snapshot, merged(earlier, read_set(own)))

    def forget(self, log: DeltaLog) -> None:
        """Begins again with a table that the unit itself has written."""
        self.first.pop(log, None)


def versions_of(reads: Iterable[Read]) -> Versions:
    """The versions of each table that was read."""
    found: dict[str, set[int]] = {}
    for read in reads:
        found.setdefault(read.log.name, set()).add(read.snapshot.version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def read_set(reads: Sequence[Read]) -> ReadSet:
    """What reading one table means for a commit to it."""
    return ReadSet(
        predicates=tuple(read.predicate for read in reads),
        paths=frozenset(path for read in reads for path in read.files.column("path").to_pylist()),
        whole_table=any(read.predicate == TRUE for read in reads),
    )
