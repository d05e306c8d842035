"""Control sequences are escaped wherever another user's text is printed on a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import agate
import pytest
from pyspark.errors import PySparkException

from dbt.adapters.silt.cli import show
from dbt.adapters.silt.cli.output import rendering
from dbt.adapters.silt.cli.output.answers import Answer, Block, Facts, Rows
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, SiltError
from dbt.adapters.silt.runs.text_table import text_table
from dbt.adapters.silt.session.errors import shown
from dbt.adapters.silt.status_lines.line import Running, Stages
from tests.security.attacks import DOORS, Said, changed, put_commit, report, silt, with_two_tables
from tests.unit.cli.house import House

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202egnp\x7f\u200b"
OWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""Colours, and the sequences of a progress bar: a hostile text contains other sequences too."""
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


class Terminal(io.StringIO):
    """A text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def field(name: str, kind: object, comment: str) -> dict[str, object]:
    """Returns a column of a schemaString."""
    return {"name": name, "type": kind, "nullable": True, "metadata": {"comment": comment}}


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A warehouse with a table in which every text is hostile."""
    house = with_two_tables(tmp_path / "house")
    inner = {"type": "struct", "fields": [field(f"in{EVIL}", "long", EVIL)]}
    schema = {"type": "struct", "fields": [field("id", "long", EVIL), field(EVIL, inner, EVIL)]}
    changed(
        house,
        0,
        "metaData",
        id=EVIL,
        name=EVIL,
        description=EVIL,
        schemaString=json.dumps(schema),
        configuration={EVIL: EVIL, f"delta.constraints.c{EVIL}": f"id > 0 {EVIL}"},
    )
    changed(
        house,
        1,
        "commitInfo",
        operation=EVIL,
        engineInfo=EVIL,
        userName=EVIL,
        operationParameters={EVIL: EVIL},
        operationMetrics={EVIL: EVIL},
        dbt={"runId": EVIL, "nodeId": EVIL, "target": EVIL, "invocationId": EVIL},
    )
    put_commit(house, 2, {"txn": {"appId": EVIL, "version": 1, "lastUpdated": 1}})
    return house


def on_terminal(house: House, *arguments: str) -> Said:
    """Runs a command whose output is a terminal."""
    out, err = Terminal(), Terminal()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contextlib, "redirect_stdout", lambda _: contextlib.nullcontext())
        patched.setattr(contextlib, "redirect_stderr", lambda _: contextlib.nullcontext())
        patched.setattr("sys.stdout", out)
        patched.setattr("sys.stderr", err)
        said = silt(house, *arguments)
    return Said(said.code, out.getvalue(), err.getvalue())


ALSO = (
    ("history", "main.hostile", "--json"),
    ("show", "main.hostile", "--json"),
    ("check", "--json"),
    ("runs", "--json"),
    ("run", EVIL),
    ("sql", "select * from main.hostile limit 1"),
    ("show", "main.hostile", "--rows", "--where", f"`{EVIL}` = 1"),
    ("show", "main.hostile", "--columns", EVIL),
    ("show", f"main.{EVIL}"),
    ("show", f"./{EVIL}"),
    ("rollback", EVIL, "--yes"),
)


@pytest.mark.parametrize("door", [*DOORS, *ALSO], ids=lambda door: " ".join(door).encode("unicode_escape").decode())
def test_no_command_prints_hostile_control_sequences(door: tuple[str, ...], house: House) -> None:
    said = silt(house, *door)
    assert not OBEYED.findall(said.all)
    assert "\\x1b" in said.all or "\\u001b" in said.all or not {"show", "history"} & set(door[:1]) or "--rows" in door


@pytest.mark.parametrize("door", [("show", "main.hostile"), ("history", "main.hostile"), ("check",), ("runs",)])
def test_drawn_tables_contain_only_their_own_colours(door: tuple[str, ...], house: House) -> None:
    said = on_terminal(house, *door)
    assert not OBEYED.findall(OWN.sub("", said.all))


def test_the_report_contains_no_control_sequences(house: House, tmp_path: Path) -> None:
    assert not OBEYED.findall(report(house, tmp_path / "page.html").all)


@pytest.mark.parametrize("out", [io.StringIO, Terminal])
def test_the_query_of_a_view_is_printed_without_control_sequences(out: type[io.StringIO]) -> None:
    name = RelationName("silt", "main", "v")
    view = View(name, f"select 1 -- {EVIL}\nfrom\tx", comment=EVIL, properties={EVIL: EVIL}, current_schema=EVIL)
    printed = out()
    rendering.show(show.view_answer(view), as_json=False, out=printed)
    assert not OBEYED.findall(OWN.sub("", printed.getvalue()))
    assert "\\x1b]0;owned" in printed.getvalue()


@pytest.mark.parametrize("out", [io.StringIO, Terminal])
def test_titles_headings_names_and_lines_are_escaped(out: type[io.StringIO]) -> None:
    blocks: list[Block] = [Rows([EVIL], [[EVIL]], EVIL), Rows([EVIL], [], EVIL, EVIL), Facts({EVIL: EVIL}, EVIL), EVIL]
    printed = out()
    rendering.show(Answer({EVIL: EVIL}, blocks), as_json=False, out=printed)
    rendering.show(Answer({EVIL: EVIL}, blocks), as_json=True, out=printed)
    assert not OBEYED.findall(OWN.sub("", printed.getvalue()))


def test_an_error_is_escaped_and_keeps_its_lines() -> None:
    error = InvalidStatementError(f"a\n\tb {EVIL}", remedy=EVIL, table=EVIL)
    assert not OBEYED.findall(str(error))
    assert "a\n\tb \\x1b]0;owned" in str(error)
    assert isinstance(error, SiltError) and EVIL in error.problem  # a program gets the text unchanged


def test_dbt_prints_sparks_errors_and_statements_escaped() -> None:
    assert not OBEYED.findall(shown(PySparkException(f"[CAST] the value '{EVIL}' is no number")))
    assert not OBEYED.findall(shown(InvalidStatementError(EVIL)))
    assert not OBEYED.findall(Running(EVIL, "select 1", 0).line(1, Stages(1, 2), EVIL))
    assert not OBEYED.findall(text_table(agate.Table([[EVIL, EVIL]], [EVIL, "b"])))
    assert not OBEYED.findall(text_table(agate.Table([[EVIL], [EVIL]], [EVIL])))
