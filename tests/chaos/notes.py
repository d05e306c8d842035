"""Whether a warehouse is whole, and whether what a project's folder says of its commits is so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from tests.chaos.warehouses import Warehouse


def wrong_notes(target: Path, warehouse: Warehouse) -> Iterator[str]:
    """What `silt_commits.jsonl` says that is not so: a line that cannot be read, a commit that is not there, one twice.

    A commit that it lacks is no fault: the process may have been killed before it noted it.
    """
    journal = CommitJournal(target).read()
    yield from (f"silt_commits.jsonl: line {number} cannot be read" for number in journal.damaged)
    noted = [each for each in journal.entries if not each.skipped and each.table_version is not None]
    for (table, version), times in Counter((each.table, each.table_version) for each in noted).items():
        if times > 1:
            yield f"silt_commits.jsonl has {table}@v{version} {times} times"
    units = {each.name: _units(each.log) for each in warehouse.tables()}
    for each in noted:
        name = each.table.partition(".")[2]  # without the database
        if each.app_id is not None and not _is_in(each, units.get(name, {})):
            yield f"silt_commits.jsonl has {each.app_id} as {each.table}@v{each.table_version}, which is not it"


def skips(target: Path) -> int:
    """How often a unit of work was found done, as the project's folder says."""
    return sum(each.skipped for each in CommitJournal(target).read().entries)


def damage(warehouse: Warehouse) -> Iterator[str]:
    """What `silt check` finds wrong: a log against its checkpoints, the files against what the log says of them."""
    for kept in warehouse.tables():
        log = kept.log
        problems = [*check_log(log.store, log.name), *check_files(log.store, log.snapshot(), lambda done: None)]
        yield from (f"{kept.name}: {problem.kind.value}: {problem.what}" for problem in problems)


def _units(log: DeltaLog) -> dict[int, list[str]]:
    """The units of work of each commit of a table."""
    return {
        commit.version: [action.app_id for action in commit.actions if isinstance(action, SetTransaction)]
        for commit in log.commits()
    }


def _is_in(entry: JournalEntry, units: dict[int, list[str]]) -> bool:
    return entry.table_version is not None and entry.app_id in units.get(entry.table_version, [])
