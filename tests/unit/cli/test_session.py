"""`silt session stop`: which Sparks it stops, and when it asks."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.cli import session
from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.kept_spark.leases import Use
from dbt.adapters.silt.kept_spark.listing import KeptSpark
from tests.unit.kept_spark.house import record


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two Sparks, `aaa` of the current project and `bbb` of another; returns the ids of those that were stopped."""
    project = tmp_path / "shop"
    (project / "models").mkdir(parents=True)
    monkeypatch.chdir(project)
    found: list[str] = []
    own = KeptSpark(tmp_path / "aaa", replace(record(), folder=str(project)), (), 1.0)
    user = Use(77, "dbt build", 60.0, 1.0)
    other = KeptSpark(tmp_path / "bbb", replace(record(), folder=str(tmp_path / "other")), (user,), None)
    monkeypatch.setattr(session, "running", lambda: [own, other])
    monkeypatch.setattr(session, "stop", lambda spark, force: found.append(spark.name))
    monkeypatch.setattr(session.control, "stop", lambda: found.append("servers") or 1)  # type: ignore[attr-defined, func-returns-value]
    return found


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("arguments", [["stop", "bb"], ["stop", "--id", "bb"]])
def test_a_spark_is_stopped_by_the_beginning_of_its_id(stopped: list[str], arguments: list[str]) -> None:
    assert main(["session", *arguments]) == 0
    assert stopped == ["bbb"]


def test_an_unknown_id_stops_nothing(stopped: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "stop", "ccc"]) == 2
    assert "The kept Sparks are: aaa, bbb" in capsys.readouterr().err and stopped == []


def test_without_a_terminal_sparks_of_other_projects_are_not_stopped_unasked(
    stopped: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["session", "stop"]) == 2
    said = capsys.readouterr().err
    assert "bbb of " in said and "`dbt build` (process 77)" in said and "aaa" not in said and "--yes" in said
    assert stopped == []
    assert main(["session", "stop", "--yes"]) == 0
    assert stopped == ["servers", "aaa", "bbb"]


@pytest.mark.parametrize(("answer", "code", "all_stopped"), [("y\n", 0, True), ("\n", 1, False), ("", 1, False)])
def test_on_a_terminal_it_asks_before_it_stops_sparks_of_other_projects(
    stopped: list[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int, all_stopped: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert main(["session", "stop"]) == code
    assert stopped == (["servers", "aaa", "bbb"] if all_stopped else [])


def test_the_sparks_of_the_own_project_are_stopped_without_a_question(
    stopped: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [own, _] = session.running()  # type: ignore[attr-defined]
    monkeypatch.setattr(session, "running", lambda: [own])
    monkeypatch.chdir("models")
    assert main(["session", "stop", "--json"]) == 0
    assert stopped == ["servers", "aaa"]
    assert json.loads(capsys.readouterr().out) == {"stopped": ["aaa"], "command_servers_stopped": 1}
