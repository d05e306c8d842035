"""Checks that a warehouse is undamaged, and that the commits recorded in a project's folder exist."""

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
    """Yields the errors of `silt_commits.jsonl`: unreadable lines, missing commits, and commits recorded twice.

    A commit that the file lacks is not an error: the process may have been killed before it recorded the commit.
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
    """Returns the number of skipped units of work, according to the project's folder."""
    return sum(each.skipped for each in CommitJournal(target).read().entries)


def damage(warehouse: Warehouse) -> Iterator[str]:
    """Yields the problems that `silt check` finds: differences of logs from checkpoints, and of files from logs."""
    for kept in warehouse.tables():
        log = kept.log
        problems = [*check_log(log.store, log.name), *check_files(log.store, log.snapshot(), lambda done: None)]
        yield from (f"{kept.name}: {problem.kind.value}: {problem.what}" for problem in problems)


def _units(log: DeltaLog) -> dict[int, list[str]]:
    """Returns the units of work of each commit of a table."""
    return {
        commit.version: [action.app_id for action in commit.actions if isinstance(action, SetTransaction)]
        for commit in log.commits()
    }


def _is_in(entry: JournalEntry, units: dict[int, list[str]]) -> bool:
    return entry.table_version is not None and entry.app_id in units.get(entry.table_version, [])
