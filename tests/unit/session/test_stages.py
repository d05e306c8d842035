"""Spark's progress with the statements of a session."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.session.stages import EmbeddedSpark, ProgressHandler, by_tag, stages_of
from dbt.adapters.silt.status_lines.line import Stages

ENDLESS = "select count(*) from range(0, 100000000000000, 1, 40) where hash(id) = 0"


@pytest.mark.connect(gate=True)
def test_the_tasks_of_a_running_statement_are_reported_and_dropped_after_it(spark: SparkSession) -> None:
    session = spark.newSession()
    stages = stages_of(session)
    assert stages() == Stages()
    with ThreadPoolExecutor(1) as thread:
        endless = thread.submit(lambda: session.sql(ENDLESS).collect())
        deadline = time.monotonic() + 300
        while stages().tasks < 40 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert stages().tasks >= 40
        session.interruptAll()
        with pytest.raises(SPARKS):
            endless.result(timeout=300)
    while stages().tasks and time.monotonic() < deadline:
        time.sleep(0.2)
    assert stages() == Stages()


def test_a_session_does_not_see_the_jobs_of_another_session(spark: SparkSession) -> None:
    here, other = spark.newSession(), spark.newSession()
    stages = stages_of(here), stages_of(other)
    with ThreadPoolExecutor(1) as thread:
        endless = thread.submit(lambda: here.sql(ENDLESS).collect())
        deadline = time.monotonic() + 300
        while not stages[0]().tasks and time.monotonic() < deadline:
            time.sleep(0.2)
        assert (stages[0]().tasks > 0, stages[1]()) == (True, Stages())
        here.interruptAll()
        with pytest.raises(SPARKS):
            endless.result(timeout=300)


def test_all_sessions_share_one_request_to_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    asked = EmbeddedSpark(spark.sparkContext, lambda: now[0])
    answers: list[float] = []
    monkeypatch.setattr(asked, "_answer", lambda: answers.append(now[0]) or ([], []))  # type: ignore[func-returns-value]
    stages = [asked.of(spark.newSession()) for _ in range(3)]
    for now[0] in (10.0, 10.1, 11.0):
        assert [each() for each in stages] == [Stages()] * 3
    assert answers == [10.0, 11.0]


def test_a_spark_that_cannot_report_progress_is_not_asked_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, times = EmbeddedSpark(spark.sparkContext, lambda: float(len(times) * 10)), []

    def refuse() -> None:
        times.append(1)
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr(asked, "_answer", refuse)
    stages = asked.of(spark)
    assert [stages(), stages()] == [Stages(), Stages()]
    assert times == [1]


def test_the_jobs_of_a_tag_are_summed_up_with_the_rows_that_their_stages_read() -> None:
    def job(tags: list[str], stages: list[int], done: int, tasks: int) -> dict[str, object]:
        return {
            "jobTags": tags,
            "stageIds": stages,
            "numTasks": tasks,
            "numCompletedTasks": done,
            "numSkippedTasks": 2,
        }

    def stage(number: int, read: int, shuffled: int, written: int) -> dict[str, int]:
        return {
            "stageId": number,
            "inputRecords": read,
            "shuffleReadRecords": shuffled,
            "outputRecords": written,
            "shuffleWriteRecords": 0,
            "inputBytes": 10 * read,
        }

    jobs = [job(["a", "a-1"], [1, 2], 3, 10), job(["a"], [3], 1, 6), job(["b"], [9], 0, 3)]
    stages = [stage(1, 100, 7, 5), stage(3, 0, 0, 5)]
    found = by_tag(jobs, stages)
    assert found["a"] == Stages(tasks_done=4, tasks=12, rows=112, size=1000)
    assert found["b"] == Stages(tasks=1)


@dataclass(frozen=True)
class OneStage:
    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int


def test_concurrent_operations_of_a_server_are_summed_up_until_each_is_done() -> None:
    handler = ProgressHandler()
    handler([OneStage(10, 4, 100), OneStage(5, 0, 0)], 2, "a", False)  # type: ignore[list-item]
    handler([OneStage(3, 1, 50)], 1, "b", False)  # type: ignore[list-item]
    assert handler.stages() == Stages(tasks_done=5, tasks=18, size=150)
    handler([OneStage(10, 4, 100)], 0, "a", True)  # type: ignore[list-item]
    assert handler.stages() == Stages(tasks_done=1, tasks=3, size=50)
    handler(None, 0, "b", True)
    assert handler.stages() == Stages()
