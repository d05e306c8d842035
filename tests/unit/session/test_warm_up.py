"""What is run before the first connection, and that nothing is left of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session import warm_up
from dbt.adapters.silt.session.rehearsal import FIRST, REST, WAREHOUSE, rehearse
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings
from dbt.adapters.silt.session.warm_up import WarmUp
from tests.unit.session.processes import run

SETTINGS = SessionSettings(master="local[2]")


class Started:
    """A Spark that is started by being asked for, with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.allowed = threading.Event()
        self.is_started = False

    def own_folder(self) -> str | None:
        return str(self.folder) if self.is_started else None

    def __call__(self) -> SessionPool:
        assert self.allowed.wait(60)
        self.is_started = True
        return SessionPool(SETTINGS)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started(tmp_path)
    monkeypatch.setattr(warm_up, "own_folder", found.own_folder)
    return found


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How far rehearsals come, without the statements themselves."""
    said: list[str] = []

    def note(_: object, folder: str, texts: tuple[str, ...], goes_on: object) -> None:
        assert callable(goes_on)
        said.extend(text for text in texts if goes_on())

    monkeypatch.setattr(warm_up, "rehearse", note)
    return said


def begun(warm: WarmUp) -> threading.Thread:
    thread = threading.Thread(target=warm.run, daemon=True)
    thread.start()
    return thread


def ended(thread: threading.Thread) -> None:
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.usefixtures("spark")
def test_typical_statements_are_run_once_spark_is_there(started: Started, texts: list[str]) -> None:
    thread = begun(WarmUp(started, SETTINGS))
    started.allowed.set()
    ended(thread)
    assert texts == list(FIRST)


@pytest.mark.usefixtures("spark")
def test_none_begins_after_the_first_connection(started: Started, texts: list[str]) -> None:
    warm = WarmUp(started, SETTINGS)
    thread = begun(warm)
    warm.stop()
    started.allowed.set()
    ended(thread)
    assert started.is_started and texts == []


@pytest.mark.usefixtures("spark")
def test_a_spark_that_runs_already_is_left_as_it_is(started: Started, texts: list[str]) -> None:
    started.is_started = True
    started.allowed.set()
    WarmUp(started, SETTINGS).run()
    assert texts == []


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "settings",
    [
        SessionSettings(remote="sc://127.0.0.1:1"),
        SessionSettings(spark_conf={"spark.eventLog.enabled": "true"}),
        SessionSettings(spark_conf={"spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener"}),
        SessionSettings(spark_conf={"spark.sql.extensions": "some.Extensions"}),
        SessionSettings(spark_conf={"spark.ui.enabled": True}),
    ],
)
def test_what_somebody_watches_is_the_projects_alone(
    started: Started, texts: list[str], settings: SessionSettings
) -> None:
    started.allowed.set()
    WarmUp(started, settings).run()
    assert started.is_started and texts == []


def test_a_spark_that_does_not_start_is_left_to_the_first_connection() -> None:
    def fails() -> SessionPool:
        raise SparkUnavailableError("no Spark")

    with pytest.raises(SparkUnavailableError, match="no Spark"):
        WarmUp(fails, SETTINGS).run()


@pytest.mark.usefixtures("spark")
def test_a_statement_that_fails_is_no_failure_and_leaves_nothing(
    started: Started, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(warm_up, "FIRST", ("create table main.made as select 1 as one", "select no_such_column"))
    started.allowed.set()
    WarmUp(started, SETTINGS).run()
    assert list(tmp_path.iterdir()) == []


def test_every_statement_that_is_rehearsed_works(spark: SparkSession, tmp_path: Path) -> None:
    rehearse(spark.newSession(), str(tmp_path), FIRST + REST)
    assert [each.name for each in tmp_path.iterdir()] == [WAREHOUSE]


ENDS_MEANWHILE = """
import logging, sys, threading
from pathlib import Path
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.session.environment import Environment

began = threading.Event()

class Listener(logging.Handler):
    def emit(self, record):
        if record.getMessage() == "the rehearsal begins":
            began.set()

logger = logging.getLogger("dbt.adapters.silt")
logger.setLevel(logging.DEBUG)
logger.propagate = False
logger.addHandler(Listener())
house = str(Path("house").resolve())
environment = Environment(SiltCredentials(warehouse=house, master="local[1]"), {"silt": house})
threading.Thread(target=environment.warm_up, daemon=True).start()
assert began.wait(120)
"""


def test_a_command_that_ends_meanwhile_leaves_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    done = run(ENDS_MEANWHILE, tmp_path, TMPDIR=str(tmp_path / "temporary"))
    assert (done.stderr, done.stdout, done.returncode) == ("", "", 0)
    left = [each.name for each in (tmp_path / "temporary").iterdir() if each.name.startswith("silt")]
    assert left == []
