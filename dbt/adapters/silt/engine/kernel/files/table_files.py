"""Defines TableFiles, a table's active files; statistics of a large checkpoint's files are not read until needed."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.files.kept_statistics import Found, KeptStatistics
from dbt.adapters.silt.engine.kernel.files.stats_json import Statistic
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.active_files import FILES
from dbt.adapters.silt.engine.kernel.table.value_order import ValueOrder

STATS: Final = "stats"
ROW: Final = "row"
WITHOUT_STATISTICS: Final = pa.schema([each for each in FILES if each.name != STATS])
EARLY: Final = WITHOUT_STATISTICS.append(pa.field(ROW, pa.int32()))
"""The schema of files with separate statistics; `row` is the number of their row in these statistics."""


@dataclass(frozen=True, eq=False)
class TableFiles:
    """The active files of a table at a version.

    Args:
        late: files with their statistics, schema `active_files.FILES`.
        early: other files, schema `EARLY`.
        statistics: the statistics of the early files.
    """

    late: pa.Table
    early: pa.Table = field(default_factory=EARLY.empty_table)
    statistics: KeptStatistics | None = None

    @property
    def num_rows(self) -> int:
        return int(self.early.num_rows + self.late.num_rows)

    @functools.cached_property
    def table(self) -> pa.Table:
        """All files with their statistics, schema `active_files.FILES`.

        Raises:
            CorruptCheckpointError: if the statistics cannot be read.
        """
        return self.whole()

    def whole(self) -> pa.Table:
        """Returns the same as `table`, without caching it."""
        return self.late if self.early.num_rows == 0 else self.chosen(None, None)

    def without_statistics(self) -> pa.Table:
        """Returns all files, schema `WITHOUT_STATISTICS`, in the order of `table`."""
        if self.early.num_rows == 0:
            return self.late.select(WITHOUT_STATISTICS.names)
        return pa.concat_tables([part.select(WITHOUT_STATISTICS.names) for part in (self.early, self.late)])

    def chosen(self, early: pa.Array | None, late: pa.Array | None) -> pa.Table:
        """Returns selected files with their statistics, schema `active_files.FILES`. Raises as `table`.

        Args:
            early: the selection of early files, as Booleans; None for all.
            late: the selection of late files, likewise.
        """
        of_early = self.early if early is None else self.early.filter(early)
        of_late = self.late if late is None else self.late.filter(late)
        return pa.concat_tables([*self._with_texts(of_early), of_late])

    def with_keys(self, keys: Collection[str]) -> pa.Table:
        """Returns the files with these `active_files.file_key`s, schema `active_files.FILES`. Raises as `table`."""
        requested = pa.array(sorted(keys), pa.string())
        early, late = (pc.is_in(active_files.keys_of(part), value_set=requested) for part in (self.early, self.late))
        return self.chosen(early, late)

    def changed(self, gone: Collection[str], added: pa.Table) -> TableFiles:
        """Removes the files with these `active_files.file_key`s, and adds files of schema `active_files.FILES`."""
        late = active_files.appended(active_files.without(self.late, gone), added)
        return replace(self, early=active_files.without(self.early, gone), late=late)

    def early_statistics(self, requested: Mapping[Statistic, ValueOrder | None]) -> Found:
        """Reads the statistics of the early files in the form of `stats_json.read`. Raises as `table`."""
        if self.statistics is None:
            return stats_json.read(pa.array([], pa.string()), requested)
        rows = self.early[ROW].combine_chunks()
        return {
            name: values if len(values) == len(rows) else values.take(rows)
            for name, values in self.statistics.read(requested).items()
        }

    def _with_texts(self, files: pa.Table) -> Iterator[pa.Table]:
        """Yields tables of the given early files with their statistics, in the same order."""
        if self.statistics is None or files.num_rows == 0:
            return
        start, done, numbers = 0, 0, files[ROW].combine_chunks()
        for texts in self.statistics.texts():
            end = start + len(texts)
            chosen = numbers.slice(done, pc.sum(pc.less(numbers.slice(done, len(texts)), end)).as_py() or 0)
            if len(chosen):
                rows = files.slice(done, len(chosen)).select(WITHOUT_STATISTICS.names)
                own = texts if len(chosen) == len(texts) else texts.take(pc.subtract(chosen, start))
                yield rows.add_column(FILES.get_field_index(STATS), FILES.field(STATS), pa.chunked_array([own]))
            start, done = end, done + len(chosen)
            if done == len(numbers):
                return
