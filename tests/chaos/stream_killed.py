"""Runs a stream between tables with `format("silt")`, in a process that is killed with its Spark at a given moment.

stream_killed WAREHOUSE CHECKPOINT

Python processes that Spark starts write and commit rows. So each child process watches itself (`watch`, called by
`sitecustomize.py` on its path), and the process that reaches the moment kills all processes. This process must be the
leader of its own process group.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.chaos.steps import Places

VARIABLE = "SILT_STREAM_KILLED_AT"
PART, TIDY = "PART", "TIDY"
"""PART: before a data file gets its name. TIDY: a listing after the commit, before Spark has an answer."""
SITE = "from tests.chaos import stream_killed\nstream_killed.watch()\n"
_EVENTS = frozenset(("open", "os.link", "os.rename", "os.remove", "os.scandir", "os.listdir"))
_PART = re.compile(r"part-[^/]*\.parquet$")


@dataclass(frozen=True)
class Moment:
    """The moment at which all processes are killed: the n-th occurrence of a step in any of them.

    Attributes:
        step: the name of a `Step`, or PART, or TIDY.
        report: the file that has a line for each step.
    """

    step: str
    n: int
    report: str


def watch() -> None:
    """Starts the watch in this process if its environment contains a moment."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        moment, places = Moment(**json.loads(given)), _Watched()
        sys.addaudithook(lambda event, arguments: _hear(moment, places, event, arguments))


class _Watched:
    def __init__(self) -> None:
        self._places = Places()
        self._has_committed = False

    def step(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        """Returns the step of an audit event, or None."""
        if event in ("os.scandir", "os.listdir"):
            return TIDY if self._has_committed else None
        if event in ("os.link", "os.rename") and _PART.search(str(arguments[1])):
            return PART
        found = self._places.step(event, arguments)
        self._has_committed = self._has_committed or (found is not None and found.name == "LINKED")
        return None if found is None else found.name


def _hear(moment: Moment, watched: _Watched, event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS and watched.step(event, arguments) == moment.step:
        file = os.open(moment.report, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, b".")
        reached = os.fstat(file).st_size
        os.close(file)
        if reached == moment.n:
            os.killpg(int(os.environ["SILT_STREAM_GROUP"]), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


def variables(moment: Moment | None) -> dict[str, str]:
    """Returns the environment variables for a kill at a moment, or no variables if moment is None."""
    return {} if moment is None else {VARIABLE: json.dumps(asdict(moment))}


def main(warehouse: str, checkpoint: str) -> None:
    """Streams the new rows of `main.source` to `main.target`, one file in each batch."""
    assert os.getpgrp() == os.getpid(), "it is killed as a process group: give it one of its own"
    os.environ["SILT_STREAM_GROUP"] = str(os.getpid())
    from pyspark.sql import SparkSession  # the processes that watch need no Spark

    from dbt.adapters.silt import engine as silt

    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()  # type: ignore[arg-type]
    silt.DataSource.register(spark)
    source = spark.readStream.format("silt").option("warehouse", warehouse).option("maxFilesPerTrigger", 1)
    writer = source.load("main.source").writeStream.format("silt").option("warehouse", warehouse)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start("main.target")
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(str(Path(sys.argv[1])), sys.argv[2])
