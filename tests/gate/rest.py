"""Runs tests beyond the fast set for a limited time: python -m tests.gate.rest --minutes 35 --workers 2

First come the tests that the change since the last landing reaches, the nearest first, for at most half of the time.
The other files follow in the order of their names, from a place that moves with the time of the commit. No machine
remembers what has run, so the place is a function of that time: each hour moves it by 0.618 of the suite, which spreads
the places of any few runs over the whole suite. At the end the command lists what was left out.

The command fails if a test fails. At the end of the time no test begins; a test that then takes longer than the rest of
the minutes is stopped and named, and does not fail the command. A few failed tests run again, each alone in a process:
a test that then passes depends on other tests or on the load, and is named as unstable instead of failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests import changed
from tests.durations import expected_seconds

ROOT: Final = Path(__file__).parents[2]
_STEP: Final = 0.618034
_LAST_MINUTES: Final = 3
"""A test that begins before the last minutes may still end."""
_DAY: Final = 24 * 60 * 60
_OTHER_COMMANDS: Final = ("tests/cloud/",)
"""Folders whose tests need an option."""
_OVER_CONNECT: Final = ("--connect", "-m", "connect(gate=True)")
_HERE: Final = ("-m", "not long")
_MANY: Final = 10
"""More failed tests than these do not run again."""
_MINUTES_ALONE: Final = 5
_GOOD: Final = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


@dataclass
class Journal:
    """The events of a run, from the file that `--journal` wrote."""

    collected: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, file: Path) -> Journal:
        """Reads the file, whose last line may be incomplete; a run that ended early has none."""
        journal = cls()
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        for line in text[: text.rfind("\n") + 1].splitlines():
            event, test = json.loads(line)
            getattr(journal, event).append(test)
        return journal

    @property
    def stopped(self) -> list[str]:
        """The tests that began and did not end."""
        return sorted({*self.begun} - {*self.ended})

    @property
    def left_out(self) -> Counter[str]:
        """The number of tests of each file that did not end."""
        ended = {*self.ended}
        return Counter(test.partition("::")[0] for test in self.collected if test not in ended)


def order(reached: Mapping[str, int], seconds: Mapping[str, float], near_seconds: float, at: float) -> list[str]:
    """Returns the test files in the order in which they run.

    Args:
        reached: the files that the change reaches, with their distances.
        seconds: the expected duration of each file.
        near_seconds: how long the files that the change reaches may take, so that others have their turn.
        at: the time of the commit, in seconds since 1970.
    """
    near = []
    for file in sorted(seconds.keys() & reached.keys(), key=lambda file: (reached[file], seconds[file], file)):
        near_seconds -= seconds[file]
        if near_seconds >= 0:
            near.append(file)
    return near + _rotated({file: seconds[file] for file in sorted(seconds.keys() - {*near})}, at)


def _rotated(seconds: Mapping[str, float], at: float) -> list[str]:
    files = [*seconds]
    begin = at / 3600 * _STEP % 1 * sum(seconds.values())
    for number, file in enumerate(files):
        begin -= seconds[file]
        if begin < 0:
            return files[number:] + files[:number]
    return files


def base_of_landing(root: Path = ROOT) -> str | None:
    """Returns the commit that the change starts from: $BASE, or the place where the branch left `main` of the origin;
    on `main` the first parent of a merge, or the last commit that is a day older. None if the clone has none of them.
    """
    if os.environ.get("BASE"):
        return os.environ["BASE"]
    head = _git(root, "rev-parse", "HEAD")
    for name in ("origin/HEAD", "origin/main"):
        found = _git(root, "merge-base", "HEAD", name)
        if found and found != head:
            return found
    if _git(root, "rev-parse", "--quiet", "--verify", "HEAD^2"):
        return _git(root, "rev-parse", "HEAD^1")
    return _git(root, "rev-list", "-1", f"--before={time_of_commit(root) - _DAY:.0f}", "HEAD") or None


def time_of_commit(root: Path = ROOT) -> float:
    """Returns the time of the commit, or the present time without one, in seconds since 1970."""
    return float(_git(root, "log", "-1", "--format=%ct") or time.time())


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=root, capture_output=True, text=True).stdout.strip()


def test_files(root: Path = ROOT) -> list[str]:
    """Returns the test files that need no option of pytest; the paths are below the root."""
    files = sorted(file.relative_to(root).as_posix() for file in (root / "tests").rglob("test_*.py"))
    return [file for file in files if not file.startswith(_OTHER_COMMANDS)]


def seconds_of(files: Sequence[str]) -> dict[str, float]:
    """Returns the expected duration of each file, at least a moment."""
    recorded = changed.seconds_of_files()
    unknown = expected_seconds(files)
    return {file: max(0.1, recorded.get(file, unknown[file])) for file in files}


@dataclass(frozen=True)
class Run:
    """A pytest that runs in a separate process.

    Attributes:
        folder: of its journal, and of its output if it is quiet.
    """

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def start(cls, arguments: Sequence[str], last_start: float, folder: Path, quiet: bool = False) -> Run:
        """Starts pytest; no test begins that would probably end after `last_start`, in seconds since 1970."""
        folder.mkdir()
        options = ("--until", str(last_start), "--journal", str(folder / "journal"))
        command = (sys.executable, "-m", "pytest", *options, *arguments)
        with (folder / "output").open("w", encoding="utf-8") as output:
            process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=output if quiet else None)
        return cls(process, folder)

    @property
    def journal(self) -> Journal:
        return Journal.read(self.folder / "journal")

    def is_good(self, seconds: float) -> bool:
        """Waits for the end, or stops the run after this time; returns whether no test has failed."""
        try:
            return self.process.wait(max(0, seconds)) in _GOOD
        except subprocess.TimeoutExpired:
            return not self.journal.failed
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def unstable(failed: Sequence[str], options: Sequence[str], folder: Path) -> list[str]:
    """Runs each of a few failed tests again, alone in a process; returns the tests that pass."""
    tests = [*dict.fromkeys(failed)]
    if len(tests) > _MANY:
        return []
    return [test for number, test in enumerate(tests) if _passes(test, options, folder / f"alone-{number}")]


def _passes(test: str, options: Sequence[str], folder: Path) -> bool:
    run = Run.start((*options, test), time.time() + _DAY, folder)
    return run.is_good(60 * _MINUTES_ALONE) and bool(run.journal.ended)


def report(journal: Journal, connect: Journal, passed_alone: Sequence[str] = ()) -> str:
    """Returns the failed, the unstable and the stopped tests, and what was left out: counts by folder and file."""
    left_out = journal.left_out
    failed = dict.fromkeys((*journal.failed, *connect.failed))
    lines = [f"FAILED {test}" for test in failed if test not in passed_alone]
    lines += [f"UNSTABLE, failed and then passed alone: {test}" for test in failed if test in passed_alone]
    lines += [f"stopped at the end of the time, no failure: {test}" for test in (*journal.stopped, *connect.stopped)]
    if connect.left_out:
        lines.append(f"left out over Spark Connect: {connect.left_out.total()} of {len(connect.collected)} tests")
    lines.append(f"left out: {left_out.total()} of {len(journal.collected)} tests beyond the fast set")
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for file, count in sorted(left_out.items()):
        folders[file.rpartition("/")[0]][file] = count
    for folder, files in folders.items():
        lines.append(f"  {folder}: {files.total()}")
        lines += (f"    {file.rpartition('/')[2]}: {count}" for file, count in files.items())
    return "\n".join(lines)


def main() -> int:
    """Runs the tests; returns 1 if a test fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.rest")
    parser.add_argument("--minutes", type=float, default=35.0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    until = time.time() + 60 * arguments.minutes
    seconds, base = seconds_of(test_files()), base_of_landing()
    reached = changed.reached_since(base) if base else {}
    queue = order(reached, seconds, arguments.minutes * 30 * arguments.workers, time_of_commit())
    count = len(seconds.keys() & reached.keys())
    print(f"the change since {base} reaches {count} of {len(seconds)} test files", flush=True)
    return int(not _runs(queue, until, arguments.workers))


def _runs(queue: Sequence[str], until: float, workers: int) -> bool:
    """Runs the files, and next to them the tests over Spark Connect; returns whether no test has failed."""
    last_start = until - 60 * _LAST_MINUTES
    in_parallel = (*_HERE, "-n", str(workers), "--dist", "loadscope", "--no-loadscope-reorder")
    with tempfile.TemporaryDirectory() as kept:
        connect = Run.start(_OVER_CONNECT, last_start, Path(kept, "connect"), quiet=True)
        rest = Run.start(("--beyond-fast", *in_parallel, *queue), last_start, Path(kept, "rest"))
        are_good = True
        passed_alone: list[str] = []
        for run, options in ((rest, _HERE), (connect, _OVER_CONNECT)):
            if not run.is_good(until - time.time()):
                passed = unstable(run.journal.failed, options, run.folder)
                passed_alone += passed
                are_good &= bool(passed) and {*passed} == {*run.journal.failed}
        print("\nover Spark Connect:", (connect.folder / "output").read_text(encoding="utf-8"), sep="\n")
        print(report(rest.journal, connect.journal, passed_alone), flush=True)
    return are_good


if __name__ == "__main__":
    sys.exit(main())
