"""Tables that other engines wrote pass the check, except for known damage."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.files.file_guard import Content
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.maintenance.problems import ProblemKind
from tests.corpus.corpus import entries, log_of, needs_corpus, readable

pytestmark = needs_corpus

# A log from which some commits were removed on purpose, behind a checkpoint.
HOLES = ("delta-rs-err-logs/table_b", "delta-rs-err-logs/table_g")


@pytest.mark.parametrize("entry", readable(), ids=lambda entry: entry["path"])
def test_the_check_reports_only_removed_commits_in_logs_of_other_engines(entry: Any) -> None:
    log = log_of(entry["path"])
    kinds = [problem.kind for problem in check_log(log.store, log.name)]
    assert kinds == ([ProblemKind.COMMIT_MISSING] if entry["path"] in HOLES else [])


@pytest.mark.parametrize("entry", readable(), ids=lambda entry: entry["path"])
def test_the_check_reports_no_existing_file_of_another_engine(entry: Any) -> None:
    log = log_of(entry["path"])
    checked: list[int] = []
    problems = list(check_files(log.store, log.snapshot(), checked.append))
    assert sum(checked) == entry["active_files"]
    if entry["oracle"] == "log-only":
        assert {problem.kind for problem in problems} == {ProblemKind.FILE_MISSING}
        assert len(problems) == entry["active_files"]
    else:
        assert problems == []


def test_the_check_reports_contradicted_statistics_only_in_the_tables_that_have_them() -> None:
    """The table has a minimum that was rounded up."""
    found = set()
    for entry in readable():
        if entry["oracle"] != "log-only":
            log = log_of(entry["path"])
            snapshot = log.snapshot()
            assert snapshot.doubt is None
            log.guard.check(log.store, snapshot.files, Content(snapshot.metadata), log.name, snapshot.version)
            found |= {entry["path"] for _ in check_files(log.store, snapshot, lambda _: None, data=True)}
    assert found == {"delta-rs/issue_1374"}


def test_the_missing_commits_of_a_log_that_cannot_be_opened_are_named() -> None:
    log = log_of("delta-rs-err-logs/table_c")
    (problem,) = check_log(log.store, log.name)
    assert (problem.kind, problem.version) == (ProblemKind.COMMIT_MISSING, 12)
    assert any(entry["path"] == log.name for entry in entries())
