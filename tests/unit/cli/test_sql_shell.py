"""The shell of `silt sql`, typed on a terminal."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.cli.shell import prompt
from dbt.adapters.silt.cli.shell.prompt import Completer, is_whole
from dbt.adapters.silt.engine.answers.sessions import Names
from tests.shells import SECONDS, Typing, typing
from tests.unit.cli.house import House, rows


@pytest.fixture
def shell(house: House, tmp_path: Path) -> Iterator[Typing]:
    """A shell on a warehouse with a table of 30 rows."""
    house.create("main.orders", rows(0, 30))
    with typing(tmp_path, tmp_path / "state", "--warehouse", str(house.folder)) as begun:
        yield begun


def test_a_statement_of_several_lines_is_answered_and_added_to_the_history(shell: Typing, tmp_path: Path) -> None:
    assert "   -> " in shell.type("select count(*) as n\n", until="   -> ")
    assert "\n30\n(1 row)\n" in shell.type("from orders;\n")
    file = tmp_path / "state" / "silt" / "sql_history"
    assert file.read_text() == "select count(*) as n from orders;\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "30" in shell.type("\x1b[A\n")  # the up-arrow key


def test_the_tab_key_completes_tables_and_columns(shell: Typing) -> None:
    assert "name 7" in shell.type("select name from main.ord\t where name = 'name 7';\n")
    assert "name 8" in shell.type("select name from orders where orders.na\t = 'name 8';\n")


def test_ctrl_c_discards_the_input_and_ctrl_d_ends_the_shell(shell: Typing) -> None:
    shell.type("select broken\n", until="   -> ")
    shell.interrupt()
    assert "(1 row)" in shell.type("select count(*) from orders;\n")
    shell.type("\x04", until="\n")
    assert shell.process.wait(SECONDS) == 0


def test_the_shell_continues_after_an_error(shell: Typing) -> None:
    assert "the table or view does not exist" in shell.type("select id from ordrs;\n")
    assert "Ctrl-D ends the shell" in shell.type("help\n")
    assert "orders  table" in shell.type("\\d\n")
    assert "price   decimal(12,2)" in shell.type("\\d orders\n")
    assert "unknown command \\x" in shell.type("\\x\n")
    shell.type("quit;\n", until="\n")
    assert shell.process.wait(SECONDS) == 0


@pytest.mark.parametrize(
    ("typed", "word", "found"),
    [
        ("select * from ", "or", ["orders", "or", "order"]),
        ("select * from ", "main.o", ["main.orders"]),
        ("select * from ", "silt.m", ["silt.main"]),
        ("select * from orders where ", "pr", ["price"]),
        ("select * from orders o where ", "o.pr", ["o.price"]),
        ("select * from main.orders as x where ", "x.", ["x.id", "x.name", "x.price", "x.sold"]),
        ("", "SEL", ["SELECT"]),
        ("select * from missing where ", "missing.a", []),
    ],
)
def test_completions_depend_on_the_preceding_text(house: House, typed: str, word: str, found: list[str]) -> None:
    house.create("main.orders", rows(0, 1))
    assert Completer(lambda: Names(house.catalog, "silt", "main"), lambda: typed + word).candidates(word) == found


def test_a_semicolon_in_a_string_or_a_comment_does_not_end_a_statement() -> None:
    assert is_whole("select ';';") and is_whole("select 1; -- done")
    assert not is_whole("select ';") and not is_whole("select 1 -- ;") and not is_whole("select 1 /* ; */")


def test_a_statement_with_significant_line_breaks_is_not_joined() -> None:
    assert prompt.as_one_line("select 1\n  , 2;") == "select 1 , 2;"
    assert prompt.as_one_line("select 1 -- one\n, 2;") is None
    assert prompt.as_one_line("select 'a\nb';") is None
