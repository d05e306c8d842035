"""Whether a warehouse is whole, and whether what a project's folder says of its commits is so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry


def wrong_notes(target: Path, warehouse: Path) -> Iterator[str]:
    """What `silt_commits.jsonl` says that is not so: a line that cannot be read, a commit that is not there, one twice.

    A commit that it lacks is no fault: the process may have been killed before it noted it.
    """
    journal = CommitJournal(target).read()
    yield from (f"silt_commits.jsonl: line {number} cannot be read" for number in journal.damaged)
    noted = [each for each in journal.entries if not each.skipped and each.table_version is not None]
    for (table, version), times in Counter((each.table, each.table_version) for each in noted).items():
        if times > 1:
            yield f"silt_commits.jsonl has {table}@v{version} {times} times"
    units = {table: _units(warehouse, table) for table in {each.table for each in noted}}
    for each in noted:
        if each.app_id is not None and not _is_in(each, units[each.table]):
            yield f"silt_commits.jsonl has {each.app_id} as {each.table}@v{each.table_version}, which is not it"


def skips(target: Path) -> int:
    """How often a unit of work was found done, as the project's folder says."""
    return sum(each.skipped for each in CommitJournal(target).read().entries)


def damage(warehouse: Path) -> Iterator[str]:
    """What `silt check` finds wrong: a log against its checkpoints, the files against what the log says of them."""
    for folder in sorted(each.parent for each in warehouse.glob("*/*/_delta_log")):
        log = DeltaLog(LocalStore(folder), folder.name)
        problems = [*check_log(log.store, log.name), *check_files(log.store, log.snapshot(), lambda done: None)]
        yield from (f"{folder.name}: {problem.kind.value}: {problem.what}" for problem in problems)


def _units(warehouse: Path, table: str) -> dict[int, list[str]]:
    """The units of work of each commit of a table."""
    _, schema, name = table.split(".")
    log = DeltaLog(LocalStore(warehouse / schema / name), table)
    return {
        commit.version: [action.app_id for action in commit.actions if isinstance(action, SetTransaction)]
        for commit in log.commits()
    }


def _is_in(entry: JournalEntry, units: dict[int, list[str]]) -> bool:
    return entry.table_version is not None and entry.app_id in units.get(entry.table_version, [])
