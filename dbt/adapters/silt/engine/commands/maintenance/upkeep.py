"""Runs upkeep: compacts the files of tables, the best first, then VACUUM and the care of logs, until the budget ends.

Each bin is a commit of its own, so that a killed upkeep loses the bin that it works on, and nothing else. Upkeep gives
way: if another writer has changed the files of a bin, the rest of the table waits for the next upkeep.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.maintenance import optimize, vacuum
from dbt.adapters.silt.engine.commands.maintenance.vacuum import Retention
from dbt.adapters.silt.engine.commands.target import Target, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.lengths_of_time import time_text
from dbt.adapters.silt.engine.kernel.maintenance.bins import Bin
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import Budget, Surveyed, TableState, Uses, ranked
from dbt.adapters.silt.engine.kernel.printable import number_of, size_text

_logger = logging.getLogger(__name__)

_BUDGET_ENDED: Final = "the budget ended"
_CHANGED: Final = "another writer changes it"


@dataclass
class Kept:
    """The result of the upkeep of a table.

    Attributes:
        state: the state of the table by its log, before.
        bins: the number of its bins that were written again.
        rewritten: the bytes of the files that were written again.
        written: the bytes of the files that replace them.
        deleted: the bytes of the files that VACUUM has deleted.
        waits: why there is still work to do; empty if there is none.
    """

    state: TableState
    bins: int = 0
    rewritten: int = 0
    written: int = 0
    deleted: int = 0
    waits: str = ""


@dataclass(frozen=True)
class UpkeepResult:
    """The result of an upkeep.

    Attributes:
        tables: the result for each table, in the order of their names.
        seconds: how long it took.
        budget: the seconds that it was given.
    """

    tables: Sequence[Kept]
    seconds: float
    budget: float

    def __str__(self) -> str:
        compacted = [each for each in self.tables if each.bins]
        waiting = sum(bool(each.waits) for each in self.tables)
        parts = [
            f"compacted {number_of(len(compacted), 'table')}",
            size_text(sum(each.rewritten for each in compacted)),
        ]
        deleted = sum(each.deleted for each in self.tables)
        parts += [f"deleted {size_text(deleted)}"] if deleted else []
        parts.append(f"{time_text(self.seconds)} of {time_text(self.budget)}")
        return ", ".join(parts) + (
            f"; {number_of(waiting, 'table')} wait{'s' if waiting == 1 else ''}" if waiting else ""
        )


def upkeep(
    spark: SparkSession, uses: Uses, surveyed: Iterable[Surveyed], seconds: float, settings: WriteSettings
) -> UpkeepResult:
    """Tends tables until the budget ends; an error in a table only makes that table wait.

    Args:
        uses: the uses of the tables' files in the warehouse.
        surveyed: the tables.
        seconds: the budget.
    """
    found = {each.state.table: each for each in surveyed}
    clock = next((each.log.clock for each in found.values()), None)
    work = _Upkeep(spark, uses, replace(settings, txn=None, positions=()), Budget(seconds), clock)
    work.tables = {name: Kept(each.state, waits=each.state.waits) for name, each in sorted(found.items())}
    work.compact(found)
    work.vacuum(found)
    work.tend(found)
    return UpkeepResult(list(work.tables.values()), work.now(), seconds)


@dataclass
class _Upkeep:
    spark: SparkSession
    uses: Uses
    settings: WriteSettings
    budget: Budget
    clock: Clock | None
    tables: dict[str, Kept] = field(default_factory=dict)
    _began_ms: int = 0

    def __post_init__(self) -> None:
        self._began_ms = 0 if self.clock is None else self.clock.now_ms()

    def now(self) -> float:
        """Returns the seconds since the beginning."""
        self.budget.spent = 0.0 if self.clock is None else (self.clock.now_ms() - self._began_ms) / 1000
        return self.budget.spent

    def compact(self, found: Mapping[str, Surveyed]) -> None:
        """Writes bins again, the best first. A bin that does not fit waits, and a smaller bin may still fit."""
        for table, bin_ in ranked(each.state for each in found.values()):
            kept = self.tables[table]
            if kept.waits in ("", _BUDGET_ENDED):
                began = self.now()
                if self.budget.fits(bin_.size):
                    kept.waits = self._compacted(found[table], kept, bin_) or kept.waits
                    self.budget.note(bin_.size, self.now() - began)
                else:
                    kept.waits = _BUDGET_ENDED

    def _compacted(self, surveyed: Surveyed, kept: Kept, bin_: Bin) -> str:
        """Writes a bin again; returns why the table must wait, if it must."""
        log = surveyed.log
        try:
            if self.uses.branches(log):
                return "a run or branch that is not published uses it"
            target = Target(log.name, log, log.snapshot())
            done = optimize.compact(self.spark, target, bin_, self.settings)
        except errors.ConcurrentModificationError:
            return _CHANGED
        except errors.SiltError as error:
            _logger.warning("%s: upkeep leaves it as it is: %s", log.name, error)
            return error.problem
        kept.bins += 1
        kept.rewritten += done.removed.total
        kept.written += done.added.total
        return ""

    def vacuum(self, found: Mapping[str, Surveyed]) -> None:
        """Deletes the files whose retention is over; the files of shallow clones in the warehouse are kept."""
        due = [each for each in found.values() if each.state.is_to_be_vacuumed]
        if not due or self.now() >= self.budget.seconds:
            return
        try:
            clones = self.uses.of_clones()
        except errors.SiltError as error:
            _logger.warning("upkeep deletes no files, because a table may be a clone that needs them: %s", error)
            return
        for each in due:
            kept = self.tables[each.state.table]
            if self.now() >= self.budget.seconds:
                kept.waits = kept.waits or _BUDGET_ENDED
            else:
                kept.waits = self._vacuumed(each, kept, clones) or kept.waits

    def _vacuumed(self, surveyed: Surveyed, kept: Kept, clones: Mapping[str, Collection[str]]) -> str:
        log, is_lite = surveyed.log, surveyed.state.deletable is not None
        try:
            retention = Retention(held={**clones, **self.uses.held(log)})
            done = vacuum.vacuum(log, retention, self.settings, lite=is_lite)
        except errors.SiltError as error:
            _logger.warning("%s: upkeep deletes no files: %s", log.name, error)
            return error.problem
        kept.deleted = done.garbage.size
        return ""

    def tend(self, found: Mapping[str, Surveyed]) -> None:
        """Writes checkpoints for logs whose last checkpoint is old, and cleans them up."""
        for each in found.values():
            if self.now() < self.budget.seconds and not each.state.waits:
                try:
                    each.log.tend()
                except errors.SiltError as error:
                    _logger.warning("%s: upkeep writes no checkpoint: %s", each.log.name, error)
