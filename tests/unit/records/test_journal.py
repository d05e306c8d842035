"""The file with a line for each commit."""

from __future__ import annotations

import json
from multiprocessing import get_context
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.records.journal import COMMITS_FILE, CommitJournal, Journal, JournalEntry

TIME = "2026-03-01T12:00:00.000+00:00"


def entry(version: int) -> JournalEntry:
    counts = WriteCounts(rows_inserted=5, attempts=1)
    return JournalEntry(TIME, "silt.main.orders", run_id="R1", table_version=version, counts=counts)


@pytest.fixture
def journal(tmp_path: Path) -> CommitJournal:
    return CommitJournal(tmp_path / "target")


def test_a_line_is_one_object_without_unknown_fields(journal: CommitJournal) -> None:
    journal.append(entry(1))
    [line] = journal.path.read_text().splitlines()
    assert json.loads(line) == {
        "time": TIME,
        "table": "silt.main.orders",
        "run_id": "R1",
        "table_version": 1,
        "rows_affected": 5,
        "rows_inserted": 5,
        "attempts": 1,
        "skipped": False,
    }


def test_lines_are_read_in_order(journal: CommitJournal) -> None:
    for version in (1, 2):
        journal.append(entry(version))
    assert journal.read() == Journal((entry(1), entry(2)))


def test_a_project_without_commits_has_an_empty_journal(journal: CommitJournal) -> None:
    assert journal.read() == Journal()


def test_a_torn_last_line_is_not_counted_as_damaged(journal: CommitJournal) -> None:
    journal.append(entry(1))
    with journal.path.open("a") as file:
        file.write('not json\n{"time": 3, "table": "t"}\n[]\n\n' + entry(2).to_json()[:40])
    assert journal.read() == Journal((entry(1),), damaged=(2, 3, 4), torn=True)


def test_the_partial_line_of_a_killed_writer_does_not_damage_the_next_line(journal: CommitJournal) -> None:
    journal.append(entry(1))
    with journal.path.open("a") as file:
        file.write(entry(2).to_json()[:40])
    journal.append(entry(3))
    assert journal.read() == Journal((entry(1), entry(3)), damaged=(2,))


def test_fields_of_a_later_version_are_ignored(journal: CommitJournal) -> None:
    assert JournalEntry.from_json(json.dumps({**json.loads(entry(1).to_json()), "colour": "blue"})) == entry(1)


def test_an_unreadable_file_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / COMMITS_FILE).mkdir()
    with pytest.raises(StorageError, match=f"{COMMITS_FILE} cannot be read: Is a directory"):
        CommitJournal(tmp_path).read()


def test_two_processes_write_whole_lines(tmp_path: Path) -> None:
    processes = [get_context("fork").Process(target=_append_some, args=(tmp_path, name)) for name in "AB"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = CommitJournal(tmp_path).read()
    assert (found.damaged, found.torn, len(found.entries)) == ((), False, 100)
    assert {each.table for each in found.entries} == {"A" * 3000, "B" * 3000}
    assert len((tmp_path / COMMITS_FILE).read_text().splitlines()) == 100


def _append_some(folder: Path, name: str) -> None:
    for version in range(50):
        CommitJournal(folder).append(JournalEntry(TIME, name * 3000, table_version=version))
