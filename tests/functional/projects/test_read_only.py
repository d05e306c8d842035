"""A read-only warehouse can be read; the first write is refused before Spark starts work for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unprivileged import run_unprivileged

FILES = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: shop, models: {+materialized: table}}",
    "profiles.yml": """
shop:
  target: dev
  outputs:
    dev: {type: silt, master: 'local[1]', spark_conf: {spark.driver.memory: 1g}}
    reader: {type: silt, master: 'local[1]', spark_conf: {spark.driver.memory: 1g}, statement_attempts: 4}
    absent: {type: silt, master: 'local[1]', spark_conf: {spark.driver.memory: 1g}, schema: absent}
""",
    "models/orders.sql": "select id from range(3)",
    "models/days.sql": "{{ config(materialized='incremental') }} select id from {{ ref('orders') }}",
    "models/shown.sql": "{{ config(materialized='view') }} select id from {{ ref('orders') }}",
    "models/models.yml": "models: [{name: orders, columns: [{name: id, data_tests: [unique, not_null]}]}]",
}
PROGRAM = f"""
import contextlib, io, json, os, sys
from pathlib import Path
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

files = {FILES!r}
for name, text in files.items():
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)

told = {{}}

def dbt(name, *arguments):
    events = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        done = dbtRunner(callbacks=[lambda event: events.append(event.info.msg)]).invoke(list(arguments))
    results = getattr(done.result, "results", None) or []
    told[name] = [done.success, printed.getvalue() + str(done.exception or ""), [str(each.message) for each in results]]

def writable(mode):
    for folder, _, names in os.walk("warehouse"):
        os.chmod(folder, 0o755 if mode else 0o555)

dbt("built", "run")
writable(False)
reader = ("--target", "reader")
dbt("show", "show", "--inline", "select count(*) as n from {{{{ ref('shown') }}}}", *reader)
dbt("compile", "compile", *reader)
dbt("docs", "docs", "generate", *reader)
dbt("test", "test", *reader)
dbt("run", "run", *reader)
dbt("stored", "test", "--store-failures", *reader)
dbt("absent", "show", "--inline", "select 1 as n", "--target", "absent")

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.warehouse import Warehouse

house = Warehouse(SparkSession.active(), "warehouse")
told["rows"] = house.sql("select sum(id) from orders").first()[0]
statements = (
    "insert into orders select 7", "delete from orders where id = 1", "create table made (id int)", "optimize orders",
    "create or replace table orders as select 1 as id", "create view seen as select 1 as n", "create schema other",
    "drop table orders", "alter table orders set tblproperties ('a' = 'b')", "vacuum orders",
)
jobs = SparkSession.active().sparkContext.statusTracker()
before = len(jobs.getJobIdsForGroup())
for text in statements:
    try:
        house.sql(text)
        told[text] = "done"
    except SiltError as error:
        told[text] = str(error)
told["jobs"] = len(jobs.getJobIdsForGroup()) - before
told["dry"] = len(house.sql("vacuum orders dry run").collect())
[file] = Path("warehouse/main/orders").glob("*/part-*")
os.chmod(file, 0)
try:
    house.sql("insert into days select id from orders")
except SiltError as error:
    told["before"] = str(error)
writable(True)
texts = {{"written": "insert into days select id from orders", "rewritten": "delete from orders where id = 1"}}
for name, text in texts.items():
    try:
        house.sql(text)
    except SiltError as error:
        told[name] = str(error)
dbt("unreadable", "show", "--inline", "select * from {{{{ ref('orders') }}}}", "--target", "dev")
told["file"] = str(file.name)
print("TOLD" + json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = run_unprivileged(PROGRAM, tmp_path_factory.mktemp("read_only"))
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.partition("TOLD")[2])
    return answers


@pytest.mark.parametrize("command", ["built", "show", "compile", "docs", "test", "absent"])
def test_commands_that_only_read_work(told: dict[str, Any], command: str) -> None:
    success, printed, messages = told[command]
    assert success, (printed, messages)


def test_the_right_rows_are_read(told: dict[str, Any]) -> None:
    assert "| 3 |" in told["show"][1]
    assert told["rows"] == 3


def test_a_model_is_refused_with_the_reason_and_the_remedy(told: dict[str, Any]) -> None:
    success, _, messages = told["run"]
    assert not success
    refused = [message for message in messages if message != "None"]  # nodes below it are skipped
    assert len(refused) == 1 and "[SILT_READ_ONLY] silt.main.orders: " in refused[0]
    assert "Permission denied" in refused[0] and "make the folder writable" in refused[0]


def test_stored_failures_are_refused(told: dict[str, Any]) -> None:
    success, printed, _ = told["stored"]
    assert not success and "SILT_READ_ONLY" in printed


def test_each_writing_statement_is_refused_before_spark_starts_work_for_it(told: dict[str, Any]) -> None:
    texts = [text for text in told if " " in text]
    assert len(texts) == 10
    assert {text: told[text] for text in texts if not told[text].startswith("[SILT_READ_ONLY]")} == {}
    assert (told["jobs"], told["dry"]) == (0, 0)


def test_an_unreadable_data_file_is_named_with_the_remedy(told: dict[str, Any]) -> None:
    assert "is not writable" in told["before"]
    for said in (told["written"], told["rewritten"], told["unreadable"][1]):
        assert f"{told['file']} cannot be read" in said and "Permission denied" in said
        assert "Grant read access to the user that Spark runs as." in said
        assert len(said) < 2000
