"""Sessions are isolated, have the required settings, print nothing, and are refused if they are impossible."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.commands.spark import session_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SparkUnavailableError
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings, open_session
from tests.unit.session.processes import run

SETTINGS = SessionSettings(master="local[2]")


@pytest.mark.usefixtures("spark")
def test_each_session_has_its_own_views_variables_and_settings() -> None:
    pool = SessionPool(SETTINGS)
    first = pool.acquire()
    first.range(1).createOrReplaceTempView("mine")
    first.sql("declare variable mine int default 1")
    first.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    pool.release(first)
    second = pool.acquire()
    assert second is not first
    with pytest.raises(AnalysisException):
        second.table("mine")
    with pytest.raises(AnalysisException):
        second.sql("select mine")
    assert second.conf.get("spark.sql.session.timeZone") != "Asia/Tokyo"


@pytest.mark.usefixtures("spark")
def test_every_session_has_the_settings_required_for_correctness() -> None:
    session = open_session(SETTINGS)
    assert {key: session.conf.get(key) for key in session_settings.required()} == session_settings.required()
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    assert open_session(SETTINGS).conf.get("spark.sql.files.ignoreMissingFiles") == "false"


@pytest.mark.usefixtures("spark")
def test_the_users_settings_take_precedence_over_the_defaults() -> None:
    conf = {"spark.sql.shuffle.partitions": "3", "spark.sql.sources.parallelPartitionDiscovery.threshold": "9"}
    session = open_session(SessionSettings(master="local[2]", spark_conf=conf))
    assert {key: session.conf.get(key) for key in conf} == conf


def test_a_setting_that_would_make_tables_wrong_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"spark\.sql\.files\.ignoreMissingFiles"):
        open_session(SessionSettings(spark_conf={"spark.sql.files.ignoreMissingFiles": "true"}))


@pytest.mark.usefixtures("spark")
def test_a_setting_may_repeat_a_required_value() -> None:
    # Passes if no error is raised.
    open_session(SessionSettings(master="local[2]", spark_conf={"spark.sql.caseSensitive": "False"}))


@pytest.mark.usefixtures("spark")
def test_a_setting_that_only_a_new_spark_can_have_is_refused_if_spark_is_running() -> None:
    conf = {"spark.driver.memory": "17g"}
    with pytest.raises(InvalidSettingError, match=r"sets spark\.driver\.memory to 17g, but the running Spark"):
        open_session(SessionSettings(master="local[2]", spark_conf=conf))


@pytest.mark.usefixtures("spark")
def test_each_thread_gets_its_own_session() -> None:
    pool = SessionPool(SETTINGS)
    found: list[SparkSession] = []
    threads = [threading.Thread(target=lambda: found.append(pool.acquire())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(session) for session in found}) == 4


@pytest.mark.usefixtures("spark")
def test_a_failing_statement_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AnalysisException):
        open_session(SETTINGS).sql("select nothing_of_that_name")
    assert capfd.readouterr() == ("", "")


STARTS_AND_WORKS = """
import inspect, json, logging, pandas, pyspark.sql.pandas.utils
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark
conf = {
    "spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-Dof.the=user", "spark.sql.ansi.enabled": False,
}
session = open_session(SessionSettings(master="local[1]", spark_conf=conf))
session.sql("create table plain as select 1 as x")
try:
    session.sql("select nothing")
except Exception:
    pass
again = open_session(SessionSettings(master="local[1]", spark_conf=conf))
try:
    open_session(SessionSettings(master="local[2]"))
except Exception as error:
    refused = str(error)
values = {key: again.conf.get(key) for key in (
    "spark.driver.memory", "spark.driver.extraJavaOptions", "spark.sql.ansi.enabled", "spark.sql.shuffle.partitions",
    "spark.sql.caseSensitive", "spark.ui.enabled")}
rows = [tuple(row) for row in again.sql("select * from plain").collect()]
if "fully support pandas" in inspect.getsource(pyspark.sql.pandas.utils):
    pandas.__version__ = "3.0.0"  # of which it warns
again.sql("select 1 as x").toPandas()
again.createDataFrame(pandas.DataFrame({"x": [1]})).toArrow()
stop_spark()
print(json.dumps({"values": values, "rows": rows, "refused": refused}))
"""


def test_an_embedded_spark_starts_quietly_and_leaves_no_files_in_the_working_directory(tmp_path: Path) -> None:
    done = run(STARTS_AND_WORKS, tmp_path)
    assert done.stderr == ""
    printed = json.loads(done.stdout)
    assert printed["rows"] == [[1]]
    assert "this process already runs Spark on local[1]" in printed["refused"]
    assert printed["values"].pop("spark.driver.extraJavaOptions").endswith(" -Dof.the=user")
    assert printed["values"] == {
        "spark.driver.memory": "1g",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.caseSensitive": "false",
        "spark.ui.enabled": "false",
    }
    assert os.listdir(tmp_path) == []


WRITES_FOR_A_GROUP = """
import os
from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.session.spark import SessionSettings, open_session
os.umask(0o007)
warehouse = Warehouse(open_session(SessionSettings(master="local[1]")), "warehouse")
warehouse.sql("create table orders partitioned by (day) as select 1 as id, 'monday' as day")
"""


def test_group_members_may_write_sparks_files_if_the_umask_allows_it(tmp_path: Path) -> None:
    run(WRITES_FOR_A_GROUP, tmp_path)
    made = [each for each in tmp_path.rglob("*") if each.name != ".silt.lock"]
    modes = {each.relative_to(tmp_path).as_posix(): each.stat().st_mode & 0o777 for each in made}
    assert sum(name.endswith(".parquet") for name in modes) == 1
    assert {name: oct(mode) for name, mode in modes.items() if mode not in (0o770, 0o660)} == {}


FAILS_TO_START = """
from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session.spark import SessionSettings, open_session
for settings in (
    SessionSettings(master="nowhere"),
    SessionSettings(master="local[1]", spark_conf={"spark.driver.memory": "much"}),
):
    try:
        open_session(settings)
    except SparkUnavailableError as error:
        print(error)
"""


def test_the_error_of_a_spark_that_does_not_start_states_the_reason(tmp_path: Path) -> None:
    done = run(FAILS_TO_START, tmp_path)
    master, memory = done.stdout.splitlines()
    assert "Spark did not start on nowhere (Master must" in master
    assert "Spark did not start on local[1] (Invalid" in memory and "much" in memory
    assert memory.endswith("Check `master` and `spark_conf` in the profile, and that the machine has free memory.")
    assert done.stderr == ""


def test_java_is_checked_before_it_is_started(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    done = run(FAILS_TO_START, tmp_path, JAVA_HOME=str(tmp_path))
    assert [line.partition(") is version ")[2] for line in done.stdout.splitlines()] == [
        "11, but Spark needs 17 or later. Install Java 17 or later, and set JAVA_HOME or PATH to it."
    ] * 2


def test_a_missing_connect_server_is_reported_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        remote = f"sc://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(SparkUnavailableError, match=f"{remote} cannot be reached .*Check `remote` in the profile"):
        open_session(SessionSettings(remote=remote))


@pytest.mark.parametrize("remote", ["localhost:15002", "http://localhost", "sc://", "sc://localhost:port"])
def test_an_invalid_address_of_a_connect_server_is_refused(remote: str) -> None:
    with pytest.raises(InvalidSettingError, match=re.escape(remote.removesuffix(":port"))):
        open_session(SessionSettings(remote=remote))
