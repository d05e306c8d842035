"""Errors for failures of Spark that neither the statement nor the data causes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark.errors import mapped
from dbt.adapters.silt.engine.kernel.errors import (
    DataFileMissingError,
    DataRejectedError,
    NoSpaceError,
    ReadOnlyStorageError,
    SparkEndedError,
    SparkFailedError,
    StorageError,
    TableDamagedError,
)

pytestmark = pytest.mark.skipif("config.getoption('--connect')", reason="makes exceptions of Java's own")
ROOT = Path(__file__).parents[6]


def thrown(spark: SparkSession, *chain: tuple[str, str]) -> Py4JJavaError:
    """Returns the Python exception for the first of the Java exceptions, each caused by the next."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    java = None
    for name, message in reversed(chain):
        made = jvm
        for part in name.split("."):
            made = getattr(made, part)
        new = made(message)
        if java is not None:
            new.initCause(java)
        java = new
    error = Py4JJavaError.__new__(Py4JJavaError)
    Py4JError.__init__(error, "An error occurred while calling o153.parquet.\n")
    error.errmsg, error.java_exception, error.exception_cmd = "An error occurred", java, ""
    return error


ABORTED = ("java.lang.RuntimeException", "Job aborted due to stage failure")
FAILED = ("java.lang.RuntimeException", "Task failed while writing rows")


@pytest.mark.parametrize(
    ("root", "kind", "said"),
    [
        (("java.io.IOException", "No space left on device"), NoSpaceError, "No space left on device). Free space"),
        (("java.io.IOException", "Disk quota exceeded"), NoSpaceError, "Disk quota exceeded). Free space"),
        (("java.io.IOException", "/x: Read-only file system"), ReadOnlyStorageError, "/x: Read-only file system)"),
        (("java.nio.file.NoSuchFileException", "/tmp/blockmgr"), StorageError, "NoSuchFileException: /tmp/blockmgr)"),
        (("java.lang.OutOfMemoryError", "Java heap space"), SparkFailedError, "`spark.driver.memory`"),
        (
            (
                "java.lang.IllegalStateException",
                "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:",
            ),
            SparkEndedError,
            "Spark was stopped while a statement used it",
        ),
        (
            ("org.apache.spark.SparkException", "Job 3 cancelled because SparkContext was shut down"),
            SparkEndedError,
            "stopped",
        ),
        (("java.lang.IllegalStateException", "no such stage\nat all"), SparkFailedError, "no such stage)"),
    ],
)
def test_the_last_cause_of_a_java_exception_is_reported(
    spark: SparkSession, root: tuple[str, str], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as caught, mapped("silt.main.orders"):
        raise thrown(spark, ABORTED, FAILED, root)
    assert type(caught.value) is kind
    assert said in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_spark_connect_server_that_is_being_stopped_is_reported_as_ended() -> None:
    with pytest.raises(SparkEndedError, match=r"Spark was stopped .* run `dbt retry`"), mapped("silt.main.orders"):
        raise SparkConnectGrpcException(
            "(java.lang.IllegalStateException) Cannot call methods on a stopped SparkContext.\nThis stopped one"
        )


def test_errors_in_the_data_are_reported_in_sparks_words_without_its_stack_trace(spark: SparkSession) -> None:
    frame = spark.range(3).selectExpr("id / 0 as x")
    with pytest.raises(DataRejectedError, match=r"^\[SILT_DATA_REJECTED\] \[DIVIDE_BY_ZERO\] ") as caught, mapped():
        frame.write.format("noop").mode("overwrite").save()
    assert "\n" not in str(caught.value) and "SQLSTATE" not in str(caught.value)


def test_a_wrong_call_of_a_pyspark_method_raises_a_python_error(spark: SparkSession) -> None:
    with pytest.raises(TypeError), mapped():
        spark.range(3).select(object())  # type: ignore[call-overload]


def test_a_failure_inside_py4j_is_never_raised_directly(spark: SparkSession) -> None:
    with pytest.raises(SparkFailedError, match="Spark did not answer"), mapped():
        spark.sparkContext._jsc.there_is_no_such_method()


def test_a_damaged_data_file_is_named_even_below_other_causes(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).coalesce(1).write.parquet(str(tmp_path / "files"))
    frame = spark.read.schema("id bigint").parquet(str(tmp_path / "files"))
    [file] = (tmp_path / "files").glob("part-*")
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(TableDamagedError, match=file.name), mapped():
        frame.write.parquet(str(tmp_path / "copy"))
    file.unlink()
    with pytest.raises(DataFileMissingError, match=file.name), mapped():
        frame.write.parquet(str(tmp_path / "another"))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "kill -9 $$",
            "was killed (SIGKILL), most likely by the system because memory ran out. Let it use less memory",
        ),
        ("kill -15 $$", "was stopped on request (SIGTERM). Run it again."),
        ("exit 143", "was stopped on request (SIGTERM). Run it again."),
        ("kill -11 $$", "was ended by SIGSEGV; a likely reason is memory. Give Spark more memory"),
        ("exit 52", "ended with exit code 52: out of memory. Give Spark more memory (`spark.driver.memory`"),
        ("exit 1", "ended with exit code 1 (unknown); a likely reason is memory."),
    ],
)
@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "refused"), Py4JError("no answer"), EOFError()])
def test_a_spark_whose_process_ended_is_reported_with_its_exit_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch, code: str, said: str, error: Exception
) -> None:
    process = subprocess.Popen(["/bin/sh", "-c", code])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    with pytest.raises(SparkEndedError) as caught, mapped():
        raise error
    assert f"Spark's Java process {said}" in str(caught.value)


def test_a_failed_connection_of_another_program_is_not_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(ConnectionRefusedError), mapped():
        raise ConnectionRefusedError(111, "Connection refused")


KILLED = """
import json, os, signal, sys, threading
from pyspark import SparkContext
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session
spark = open_session(SessionSettings(master="local[1]", spark_conf={"spark.driver.memory": "1g"}))
warehouse = Warehouse(spark, sys.argv[1])
warehouse.sql("create table orders as select 1 as id")
java = SparkContext._gateway.proc
threading.Timer(1, lambda: os.kill(java.pid, signal.SIGKILL)).start()
said = []
endless = "insert into orders select cast(id as int) from range(100000000000000) where hash(id) = 0"
for text in (endless, "insert into orders select 2", "select * from orders"):
    try:
        warehouse.sql(text)
    except SiltError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def test_a_warehouse_whose_spark_is_killed_reports_it_for_every_later_statement(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = json.loads(done.stdout)
    assert len(said) == 3 and len(set(said)) == 1
    assert said[0].startswith("[SILT_SPARK_ENDED] Spark's Java process was killed (SIGKILL)")
