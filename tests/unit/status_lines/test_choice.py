"""When status lines are shown."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from typing import Any

import pytest

from dbt.adapters.silt.status_lines import choice
from dbt.adapters.silt.status_lines.choice import display_of


class Out(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def is_shown(patch: pytest.MonkeyPatch, *, terminal: bool = True, kind: str | None = "xterm", **flags: Any) -> bool:
    spark_conf = flags.pop("spark_conf", {})
    given = {"QUIET": False, "LOG_FORMAT": "default", "LOG_LEVEL": "info"} | flags
    patch.setattr(choice, "flags", lambda: Namespace(**given))
    if kind is None:
        patch.delenv("TERM", raising=False)
    else:
        patch.setenv("TERM", kind)
    with patch.context() as now:
        now.setattr(sys, "stdout", Out(terminal))
        return display_of(spark_conf) is not None


@pytest.mark.parametrize("flags", [{}, {"LOG_FORMAT": "text"}, {"USE_COLORS": False}, {"LOG_LEVEL": "debug"}])
def test_lines_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, flags: dict[str, Any]) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert is_shown(monkeypatch, **flags)


@pytest.mark.parametrize(
    "given",
    [
        {"terminal": False},
        {"kind": "dumb"},
        {"kind": None},
        {"QUIET": True},
        {"LOG_FORMAT": "json"},
        {"LOG_LEVEL": "none"},
        {"spark_conf": {"spark.log.level": "INFO"}},
        {"spark_conf": {"spark.ui.showConsoleProgress": "true"}},
    ],
)
def test_lines_are_not_shown_elsewhere(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]) -> None:
    assert not is_shown(monkeypatch, **given)


def test_lines_are_not_shown_without_a_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert display_of({}) is None
