"""Tables that other engines wrote are found sound, but for what is known to be wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.maintenance.problems import ProblemKind
from tests.corpus.corpus import entries, log_of, needs_corpus, readable

pytestmark = needs_corpus

# A log of which some commits were taken away on purpose, behind a checkpoint.
HOLES = ("delta-rs-err-logs/table_b", "delta-rs-err-logs/table_g")


@pytest.mark.parametrize("entry", readable(), ids=lambda entry: entry["path"])
def test_no_log_of_another_engine_is_reported(entry: Any) -> None:
    log = log_of(entry["path"])
    kinds = [problem.kind for problem in check_log(log.store, log.name)]
    assert kinds == ([ProblemKind.COMMIT_MISSING] if entry["path"] in HOLES else [])


@pytest.mark.parametrize("entry", readable(), ids=lambda entry: entry["path"])
def test_no_file_of_another_engine_is_reported_that_is_there(entry: Any) -> None:
    log = log_of(entry["path"])
    seen: list[int] = []
    problems = list(check_files(log.store, log.snapshot(), seen.append))
    assert sum(seen) == entry["active_files"]
    if entry["oracle"] == "log-only":
        assert {problem.kind for problem in problems} == {ProblemKind.FILE_MISSING}
        assert len(problems) == entry["active_files"]
    else:
        assert problems == []


def test_values_that_contradict_statistics_are_only_found_where_they_do() -> None:
    """In that table a minimum was rounded up."""
    found = set()
    for entry in readable():
        if entry["oracle"] != "log-only":
            log = log_of(entry["path"])
            snapshot = log.snapshot()
            assert snapshot.doubt is None
            log.guard.check(log.store, snapshot.files, snapshot.metadata, log.name, snapshot.version)
            found |= {entry["path"] for _ in check_files(log.store, snapshot, lambda _: None, data=True)}
    assert found == {"delta-rs/issue_1374"}


def test_the_gap_of_a_log_that_cannot_be_opened_is_named() -> None:
    log = log_of("delta-rs-err-logs/table_c")
    (problem,) = check_log(log.store, log.name)
    assert (problem.kind, problem.version) == (ProblemKind.COMMIT_MISSING, 12)
    assert any(entry["path"] == log.name for entry in entries())
