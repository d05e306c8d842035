"""Output formats: for a program, as plain text, and drawn for a person."""

from __future__ import annotations

import io
import json

import pytest

from dbt.adapters.silt.cli.output.answers import UNKNOWN, UTC, Answer, Facts, Rows, iso, size, utc
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.engine.kernel.printable import line

ROWS = Rows(
    ("name", "#rows", f"seen {UTC}", "note"),
    [["künden", "1,200", "2026-01-31 12:00:00", UNKNOWN], ["注文", "7", UNKNOWN, UNKNOWN]],
    "tables",
)
ANSWER = Answer({"name": "künden", "at": None}, [Facts({"warehouse": "a\nb"}), ROWS, "end"], 1)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def printed(out: io.StringIO, as_json: bool = False) -> str:
    assert show(ANSWER, as_json, out) == 1
    return out.getvalue()


def test_json_is_one_value_with_unescaped_names() -> None:
    text = printed(io.StringIO(), as_json=True)
    assert json.loads(text) == ANSWER.document
    assert "künden" in text


def test_plain_text_is_a_line_a_row_with_aligned_cells_and_no_drawing() -> None:
    assert printed(io.StringIO()).split("\n") == [
        "warehouse  a\\nb",
        "",
        "tables",
        "name     rows  seen (UTC)           note",
        "künden  1,200  2026-01-31 12:00:00  -",
        "注文        7  -                    -",
        "",
        "end",
        "",
    ]


def test_plain_text_is_never_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    show(Answer(None, [Rows(("a",), [["x" * 500]])]), False, out)
    assert "x" * 500 in out.getvalue()


def test_on_a_terminal_rows_are_drawn_without_columns_that_are_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "dumb")
    text = printed(Terminal())
    assert "────" in text
    assert "note" not in text
    assert all(len(each) <= 60 for each in text.splitlines())
    assert "künden   1,200   2026-01-31 12:00:00" in text


def test_control_characters_are_escaped() -> None:
    assert line("a\tb\x1b[31m") == "a\\tb\\x1b[31m"
    assert line("künden 注文") == "künden 注文"


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_234_567, "1.2 MB"), (5 * 10**15, "5000.0 TB")],
)
def test_sizes_are_printed_in_readable_units(number: int | None, text: str) -> None:
    assert size(number) == text


def test_times_are_printed_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert utc(1_700_000_000_123) == "2023-11-14 22:13:20"
    assert iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert (utc(None), iso(None)) == ("-", None)
