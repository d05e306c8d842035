"""Renders a version of a table as a view of DuckDB on its data files."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import pyarrow as pa

from dbt.adapters.silt.duckdb_file.types import literal, partition_literal, quoted, type_of, value_of
from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, FileGuard
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan, ScanColumn
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.paths import absolute_name

OWN_SCHEMA: Final = "_silt"
"""The schema of DuckDB with the tables that describe the views."""
DELETED: Final = f"{OWN_SCHEMA}.deleted_rows"
"""The table with the positions of the rows that deletion vectors delete: `file`, `position`."""
_FILE, _POSITION = "_silt_file", "file_row_number"
_GLOB: Final = re.compile(r"[*?\[]")


class _Group(NamedTuple):
    """Data files that a query reads.

    Attributes:
        values: the partition values, as in the log.
        in_utc: the columns whose times are converted by the zone UTC.
    """

    values: tuple[str | None, ...]
    has_deleted: bool
    in_utc: tuple[str, ...]

    @property
    def columns(self) -> str:
        replaced = ", ".join(f"timezone('UTC', {quoted(name)}) AS {quoted(name)}" for name in self.in_utc)
        return f"* REPLACE ({replaced})" if replaced else "*"


@dataclass(frozen=True)
class TableView:
    """A version of a table as a view of DuckDB.

    Attributes:
        log: the table.
        snapshot: the version.
    """

    log: DeltaLog
    snapshot: Snapshot

    def check(self) -> None:
        """Checks that DuckDB would read the files of the log, and find their columns by names.

        Raises:
            DataFileChangedError, ExternalPathError: if a data file is not the file of the log.
            UnsupportedFeatureError: if the table is in an object store, or finds its columns by ids.
        """
        store, snapshot = self.log.store, self.snapshot
        if not store.is_local:
            raise UnsupportedFeatureError("it is in an object store", remedy=_BY_EXTENSION, table=snapshot.table)
        if snapshot.properties.column_mapping_mode == "id":
            raise UnsupportedFeatureError("its columns are found by ids", remedy=_BY_EXTENSION, table=snapshot.table)
        FileGuard().check(store, snapshot.files, Content(snapshot.metadata), snapshot.table, snapshot.version)

    @property
    def paths(self) -> str:
        """The data files as a list of DuckDB, without its brackets; empty if the table has no files."""
        return self._listed(self._files)

    def sql(self, name: str, without_zone: Mapping[str, Collection[str]]) -> str:
        """Returns the statement that creates the view.

        Args:
            name: the view's quoted name.
            without_zone: the columns of each file whose times have a zone in the table and none in the file, as those
                of the form INT96, or the reverse; DuckDB would convert them by the zone of its session.

        Raises:
            UnsupportedFeatureError: if DuckDB does not have the type of a column.
            CorruptLogError: if a partition value is not a value of its column's type.
        """
        columns = ", ".join(
            f"{value_of(each.field, each.stored)} AS {quoted(each.field.name)}" for each in self._columns
        )
        parts = "\nUNION ALL BY NAME ".join((self._without_rows(), *self._reads(without_zone)))
        return f"CREATE VIEW {name} AS SELECT {columns} FROM (\n{parts}\n)"

    def deleted_rows(self) -> Iterator[pa.Table]:
        """Yields the deleted rows of each file: `file`, and `position`, from 0.

        Raises:
            CorruptDeletionVectorError, DataFileMissingError: if a deletion vector cannot be read.
        """
        found = deletion_vectors.read_all(self.log.store, self.snapshot.files, self.snapshot.table)
        for path, bitmap in found.items():
            positions = pa.Array.from_buffers(pa.uint64(), len(bitmap), [None, pa.py_buffer(bitmap.to_array())])
            yield pa.table({"file": pa.repeat(self._absolute(path), len(positions)), "position": positions})

    @functools.cached_property
    def _columns(self) -> tuple[ScanColumn, ...]:
        """The columns, each with its name in the queries on data files; a partition value gets a name of its own,
        because some writers store it in the files too.
        """
        found = ArrowScan.of(self.snapshot).read_columns
        return tuple(
            replace(each, stored=replace(each.field, name=f"_silt_partition_{at}")) if each.is_partition else each
            for at, each in enumerate(found)
        )

    def _without_rows(self) -> str:
        """Returns a query without rows that has every column, because files may lack columns that were added later."""
        columns = (f"CAST(NULL AS {type_of(each.stored.type)}) AS {quoted(each.stored.name)}" for each in self._columns)
        return f"SELECT {', '.join(columns)} WHERE false"

    def _reads(self, without_zone: Mapping[str, Collection[str]]) -> Iterator[str]:
        """Yields a query for the files of each partition, apart for files with deleted rows or other times."""
        groups: dict[_Group, list[AddFile]] = defaultdict(list)
        partitioning = [each for each in self._columns if each.is_partition]
        for file in self._files:
            values = tuple(file.partition_values.get(each.field.physical_name) for each in partitioning)
            in_utc = tuple(sorted(without_zone.get(self._absolute(file.path), ())))
            groups[_Group(values, file.deletion_vector is not None, in_utc)].append(file)
        for group, files in groups.items():
            pairs = zip(partitioning, group.values, strict=True)
            constants = [f"{partition_literal(text, each.field)} AS {quoted(each.stored.name)}" for each, text in pairs]
            yield f"SELECT {', '.join((group.columns, *constants))} FROM {self._source(files, group.has_deleted)}"

    def _source(self, files: Sequence[AddFile], has_deleted: bool) -> str:
        arguments = f"[{self._listed(files)}], union_by_name=true, hive_partitioning=false"
        if not has_deleted:
            return f"read_parquet({arguments})"
        rows = f"read_parquet({arguments}, filename={literal(_FILE)}, file_row_number=true)"
        return f"{rows} AS r ANTI JOIN {DELETED} AS d ON d.file = r.{_FILE} AND d.position = r.{_POSITION}"

    @functools.cached_property
    def _files(self) -> Sequence[AddFile]:
        return self.snapshot.add_files()

    def _listed(self, files: Sequence[AddFile]) -> str:
        """Returns the paths as literals; DuckDB takes each path for a pattern, so special characters are quoted."""
        return ", ".join(literal(_GLOB.sub(r"[\g<0>]", self._absolute(file.path))) for file in files)

    def _absolute(self, path: str) -> str:
        return absolute_name(self.log.store.root, path)


_BY_EXTENSION: Final = "Read it with DuckDB's own extension: `delta_scan('PATH')`"
