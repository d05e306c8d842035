"""A command that starts a Spark next to a kept Spark of its folder says which of its settings differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.kept_spark import passed_over
from dbt.adapters.silt.kept_spark.inherited_environment import name_of
from dbt.adapters.silt.kept_spark.watch import RECORD
from tests.unit.kept_spark.house import Starts, record

SETTINGS: Mapping[str, object] = {"master": "local[2]", "spark_conf": {"spark.driver.memory": "2g"}}
INHERITED: Mapping[str, object] = {"environment": {"TZ": "UTC", "AWS_SECRET_ACCESS_KEY": "hunter2"}, "umask": 18}
NAME = name_of(SETTINGS, INHERITED)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a kept Spark with `SETTINGS`, which a command in the current folder has started."""
    base = tmp_path / "spark"
    starts = Starts()
    base.mkdir(mode=0o700)
    starts.attach(base / NAME)
    replace(record(), folder=str(tmp_path)).write(base / NAME / RECORD)
    passed_over.note_parts(base / NAME, SETTINGS, INHERITED)
    monkeypatch.chdir(tmp_path)
    yield base
    starts.kill()


def reason(base: Path, is_kept: bool = True, **changed: object) -> str | None:
    """Returns the reason for a command with changed settings, or parts of its environment."""
    settings = {name: changed.get(name, value) for name, value in SETTINGS.items()}
    inherited = {name: changed.get(name, value) for name, value in INHERITED.items()}
    return passed_over.reason(base, name_of(settings, inherited), settings, inherited, is_kept)


def test_a_command_that_uses_the_kept_spark_says_nothing(base: Path) -> None:
    assert reason(base) is None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"master": "local[4]"}, "`master`"),
        ({"spark_conf": {"spark.driver.memory": "4g"}}, "`spark_conf: spark.driver.memory`"),
        ({"spark_conf": {}}, "`spark_conf: spark.driver.memory`"),
        ({"environment": {"TZ": "CET", "AWS_SECRET_ACCESS_KEY": "hunter2"}}, "the variable TZ"),
        ({"environment": {"TZ": "UTC"}, "umask": 23}, "the umask, the variable AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_the_settings_that_differ_are_named(base: Path, changed: Mapping[str, Any], named: str) -> None:
    said = reason(base, **changed)
    assert said == f"Another Spark starts next to the kept Spark {NAME} of this folder: it has another value of {named}"


def test_a_target_without_keep_alive_says_so(base: Path) -> None:
    assert str(reason(base, is_kept=False)).endswith(": this target has no `keep_alive`")
    said = str(reason(base, is_kept=False, master="local[4]"))
    assert said.endswith(": this target has no `keep_alive`; it has another value of `master`")


def test_a_spark_of_another_folder_is_not_mentioned(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base)
    assert reason(base, master="local[4]") is None


def test_what_a_spark_is_made_of_is_recorded_without_values(base: Path) -> None:
    files = [each.read_text() for each in (base / NAME).glob("parts.json")]
    assert files and not any("hunter2" in each or "2g" in each for each in files)
