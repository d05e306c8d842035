"""Measures what each test costs and reaches: python -m tests.gate.measure [PATHS]

The measurements are kept in `.mutants/`, one line for each test, and `python -m tests.gate.fast` chooses from them. A
test that has a line is not run again. Several processes may measure at the same time. A test is measured in this
process, so blocks that only other processes run are not seen.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from dbt.cli.main import dbtRunner

from dbt.adapters.silt.engine.statements import route
from tests.mutants.functions import PACKAGE, ROOT, modules
from tests.mutants.reach import Probes
from tests.mutants.runner import CACHE, is_chosen

_QUIET: Final = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass(frozen=True)
class Measured:
    """A test that passed.

    Attributes:
        seconds: of the clock, with the set-up of fixtures that no earlier test had set up.
        cpu: seconds of this process's processor.
        facts: the kinds of statements, materializations and strategies that it ran.
        blocks: the first lines of the blocks by the path of the module.
    """

    test: str
    seconds: float
    cpu: float
    facts: tuple[str, ...]
    blocks: dict[str, list[int]]


def measured(folder: Path = CACHE) -> Iterator[Measured]:
    """Returns the kept measurements of the tests that passed."""
    known = set()
    for line in _lines(folder):
        test, passed, seconds, cpu, facts, blocks = json.loads(line)
        if passed and test not in known:
            known.add(test)
            yield Measured(test, seconds, cpu, tuple(facts), blocks)


def _lines(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("gate*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            yield from (line for line in lines if line.endswith("\n"))


class Facts:
    """Notes the kinds of statements, materializations and strategies that run in this process."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def install(self) -> None:
        """Stays until the process ends."""
        for kind, carry_out in [*route._ROUTES.items()]:
            route._ROUTES[kind] = self._noting_route(kind.__name__, carry_out)  # type: ignore[index]
        dbtRunner.invoke = self._noting_nodes(dbtRunner.invoke)  # type: ignore[method-assign]

    def _noting_route(self, kind: str, carry_out: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*given: Any) -> Any:
            self.seen.add(f"refused {kind}")
            result = carry_out(*given)
            self.seen.add(f"route {kind}")
            return result

        return noting

    def _noting_nodes(self, invoke: Callable[..., Any]) -> Callable[..., Any]:
        def noting(runner: Any, args: list[str], *given: Any, **named: Any) -> Any:
            ended = invoke(runner, args, *given, **named)
            found = getattr(ended.result, "results", ())
            for result in found if isinstance(found, (list, tuple)) else ():
                self._note_node(args[0] if args else "", result)
            return ended

        return noting

    def _note_node(self, command: str, result: Any) -> None:
        config = getattr(getattr(result, "node", None), "config", None)
        kind = getattr(config, "materialized", None)
        if kind is None:
            return
        done = "refused" if result.status in ("error", "skipped") else "materialization"
        self.seen.add(f"{done} {'clone' if command == 'clone' else kind}")
        if kind == "incremental" and done == "materialization":
            self.seen.add(f"strategy {getattr(config, 'incremental_strategy', None) or 'append'}")


class Measurer:
    """Runs the tests that have no measurement yet, and appends a line for each."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = {json.loads(line)[0] for line in _lines(self._file.parent)}
        items[:] = [item for item in items if is_chosen(item, spark=True) and item.nodeid not in known]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or not report.passed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files = (each.relative_to(PACKAGE).as_posix() for each in sorted(PACKAGE.rglob("*.py")))
        probes, facts = Probes(modules([each for each in files if not each.endswith("__main__.py")])), Facts()
        facts.install()
        with self._file.open("a", encoding="utf-8") as kept:
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                self._failed = False
                facts.seen.clear()
                reach = probes.reach_of(
                    partial(item.config.hook.pytest_runtest_protocol, item=item, nextitem=following)
                )
                times = round(reach.seconds, 4), round(reach.cpu, 4)
                line = [item.nodeid, not self._failed, *times, sorted(facts.seen), reach.blocks]
                print(json.dumps(line, separators=(",", ":")), file=kept, flush=True)
        return True


def main(arguments: list[str]) -> int:
    """Measures the tests at these places, or all tests."""
    os.environ["CI"] = "true"  # the tests draw the same examples in each run
    os.chdir(ROOT)
    CACHE.mkdir(exist_ok=True)
    return int(pytest.main([*arguments, *_QUIET], plugins=[Measurer(CACHE / f"gate-{os.getpid()}.jsonl")]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
