"""Prints the skipped tests in the last line of a run, by reason."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_unconfigure(config: pytest.Config) -> None:
    """Prints the line after pytest's last line, in the process that reports."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    reasons = Counter(_reason(report) for report in reporter.stats.get("skipped", []))
    if reasons:
        said = "; ".join(f"{count} ({reason})" for reason, count in sorted(reasons.items()))
        reporter.write_line(f"skipped: {said}", yellow=True)
    elif reporter.stats:
        reporter.write_line("skipped: nothing")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Returns the reason as its test states it; a skip's report holds the location and the text."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
