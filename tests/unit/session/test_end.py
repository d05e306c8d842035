"""The end of a process whose Spark was not stopped: it does not wait for Java, and Java leaves nothing behind."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.unit.session.processes import run

ENDS = """
import json, os, sys
from dbt.adapters.silt.session import spark as module
from dbt.adapters.silt.session.spark import SessionSettings, open_session
conf = {"spark.driver.memory": "1g", "spark.local.dir": os.getcwd(), **json.loads(sys.argv[1])}
conf["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={os.getcwd()}"
session = open_session(SessionSettings(master="local[1]", spark_conf=conf))
session.range(3).repartition(2).collect()
java = module._running.java.pid
outputs = [(of, number) for of in ("self", java) for number in (1, 2)]
print(json.dumps({"java": java, "outputs": [os.readlink(f"/proc/{of}/fd/{number}") for of, number in outputs]}))
"""
SECONDS = 300


@pytest.mark.parametrize(("conf", "has_ours"), [({}, False), ({"spark.log.level": "ERROR"}, True)])
def test_java_keeps_the_output_open_only_if_its_log_is_enabled_and_leaves_no_files(
    conf: dict[str, str], has_ours: bool, tmp_path: Path
) -> None:
    done = run(ENDS, tmp_path, json.dumps(conf), TMPDIR=str(tmp_path))
    found = json.loads(done.stdout)
    ours, of_java = found["outputs"][:2], found["outputs"][2:]
    assert (of_java == ours) is has_ours
    assert bool(set(of_java) & set(ours)) is has_ours
    until = time.monotonic() + SECONDS
    while Path("/proc", str(found["java"])).exists():
        assert time.monotonic() < until, "Java did not end"
        time.sleep(0.05)
    assert os.listdir(tmp_path) == []
