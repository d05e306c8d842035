"""Lines at the end of a terminal: drawn below printed text, and removed completely."""

from __future__ import annotations

import io
import os

import pytest

from dbt.adapters.silt.status_lines.display import Screen
from tests.terminals import Terminal


class Drawn:
    """A screen, and the terminal that shows its output."""

    def __init__(self, columns: int = 40, rows: int = 10, encoding: str = "utf-8") -> None:
        self.terminal = Terminal(columns, rows)
        self.written = io.BytesIO()
        self.out = io.TextIOWrapper(self.written, encoding=encoding, newline="\r\n")
        self.size = os.terminal_size((columns, rows))
        self.screen = Screen(self.out, lambda: self.size)

    def draw(self, *lines: str) -> list[str]:
        self.screen.draw(lines)
        return self.seen()

    def print(self, text: str) -> list[str]:
        self.screen.write(self.out, text)
        return self.seen()

    def seen(self) -> list[str]:
        self.out.flush()
        self.terminal.feed(self.written.getvalue().decode(self.out.encoding))
        self.written.truncate(0)
        self.written.seek(0)
        return self.terminal.lines

    def resize(self, columns: int) -> None:
        self.size = os.terminal_size((columns, self.size.lines))
        self.terminal.resize(columns)


def test_new_lines_replace_the_earlier_lines() -> None:
    drawn = Drawn()
    assert drawn.draw("a", "b") == ["a", "b"]
    assert drawn.draw("b: 2") == ["b: 2"]
    assert drawn.draw("b: 3", "c", "d") == ["b: 3", "c", "d"]
    assert drawn.draw() == []


def test_printed_text_remains_above_the_lines() -> None:
    drawn = Drawn()
    drawn.draw("a", "b")
    assert drawn.print("one\n") == ["one", "a", "b"]
    assert drawn.print("two\nthree\n") == ["one", "two", "three", "a", "b"]
    assert drawn.draw() == ["one", "two", "three"]


def test_nothing_is_drawn_into_an_unfinished_line() -> None:
    drawn = Drawn()
    drawn.draw("a")
    assert drawn.print("one") == ["one"]
    assert drawn.draw("b") == ["one"]
    assert drawn.print(" and two\n") == ["one and two", "b"]


def test_without_lines_text_is_written_unchanged() -> None:
    out = io.StringIO()
    screen = Screen(out, lambda: os.terminal_size((80, 24)))
    screen.draw([])
    assert screen.write(out, "one\n") == 4
    assert out.getvalue() == "one\n"


@pytest.mark.parametrize("columns", [1, 2, 10, 40])
def test_a_line_is_cut_to_the_width(columns: int) -> None:
    drawn = Drawn(columns)
    assert [len(line) for line in drawn.draw("x" * 100, "y" * 100)] in ([columns - 1] * 2, [])
    assert drawn.draw() == []


def test_letters_of_double_width_count_as_two_columns() -> None:
    drawn = Drawn(columns=6)
    assert drawn.draw("注文注文") == ["注文"]


def test_lines_that_a_narrower_window_wrapped_are_removed() -> None:
    drawn = Drawn(columns=40)
    drawn.print("first\n")
    drawn.draw("x" * 100, "y" * 30, "z")
    drawn.resize(15)
    assert len(drawn.terminal.lines) == 1 + 3 + 2 + 1
    assert drawn.draw("a") == ["first", "a"]
    assert drawn.draw() == ["first"]


def test_a_terminal_without_a_known_size_has_80_columns() -> None:
    drawn = Drawn(columns=200)
    drawn.size = os.terminal_size((0, 0))
    assert [len(line) for line in drawn.draw("x" * 300)] == [79]


def test_lines_leave_half_of_the_rows_free() -> None:
    drawn = Drawn(rows=6)
    assert drawn.draw(*"abcde") == ["a", "b", "       3  more statements run"]
    assert drawn.draw(*"abc") == ["a", "b", "c"]


def test_characters_that_the_terminal_cannot_show_are_replaced() -> None:
    assert Drawn(encoding="ascii").draw("préc\tis\x1b[2J") == ["pr?c is [2J"]


def test_a_name_cannot_move_the_cursor() -> None:
    drawn = Drawn()
    drawn.print("first\n")
    assert drawn.draw("a\nb\x1b[5A") == ["first", "a b [5A"]
    assert drawn.draw() == ["first"]


def test_a_stream_next_to_it_is_written_above_the_lines() -> None:
    """Like standard error on the same terminal."""
    drawn = Drawn()
    drawn.draw("a")
    other = _Same(drawn.out)
    drawn.screen.write(other, "warning\n")
    assert drawn.seen() == ["warning", "a"]


class _Same(io.StringIO):
    """Another stream to the same terminal, which writes its buffer when it is flushed."""

    def __init__(self, terminal: io.TextIOWrapper) -> None:
        super().__init__()
        self._terminal = terminal

    def flush(self) -> None:
        self._terminal.write(self.getvalue())
        self.seek(0)
        self.truncate()
