"""Reads changed rows as Arrow: the table's columns with the type, version and time of each change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import BitMap64

from dbt.adapters.silt.engine.arrow.file_read import read_file
from dbt.adapters.silt.engine.arrow.scan import ArrowScan
from dbt.adapters.silt.engine.arrow.types import INSTANT
from dbt.adapters.silt.engine.kernel.errors import CorruptLogError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, stats_json
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.change_feed import FEED_COLUMNS
from dbt.adapters.silt.engine.kernel.scan.changed_files import ChangedFile
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.table.schema import CHANGE_TYPE


@dataclass(frozen=True)
class FeedScan:
    """A read of changes in the columns of a version; it can be pickled."""

    of_table: ArrowScan
    of_change_files: ArrowScan

    @classmethod
    def of(cls, end: Snapshot, names: Sequence[str]) -> FeedScan:
        """Returns the read of some columns.

        Raises:
            As in `ArrowScan.of`.
        """
        of_table = replace(ArrowScan.of(end, names), files=())
        schema = end.schema.add(FEED_COLUMNS.require(CHANGE_TYPE))
        metadata = replace(end.metadata, schema_string=schema.to_json())
        names = (*of_table.names, CHANGE_TYPE)
        return cls(of_table, ArrowScan(end.table, end.version, metadata, names, TRUE, ()))

    def batches(self, changed: ChangedFile, store: Store) -> Iterator[pa.RecordBatch]:
        """Yields the changes in a file; raises the errors of `file_read.read_file`."""
        scan = self.of_change_files if changed.change_type is None else self.of_table
        file = changed.file if changed.rows is None else _with_rows(changed.file, changed.rows, scan)
        for batch in read_file(scan, file, store):
            yield self._with_facts(batch, changed)

    def _with_facts(self, batch: pa.RecordBatch, changed: ChangedFile) -> pa.RecordBatch:
        given = batch.columns if changed.change_type is None else [*batch.columns, changed.change_type]
        facts = [*given[len(self.of_table.names) :], changed.version, changed.timestamp_ms * 1000]
        types = (pa.string(), pa.int64(), INSTANT)
        arrays = [
            fact if isinstance(fact, pa.Array) else pa.repeat(pa.scalar(fact, kind), batch.num_rows)
            for fact, kind in zip(facts, types, strict=True)
        ]
        names = [*self.of_table.names, *FEED_COLUMNS.names]
        return pa.RecordBatch.from_arrays([*batch.columns[: len(self.of_table.names)], *arrays], names=names)


def _with_rows(file: AddFile, rows: BitMap64, scan: ArrowScan) -> AddFile:
    """Returns the file with all rows deleted except these."""
    count = stats_json.record_count(file.stats)
    if count is None or count > deletion_vectors.MOST_ROWS:
        raise CorruptLogError(
            f"{file.path} has a deletion vector, but its number of rows is missing or too large",
            table=scan.table,
            version=scan.version,
        )
    return replace(file, deletion_vector=deletion_vectors.inline(BitMap64(range(count)) - rows))
