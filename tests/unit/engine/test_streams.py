"""Structured Streaming: `foreachBatch` writes each batch once."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tests.unit.engine.house import House

EXAMPLE = Path(__file__).parents[3] / "examples" / "stream.py"
ADD_UP = """
    merge into totals using (select count(*) as n from batch) as new on true
    when matched then update set n = totals.n + new.n when not matched then insert *
"""

in_this_process = pytest.mark.skipif(
    "config.getoption('--connect')", reason="Spark Connect runs foreachBatch in a process of its own, without the house"
)


class Stream:
    """A stream with one file of five rows a batch, which a given function writes."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.landing = house.root.parent / "landing"  # a path that Spark does not take for a pattern
        self.landing.mkdir()

    def land(self, file: int) -> None:
        rows = [{"id": 5 * file + row} for row in range(5)]
        (self.landing / f"{file:02}.json").write_text("\n".join(map(json.dumps, rows)))

    def run(self, write: Callable[[DataFrame, int], None], checkpoint: str = "checkpoint") -> None:
        """Processes all files that have arrived."""
        stream = self.house.warehouse.spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1)
        (
            stream.json(str(self.landing))
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(self.house.root.parent / checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )


@pytest.fixture
def stream(house: House) -> Stream:
    house.sql("create table totals (n bigint)")
    return Stream(house)


@in_this_process
def test_a_stream_that_fails_between_two_tables_resumes_with_the_missing_table(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """Each batch opens the warehouse in its own session; the test reads the same folder through another session
    meanwhile.
    """
    house, fails_in = stream.house, [1]
    caplog.set_level(logging.INFO, "dbt.adapters.silt")
    counts: list[int] = []

    def write(batch: DataFrame, batch_id: int) -> None:
        warehouse = house.place.warehouse(batch.sparkSession)
        before = house.warehouse.table("rows").count() if batch_id else 0
        warehouse.write(batch, "rows", txn=("stream", batch_id))
        counts.append(house.warehouse.table("rows").count() - before)
        if batch_id in fails_in:
            fails_in.remove(batch_id)
            raise ConnectionError("the network is gone")
        batch.createOrReplaceTempView("batch")
        warehouse.sql(ADD_UP, txn=("stream", batch_id))

    for file in range(2):
        stream.land(file)
    with pytest.raises(StreamingQueryException, match="the network is gone"):
        stream.run(write)
    assert (house.rows("select count(*) from rows"), house.rows("select n from totals")) == ([(10,)], [(5,)])
    stream.land(2)
    stream.run(write)
    assert house.rows("select id from rows") == sorted(((id_,) for id_ in range(15)), key=repr)
    assert house.rows("select n from totals") == [(15,)]
    assert counts == [5, 5, 0, 5]
    skips = [each.getMessage() for each in caplog.records if "skipped" in each.getMessage()]
    assert skips == ["skipped: version 1 of the app id stream is already applied to silt.main.rows, by v1"]


@in_this_process
def test_a_new_checkpoint_without_a_new_application_id_is_warned_about(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    house = stream.house

    def write_as(app_id: str) -> Callable[[DataFrame, int], None]:
        warehouse = house.warehouse

        def write(batch: DataFrame, batch_id: int) -> None:
            seen = warehouse.for_session(batch.sparkSession)
            seen.write(batch, "rows", txn=(app_id, batch_id))

        return write

    for file in range(3):
        stream.land(file)
    stream.run(write_as("first"))
    caplog.clear()
    stream.run(write_as("first"), "another-checkpoint")
    assert house.rows("select count(*) from rows") == [(15,)]
    (warning,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "holds version 2 of the app id first, and version 0 came after it" in warning
    stream.run(write_as("second"), "a-third-checkpoint")
    assert house.rows("select count(*) from rows") == [(30,)]
    assert {app_id: house.warehouse.transaction_version("rows", app_id) for app_id in ("first", "second")} == {
        "first": 2,
        "second": 2,
    }


@pytest.fixture(scope="module")
def after_the_kill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the example's job, whose process was killed between the two writes of batch 5."""
    folder = tmp_path_factory.mktemp("example") / "job"
    land = "import pathlib, runpy, sys; runpy.run_path(sys.argv[1])['land'](pathlib.Path(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", land, str(EXAMPLE), str(folder)], env=_environment(), check=True)
    done = start(folder, "--crash-in", "5")
    assert done.returncode == -signal.SIGKILL, done.stderr
    shutil.copytree(folder, folder.with_name("kept"))
    return folder


@pytest.fixture
def killed(after_the_kill: Path) -> Path:
    """The folder after the kill, at its original path: a checkpoint holds the paths of a batch's files."""
    shutil.rmtree(after_the_kill)
    shutil.copytree(after_the_kill.with_name("kept"), after_the_kill)
    assert counts(after_the_kill) == (60, 50)
    return after_the_kill


@pytest.mark.long
def test_the_example_that_is_killed_between_its_tables_and_resumed_has_each_row_once(killed: Path) -> None:
    done = start(killed)
    assert done.returncode == 0, done.stderr
    assert counts(killed) == (100, 100)
    assert "at the start: orders has 60 rows, customers counts 50" in done.stdout
    assert "at the end: orders has 100 rows, customers counts 100" in done.stdout
    assert "skipped: version 5 of the app id orders-stream is already applied to silt.main.orders" in done.stderr


@pytest.mark.long
def test_the_same_example_without_transaction_identifiers_has_ten_rows_twice(killed: Path) -> None:
    done = start(killed, "--without-txn")
    assert done.returncode == 0, done.stderr
    assert counts(killed) == (110, 100)


def start(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Starts the example's job in its own process group, which it may kill."""
    return subprocess.run(
        [sys.executable, str(EXAMPLE), "run", str(folder), *arguments],
        env=_environment(),
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=900,
        check=False,
    )


def counts(folder: Path) -> tuple[int, int]:
    """Returns the rows of `orders`, and the sum of the customers' counts, as another engine reads them."""
    orders, customers = (
        DeltaTable(str(folder / "warehouse" / "main" / table)).to_pyarrow_table() for table in ("orders", "customers")
    )
    return orders.num_rows, sum(customers["orders"].to_pylist())


def _environment() -> dict[str, str]:
    # Quick compilation matters more than quick code: the job is short.
    root = os.pathsep.join((str(EXAMPLE.parents[1]), os.environ.get("PYTHONPATH", "")))
    own = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_CONNECT_")}
    return own | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "PYTHONPATH": root}
