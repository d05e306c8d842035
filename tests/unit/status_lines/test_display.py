"""Which statements are shown, and when."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections.abc import Iterator

import pytest

from dbt.adapters.silt.status_lines import display as displays
from dbt.adapters.silt.status_lines.display import Display, Screen, StatusLine, Streams
from dbt.adapters.silt.status_lines.line import Stages
from tests.terminals import Terminal


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Shown:
    """A display that only the test draws, and its terminal."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        self.clock = Clock()
        self.screen = Screen(self.out, lambda: os.terminal_size((80, 24)))
        self.display = Display(self.screen, Streams(self.screen), self.clock)

    def lines(self) -> list[str]:
        terminal = Terminal()
        terminal.feed(self.out.getvalue().replace("\n", "\r\n"))
        return [line.strip() for line in terminal.lines]

    def after(self, seconds: float) -> list[str]:
        self.clock.now += seconds
        self.display.draw()
        return self.lines()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    monkeypatch.setattr(displays, "_SECONDS_BETWEEN", 3600)
    made = Shown()
    yield made
    made.display.stop()


def test_a_statement_is_shown_once_it_has_run_for_a_second(shown: Shown) -> None:
    with shown.display.line(lambda: Stages(1, 2)).running("orders", "select 1"):
        assert shown.after(0.9) == []
        assert shown.after(0.2) == ["0:01  orders: query, 1 of 2 tasks"]
        assert shown.after(60) == ["1:01  orders: query, 1 of 2 tasks"]
    assert shown.lines() == []


def test_short_statements_write_nothing_to_the_terminal(shown: Shown) -> None:
    for _ in range(3):
        with shown.display.line(Stages).running("orders", "select 1"):
            shown.after(0.5)
    assert shown.out.getvalue() == ""


def test_each_busy_connection_has_a_line(shown: Shown) -> None:
    first, second = shown.display.line(Stages), shown.display.line(Stages)
    with first.running("a", "merge into a using b"):
        with second.running("b", "vacuum b"):
            second.report("files deleted", 3, 8)
            assert shown.after(2) == ["0:02  a: merge", "0:02  b: vacuum, 3 of 8 files deleted"]
        assert shown.lines() == ["0:02  a: merge"], "at once, without a drawing"
        with second.running("c", "select 1"):
            assert shown.after(2) == ["0:04  a: merge", "0:02  c: query"], "what was counted before is forgotten"


def test_a_statement_that_fails_leaves_no_line(shown: Shown) -> None:
    with contextlib.suppress(KeyboardInterrupt), shown.display.line(Stages).running("a", "select 1"):
        shown.after(2)
        raise KeyboardInterrupt
    assert shown.lines() == []


def test_progress_of_statements_that_are_not_shown_is_not_requested(shown: Shown) -> None:
    asked: list[float] = []

    def stages() -> Stages:
        asked.append(shown.clock.now)
        return Stages()

    with shown.display.line(stages).running("a", "select 1"):
        shown.after(0.5)
        shown.after(1)
    assert asked == [101.5]


def test_after_the_end_nothing_is_drawn_until_another_statement_begins(shown: Shown) -> None:
    line = shown.display.line(Stages)
    with line.running("a", "select 1"):
        shown.after(2)
        shown.display.stop()
        assert shown.lines() == []
        assert shown.after(2) == []
    with line.running("b", "select 1"):
        assert shown.after(2) == ["0:02  b: query"]


def test_a_closed_terminal_ends_the_drawing_but_no_statement(shown: Shown) -> None:
    line: StatusLine = shown.display.line(Stages)
    with line.running("a", "select 1"):
        shown.out.close()
        shown.clock.now += 2
        shown.display.draw()
        shown.display.draw()
    with line.running("b", "select 1"):
        pass


def test_a_thread_draws_while_statements_run_and_ends_with_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(displays, "_SECONDS_BETWEEN", 0.01)
    made = Shown()
    before = set(threading.enumerate())
    with made.display.line(Stages).running("a", "select 1"):
        made.clock.now += 2
        _wait(lambda: made.lines() == ["0:02  a: query"])
        (thread,) = set(threading.enumerate()) - before
    made.display.stop()
    assert made.lines() == []
    thread.join(timeout=300)
    assert not thread.is_alive()


def _wait(is_so: object) -> None:
    deadline = time.monotonic() + 300
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("stays", "advice"), [(False, "`keep_alive` saves this"), (True, "it stays for later commands")]
)
def test_the_start_of_spark_is_a_single_line_for_all_threads_that_wait(shown: Shown, stays: bool, advice: str) -> None:
    with shown.display.starting(stays), shown.display.starting(stays):
        assert shown.after(0.9) == []
        assert shown.after(7.1) == [f"0:08  starting Spark, 8 s; {advice}"]
    assert shown.lines() == []
    with shown.display.starting(stays):
        assert len(shown.after(2)) == 1


def test_the_line_of_the_start_gives_way_to_the_statement(shown: Shown) -> None:
    line = shown.display.line(Stages)
    with shown.display.starting(False):
        shown.after(2)
    with line.running("orders", "create table x as select 1"):
        assert shown.after(2) == ["0:02  orders: create"]
