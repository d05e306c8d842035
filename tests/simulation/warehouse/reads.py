"""The reads of simulated processes: of the newest versions, of several tables at once, and of old versions."""

from __future__ import annotations

from collections.abc import Callable

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError, SiltError, VersionNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import consistent_cut
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from tests.simulation.rows_table import RowsTable
from tests.simulation.warehouse import rare_states
from tests.simulation.warehouse.oracle import Look, Seen, Violation
from tests.simulation.warehouse.outcomes import ACCOUNTS, LEDGER, NAMES, Outcomes
from tests.simulation.warehouse.process import Process
from tests.simulation.warehouse.world import CLOCK_STEPS_MS, DATABASE, SHORT_LOG_RETENTION_MS, World

_LOG_RETENTION_MS = 30 * 24 * 60 * 60 * 1000


class Reads(Outcomes):
    """The reads, each of which is recorded.

    Args:
        keeps_log_shortly: whether the tables keep their logs for `SHORT_LOG_RETENTION_MS`, not for the default time.
    """

    def __init__(self, world: World, keeps_log_shortly: bool) -> None:
        super().__init__(world)
        self.keeps_log_shortly = keeps_log_shortly

    def read(self, process: Process) -> None:
        """Reads the newest version of one table."""
        self._look(process, (process.random.choice(NAMES),), _cut)

    def read_together(self, process: Process) -> None:
        """Reads a consistent cut of several tables."""
        self._look(process, process.random.choice(((ACCOUNTS, LEDGER), NAMES)), _cut)

    def read_old(self, process: Process) -> None:
        """Reads an earlier version of a table."""

        name = process.random.choice((ACCOUNTS, LEDGER))
        landings = [each for each in self.world.landings if not each.is_stray]
        versions = sum(landing.table == f"{name.schema}/{name.identifier}" for landing in landings)
        version = process.random.randrange(versions)
        self._look(process, (name,), lambda logs: [logs[0].snapshot_at(version)], version)

    def _look(
        self,
        process: Process,
        names: tuple[RelationName, ...],
        pin: Callable[[list[DeltaLog]], list[Snapshot]],
        version: int | None = None,
    ) -> None:
        began, strikes = self.world.step, process.strikes
        try:
            logs = [process.catalog.table(name) for name in names]
            snapshots = pin(logs)
            ended, undisturbed = self.world.step, process.strikes == strikes
            seen = tuple(_seen(log, snapshot) for log, snapshot in zip(logs, snapshots, strict=True))
        except (SiltError, ObjectMissing) as error:
            is_old = version is not None and self._is_old(names[0], version)
            if not (is_old and isinstance(error, VersionNotFoundError | DataFileMissingError | ObjectMissing)):
                self.judge(process, names, error, strikes)
            self.world.states[rare_states.OLD_VERSION_GONE] += is_old
            return
        self.looks.append(Look(seen, began, ended, version is None and undisturbed))
        self.counts["read"] += 1

    def _is_old(self, name: RelationName, version: int) -> bool:
        """Returns whether the version was replaced so long ago that clean-ups may have removed it."""
        retention = SHORT_LOG_RETENTION_MS if self.keeps_log_shortly else _LOG_RETENTION_MS
        oldest = self.world.now_ms - retention + max(CLOCK_STEPS_MS)
        return any(
            landing.table == f"{name.schema}/{name.identifier}"
            and landing.version == version + 1
            and landing.at_ms < oldest
            and not landing.is_stray
            for landing in self.world.landings
        )

    def look_back(self) -> None:
        """Reads the final version of each table.

        Raises:
            Violation: if it cannot be read.
        """
        catalog = Catalog({DATABASE: self.world.storage})
        for name in NAMES:
            if catalog.find(name) is None:
                continue
            log = catalog.table(name)
            try:
                seen = _seen(log, log.snapshot())
            except (SiltError, ObjectMissing) as error:
                raise Violation(f"{name} cannot be read in the end: {error!r}") from error
            self.looks.append(Look((seen,), self.world.step, self.world.step))


def _cut(logs: list[DeltaLog]) -> list[Snapshot]:
    return list(consistent_cut.consistent_cut(logs).values())


def _seen(log: DeltaLog, snapshot: Snapshot) -> Seen:
    rows = RowsTable(log).rows(snapshot)
    return Seen(snapshot.metadata.id, snapshot.version, rows, frozenset(snapshot.transactions))
