"""The gate runs further tests: those of the change first, then all files in turn, and nothing after the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gate.rest import ROOT, Journal, Run, base_of_landing, order, report, unstable

SECONDS = {f"tests/test_{name}.py": 10.0 for name in "abcdefgh"}
HOUR = 3600


def names(files: list[str]) -> str:
    return "".join(file[-4] for file in files)


class TestOrder:
    def test_the_files_that_the_change_reaches_come_first_the_nearest_before_the_others(self) -> None:
        reached = {"tests/test_c.py": 2, "tests/test_f.py": 1, "dbt/x.py": 0}
        assert names(order(reached, SECONDS, 100, at=0)) == "fcabdegh"

    def test_the_change_leaves_time_to_the_other_files(self) -> None:
        assert names(order(dict.fromkeys(SECONDS, 1), SECONDS, 25, at=2 * HOUR))[:2] == "ab"
        assert sorted(order(dict.fromkeys(SECONDS, 1), SECONDS, 25, at=2 * HOUR)) == sorted(SECONDS)

    def test_a_few_runs_begin_at_places_all_over_the_suite(self) -> None:
        begun = [names(order({}, SECONDS, 0, at=hour * HOUR))[0] for hour in range(100, 108)]
        assert len({*begun}) >= 6

    def test_the_same_commit_has_the_same_order(self) -> None:
        assert order({}, SECONDS, 0, at=12345.0) == order({}, SECONDS, 0, at=12345.0)


def git(folder: Path, *arguments: str, at: int = 0) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    when = f"{1_700_000_000 + at} +0000"
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "PATH": "/usr/bin:/bin:/usr/local/bin"}
    return subprocess.check_output(("git", *who, *arguments), cwd=folder, env=dates, text=True).strip()


def commit(folder: Path, at: int) -> str:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "x", at=at)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("BASE", raising=False)
    git(tmp_path, "init", "--quiet", "-b", "main")
    return tmp_path


class TestBase:
    def test_a_branch_starts_where_it_left_main(self, repository: Path) -> None:
        first = commit(repository, 0)
        git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
        commit(repository, 90 * HOUR)
        assert base_of_landing(repository) == first

    def test_main_starts_at_the_last_commit_that_is_a_day_older(self, repository: Path) -> None:
        commit(repository, 0)
        older = commit(repository, 10 * HOUR)
        commit(repository, 30 * HOUR)
        commit(repository, 35 * HOUR)
        assert base_of_landing(repository) == older

    def test_a_merge_starts_at_its_first_parent(self, repository: Path) -> None:
        commit(repository, 0)
        git(repository, "checkout", "--quiet", "-b", "side")
        commit(repository, HOUR)
        git(repository, "checkout", "--quiet", "main")
        landed = commit(repository, 2 * HOUR)
        git(repository, "merge", "--quiet", "--no-ff", "-m", "y", "side", at=3 * HOUR)
        assert base_of_landing(repository) == landed

    def test_a_clone_of_one_commit_has_no_base(self, repository: Path) -> None:
        commit(repository, 0)
        assert base_of_landing(repository) is None

    def test_a_named_base_is_taken(self, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BASE", "v1")
        assert base_of_landing(repository) == "v1"


TESTS = """
import pathlib, signal
def test_first(): pass
def test_second():
    pipe = pathlib.Path(__file__).with_name("pipe")
    if pipe.exists():
        pipe.write_text("begun")
        signal.pause()
def test_third(): assert False
"""
NEVER = 1e12


@pytest.fixture
def tests(tmp_path: Path) -> list[str]:
    (tmp_path / "test_some.py").write_text(TESTS)
    return ["-q", "-p", "tests.gate.plugin", "-p", "no:cacheprovider", str(tmp_path / "test_some.py")]


WITH_A_SET = """
import pathlib, pytest, sys
from tests.gate import plugin
from tests.gate.selection import FastSet

plugin.ROOT = pathlib.Path(sys.argv[1])
plugin._chosen = lambda: FastSet({}, {}, {"test_some.py": ("test_first", "test_gone")})
sys.exit(pytest.main(["--fast", f"--rootdir={sys.argv[1]}", *sys.argv[2:]]))
"""


def test_a_fast_set_with_a_test_that_does_not_exist_fails_the_run_and_names_it(
    tests: list[str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", WITH_A_SET, str(tmp_path), *tests]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, "correct it: test_some.py::test_gone" in ended.stdout) == (1, True), ended.stdout
    assert "1 passed" in ended.stdout


WITH_A_LONG_TEST = """
import pytest, sys, time
from tests.gate import plugin

plugin.expected_seconds = lambda scopes: {scope: 1e6 * ("long" in scope) for scope in scopes}
sys.exit(pytest.main([f"--until={time.time() + 3600}", f"--rootdir={sys.argv[1]}", *sys.argv[2:]]))
"""


def test_a_test_that_runs_after_a_test_without_time_is_set_up(tmp_path: Path) -> None:
    for file in ("a/test_a.py", "a/test_long.py", "b/test_b.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("def test_it(): pass\n")
    options = ("-q", "-p", "tests.gate.plugin", "-p", "no:cacheprovider", str(tmp_path))
    command = [sys.executable, "-c", WITH_A_LONG_TEST, str(tmp_path), *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, "2 passed" in ended.stdout) == (0, True), ended.stdout


class TestRun:
    def test_a_run_that_ends_in_time_leaves_nothing_out_and_fails_if_a_test_fails(
        self, tests: list[str], tmp_path: Path
    ) -> None:
        run = Run.start(tests, NEVER, tmp_path / "out", quiet=True)
        assert not run.is_good(600)
        journal = run.journal
        assert (len(journal.ended), journal.left_out.total(), len(journal.failed)) == (3, 0, 1)

    def test_no_test_begins_after_the_end(self, tests: list[str], tmp_path: Path) -> None:
        run = Run.start(tests, time.time(), tmp_path / "out", quiet=True)
        assert run.is_good(600)
        assert (run.journal.begun, run.journal.left_out.total()) == ([], 3)

    def test_a_test_that_does_not_end_is_stopped_and_named_and_is_no_failure(
        self, tests: list[str], tmp_path: Path
    ) -> None:
        os.mkfifo(tmp_path / "pipe")
        run = Run.start(tests, NEVER, tmp_path / "out", quiet=True)
        assert (tmp_path / "pipe").read_text() == "begun"
        assert run.is_good(0)
        assert [each.rpartition("::")[2] for each in run.journal.stopped] == ["test_second"]
        assert run.journal.left_out.total() == 2


class TestFailedTestsAlone:
    OPTIONS = ("-q", "-p", "tests.gate.plugin", "-p", "no:cacheprovider")
    TESTS = """
import pathlib, pytest
seen = pathlib.Path(__file__).with_name("seen")
def test_before(): seen.touch()
def test_that_needs_no_other(): assert not seen.exists() or seen.unlink()
def test_that_is_wrong(): assert False
def test_without_a_result(): pytest.skip()
"""

    @pytest.fixture
    def failed(self, tmp_path: Path) -> list[str]:
        (tmp_path / "test_some.py").write_text(self.TESTS)
        names = ("test_that_needs_no_other", "test_that_is_wrong", "test_that_needs_no_other", "test_gone")
        return [f"{tmp_path / 'test_some.py'}::{name}" for name in names]

    def test_a_test_that_fails_only_after_others_passes_alone(self, failed: list[str], tmp_path: Path) -> None:
        together = Run.start((*self.OPTIONS, str(tmp_path)), NEVER, tmp_path / "together", quiet=True)
        assert not together.is_good(600)
        assert len(together.journal.failed) == 2
        (tmp_path / "seen").unlink(missing_ok=True)
        assert unstable(failed, self.OPTIONS, tmp_path) == failed[:1]

    def test_many_failed_tests_do_not_run_again(self, failed: list[str], tmp_path: Path) -> None:
        others = [f"{tmp_path}/test_other.py::test_{number}" for number in range(10)]
        assert unstable([*failed, *others], self.OPTIONS, tmp_path) == []
        assert not list(tmp_path.glob("alone-*"))


def test_the_report_names_an_unstable_test() -> None:
    journal = Journal(failed=["t/x.py::f", "t/x.py::g"])
    assert report(journal, Journal(), ["t/x.py::g"]).splitlines()[:2] == [
        "FAILED t/x.py::f",
        "UNSTABLE, failed and then passed alone: t/x.py::g",
    ]


def test_the_report_names_a_failed_test_once() -> None:
    assert report(Journal(failed=["t/x.py::f", "t/x.py::f"]), Journal()).startswith(
        "FAILED t/x.py::f\nleft out: 0 of 0"
    )


def test_the_report_counts_what_was_left_out_by_folder_and_file() -> None:
    journal = Journal(["t/a/x.py::f", "t/a/x.py::g", "t/b/y.py::f"], ["t/a/x.py::f", "t/a/x.py::g"], ["t/a/x.py::f"])
    assert report(journal, Journal()) == (
        "stopped at the end of the time, no failure: t/a/x.py::g\n"
        "left out: 2 of 3 tests beyond the fast set\n"
        "  t/a: 1\n"
        "    x.py: 1\n"
        "  t/b: 1\n"
        "    y.py: 1"
    )
