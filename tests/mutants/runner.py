"""A pytest plugin that runs, for each mutant, the tests that reach it.

Each mutant runs in a fork of the process that has collected the tests. With Spark, all of them run in that process,
which keeps its Spark.

Which tests reach a block of statements is measured once and kept in `.mutants/`, until a file of the package or the
test's own file changes. A test that fails without a mutant is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import hypothesis
import pytest

from tests.mutants.functions import PACKAGE, ROOT, Module, NotReplaceableError
from tests.mutants.kinds import Mutant
from tests.mutants.reach import Probes, Reach

CACHE: Final = ROOT / ".mutants"
_LOG: Final = CACHE / "measuring.log"
_PASSED, _FAILED, _NOT_REPLACEABLE = 0, 1, 3
_MEMORY: Final = 12 << 30


@dataclass(frozen=True)
class Result:
    """The result of the tests of a mutant.

    Attributes:
        path: the module's path below the package.
        name: the mutant's name.
        line: the line of the change.
        state: `killed`, `survived`, `timeout` (counts as killed), `unreached` or `impossible` (Python cannot run it).
        tests: the number of tests that reach the mutant.
        killer: the test that failed.
    """

    path: str
    name: str
    line: int
    state: str
    tests: int = 0
    killer: str = ""


@dataclass(eq=False)  # pytest puts its plugins into a set
class Runner:
    """Runs the mutants after pytest has collected the tests.

    Attributes:
        load: imports the modules to be changed; called after the collection.
        mutants: the mutants with the paths of their modules.
        jobs: how many mutants run at the same time; not used with Spark.
        spark: whether tests that need Spark run.
        report: called with each result.
        is_first: whether a test runs before the tests that are not first; the shorter ones come first in both parts.
    """

    load: Callable[[], dict[str, Module]]
    mutants: Sequence[tuple[str, Mutant]]
    jobs: int
    spark: bool
    report: Callable[[Result], None]
    is_first: Callable[[str], bool] = lambda test: False
    _failed: str = field(default="", init=False)

    def pytest_collection(self) -> None:
        """A mutant needs a failure, not its smallest example, and the same examples in each run."""
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutants", phases=phases, derandomize=True, database=None, deadline=None)
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if is_chosen(item, self.spark)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._failed:
            self._failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        modules = self.load()
        reaches = self._reaches(session, modules)
        items = {item.nodeid: item for item in session.items}
        tries = []
        for path, mutant in self.mutants:
            chosen = sorted(_reaching(reaches, path, mutant.block), key=lambda test: not self.is_first(test))
            limits = _Limits.of([reaches[each] for each in chosen])
            tries.append(_Try(modules[path], mutant, [items[each] for each in chosen], limits))
        for each in tries:
            if not each.items:
                self.report(each.result("unreached"))
        reached = [each for each in tries if each.items]
        if self.spark:
            self._in_this_process(session, reached)
        else:
            self._in_forks(reached)
        return True

    def _in_this_process(self, session: pytest.Session, tries: list[_Try]) -> None:
        for each in tries:
            session._setupstate.teardown_exact(each.items[0])
            try:
                each.module.apply(each.mutant)
            except NotReplaceableError:
                self.report(each.result("impossible"))
                continue
            with _interrupted_after(each.limits.clock):
                failed = self.first_failure(each.items)
            each.module.restore()
            self.report(each.result("killed" if failed else "survived", failed))
        session._setupstate.teardown_exact(None)

    def _in_forks(self, tries: list[_Try]) -> None:
        running: dict[int, _Child] = {}
        for each in tries:
            while len(running) >= self.jobs:
                self._collect(running)
            child = _Child.start(each)
            if child is None:
                self._try(each)
            else:
                running[child.pid] = child
        while running:
            self._collect(running)

    def _try(self, this: _Try) -> None:
        """Runs in the fork: ends it with the outcome."""
        code = _FAILED
        try:
            this.limits.apply()
            this.module.apply(this.mutant)
            killer = self.first_failure(this.items)
            code = _FAILED if killer else _PASSED
        except NotReplaceableError:
            code, killer = _NOT_REPLACEABLE, ""
        except BaseException as error:  # pytest itself fails, for example because the mutant exits
            killer = repr(error)
        Path(tempfile.gettempdir(), "killer").write_text(killer, encoding="utf-8")
        os._exit(code)

    def first_failure(self, items: list[pytest.Item]) -> str:
        """Runs tests until one fails, and returns its id."""
        self._failed = ""
        for number, item in enumerate(items):
            following = items[min(number + 1, len(items) - 1)]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                break
        return self._failed

    def _collect(self, running: dict[int, _Child]) -> None:
        """Waits until a mutant's tests end or their time is over, and reports."""
        while True:
            for child in list(running.values()):
                state = child.state()
                if state is not None:
                    del running[child.pid]
                    self.report(child.tried.result(state, child.end()))
                    return
            time.sleep(0.02)

    def _reaches(self, session: pytest.Session, modules: dict[str, Module]) -> dict[str, Reach]:
        """Returns the blocks that the tests reach; only tests of new and changed files run for this."""
        CACHE.mkdir(exist_ok=True)
        kept = CACHE / f"reach-{_digest(sorted(modules))}.jsonl"
        kept.touch()
        digests = {path: _digest([path.read_text(encoding="utf-8")]) for path in {item.path for item in session.items}}
        known = {(nodeid, digest) for nodeid, digest, _ in _lines(kept)}
        new = [item for item in session.items if (item.nodeid, digests[item.path]) not in known]
        if new and self.spark:
            self._measure(new, modules, kept, digests)
            for module in modules.values():
                module.restore()
        elif new:
            child = os.fork()
            if child == 0:
                self._measure_and_exit(new, modules, kept, digests)
            if os.waitpid(child, 0)[1]:
                raise RuntimeError(f"the tests without a mutant ended early: see {_LOG}")
        current = {item.nodeid: digests[item.path] for item in session.items}
        return {nodeid: reach for nodeid, digest, reach in _lines(kept) if reach and current.get(nodeid) == digest}

    def _measure_and_exit(
        self, items: list[pytest.Item], modules: dict[str, Module], kept: Path, digests: dict[Path, str]
    ) -> None:
        _own_folders()
        code = _FAILED
        try:
            self._measure(items, modules, kept, digests)
            code = _PASSED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _measure(
        self, items: list[pytest.Item], modules: dict[str, Module], kept: Path, digests: dict[Path, str]
    ) -> None:
        with kept.open("a", encoding="utf-8") as file:
            for item, reach in self._measured(items, modules):
                line = [item.nodeid, digests[item.path], None if reach is None else asdict(reach)]
                print(json.dumps(line), file=file, flush=True)

    def _measured(
        self, items: list[pytest.Item], modules: dict[str, Module]
    ) -> Iterator[tuple[pytest.Item, Reach | None]]:
        """Yields what each test reaches; None if it fails."""
        probes = Probes(modules)
        for item, following in zip(items, [*items[1:], items[-1]], strict=True):
            self._failed = ""
            reach = probes.reach_of(partial(item.config.hook.pytest_runtest_protocol, item=item, nextitem=following))
            yield item, None if self._failed else reach


def is_chosen(item: pytest.Item, spark: bool) -> bool:
    """Whether the test is not marked `long`, and does not need Spark or may use it."""
    return (spark or "spark" not in getattr(item, "fixturenames", ())) and item.get_closest_marker("long") is None


def _reaching(reaches: dict[str, Reach], path: str, block: int) -> list[str]:
    """The tests that reach a block, the shortest first."""
    found = [nodeid for nodeid, reach in reaches.items() if block in reach.blocks.get(path, ())]
    return sorted(found, key=lambda nodeid: reaches[nodeid].cpu)


@dataclass(frozen=True)
class _Limits:
    """The seconds of the clock and of the processor after which a mutant counts as killed."""

    clock: float
    cpu: int

    @classmethod
    def of(cls, reaches: list[Reach]) -> _Limits:
        seconds, cpu = sum(reach.seconds for reach in reaches), sum(reach.cpu for reach in reaches)
        return cls(120 + 10 * seconds, int(20 + 5 * cpu))

    def apply(self) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu, self.cpu + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


@dataclass(frozen=True)
class _Try:
    """A mutant with the tests that reach it and their limits."""

    module: Module
    mutant: Mutant
    items: list[pytest.Item]
    limits: _Limits

    def result(self, state: str, killer: str = "") -> Result:
        return Result(self.module.path, self.mutant.name, self.mutant.line, state, len(self.items), killer)


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raises an error in the block after this time."""

    def interrupt(number: int, frame: object) -> None:
        raise TimeoutError(f"{seconds} s are over")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@dataclass(frozen=True)
class _Child:
    """A fork that runs the tests of a mutant."""

    pid: int
    tried: _Try
    ends: float
    folder: str

    @classmethod
    def start(cls, tried: _Try) -> _Child | None:
        """Forks; returns None in the fork."""
        folder = tempfile.mkdtemp(prefix="mutant-")
        pid = os.fork()
        if pid == 0:
            os.setsid()
            _own_folders(folder)
            return None
        return cls(pid, tried, time.monotonic() + tried.limits.clock, folder)

    def state(self) -> str | None:
        """The state of the mutant when the fork has ended; None before."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() < self.ends:
                return None
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return "timeout"
        if os.WIFSIGNALED(status):
            return "timeout"
        states = {_PASSED: "survived", _NOT_REPLACEABLE: "impossible"}
        return states.get(os.WEXITSTATUS(status), "killed")

    def end(self) -> str:
        """Ends processes that the tests left, deletes the folder, and returns the test that failed."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # no process is left
        killer = Path(self.folder, "killer")
        name = killer.read_text(encoding="utf-8") if killer.exists() else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        return name


def _own_folders(folder: str | None = None) -> None:
    """Gives this process a temporary folder, and writes its output there; without a folder, to a log in the cache."""
    log = _LOG if folder is None else Path(folder, "output")
    folder = folder or tempfile.mkdtemp(prefix="mutant-")
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = folder
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)


def _lines(file: Path) -> Iterator[tuple[str, str, Reach | None]]:
    """The tests in a file of reaches, each with the digest of its file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        nodeid, digest, reach = json.loads(line)
        yield nodeid, digest, None if reach is None else Reach(**reach)


def _digest(texts: list[str]) -> str:
    """A digest of the package and these texts."""
    digest = hashlib.sha256("\n".join(texts).encode())
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
