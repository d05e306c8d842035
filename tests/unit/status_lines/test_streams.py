"""Streams to the terminal on which status lines are drawn."""

from __future__ import annotations

import io
import logging
import os
import sys

import pytest

from dbt.adapters.silt.status_lines.display import Screen, Streams


class OnTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> logging.StreamHandler[io.StringIO]:
    """dbt's output stream on a terminal; standard output is on it too, and standard error is a file."""
    out = OnTerminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    made: logging.StreamHandler[io.StringIO] = logging.StreamHandler(out)
    logger = logging.getLogger("stdout_log")
    monkeypatch.setattr(logger, "handlers", [made])
    return made


def test_logged_and_printed_text_appears_above_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = on_terminal(monkeypatch)
    out = handler.stream
    screen = Screen(out, lambda: os.terminal_size((80, 24)))
    streams = Streams(screen)
    streams.guard()
    screen.draw(["a"])
    logging.getLogger("stdout_log").error("logged")
    sys.stdout.writelines(["printed\n", "twice\n"])
    up = "\r\x1b[1A\x1b[J"
    assert out.getvalue() == f"a\n{up}logged\na\n{up}printed\na\n{up}twice\na\n"
    assert sys.stdout.isatty()


def test_each_stream_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = on_terminal(monkeypatch)
    out, error = sys.stdout, sys.stderr
    streams = Streams(Screen(handler.stream, lambda: os.terminal_size((80, 24))))
    streams.guard()
    guarded = sys.stdout
    streams.guard()
    assert sys.stdout is guarded is not out
    assert sys.stderr is error, "it leads elsewhere"
    streams.restore()
    assert sys.stdout is out
    assert handler.stream is out


def test_a_stream_that_other_code_has_installed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = on_terminal(monkeypatch)
    streams = Streams(Screen(handler.stream, lambda: os.terminal_size((80, 24))))
    streams.guard()
    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout", other)
    streams.restore()
    assert sys.stdout is other


def test_a_replacement_of_a_stream_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while a python model runs, whose lines dbt's logger prints: nested locks could deadlock."""
    handler = on_terminal(monkeypatch)

    class Routed:
        closed = False

        def isatty(self) -> bool:
            return True

    routed = Routed()
    monkeypatch.setattr(sys, "stdout", routed)
    Streams(Screen(handler.stream, lambda: os.terminal_size((80, 24)))).guard()
    assert sys.stdout is routed
