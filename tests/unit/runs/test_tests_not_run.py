"""Reused tests are reported by one short line each, and on a terminal by one line for all."""

from __future__ import annotations

import io
import threading

import pytest

from dbt.adapters.silt.engine.builds.passed_tests import PassedTest
from dbt.adapters.silt.engine.kernel.log.builds import BuildFacts, TableState
from dbt.adapters.silt.runs.tests_not_run import ReusedTests

ID = "c73dcb96-4599-45eb-92d9-5453e2ddea2e"


class Output(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.tests_not_run.logger.info", lines.append)
    return lines


def passed(*tables: str) -> PassedTest:
    facts = BuildFacts("owner", "code", tables={each: TableState("id", 2, "schema") for each in tables})
    return PassedTest(facts, ID)


def reported(said: list[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> list[str]:
    monkeypatch.setattr("sys.stdout", Output(is_terminal))
    tests = ReusedTests()
    notes = [
        threading.Thread(target=tests.note, args=("unique_orders_id", passed("silt.main.orders"))),
        threading.Thread(target=tests.note, args=("no_debts", passed("silt.main.a", "silt.main.b", "silt.main.c"))),
    ]
    for each in notes:
        each.start()
        each.join()
    tests.sum_up()
    tests.sum_up()
    return said


def test_each_reused_test_is_a_short_line_without_the_runs_id(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert reported(said, monkeypatch, is_terminal=False) == [
        "unique_orders_id: reused: passed on silt.main.orders@v2",
        "no_debts: reused: passed on silt.main.a@v2 and 2 more",
    ]


def test_on_a_terminal_all_reused_tests_are_one_line(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert reported(said, monkeypatch, is_terminal=True) == [
        "2 tests were not run again: nothing has changed since they passed"
    ]


def test_a_command_without_reused_tests_says_nothing(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Output(is_terminal=True))
    ReusedTests().sum_up()
    assert said == []


def test_an_id_that_dbt_has_made_is_shortened_in_messages() -> None:
    assert str(passed("silt.main.a")) == "passed on silt.main.a@v2 (run c73dcb96)"
