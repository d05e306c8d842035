"""Clustered tables of this engine and of delta-spark, which optimize them in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from tests.interop import delta_spark_process
from tests.interop.test_other_readers import JARS, PYTHON, _environment, needs_delta_spark
from tests.unit.engine.house import House

pytestmark = needs_delta_spark

QUERY = """
select /*+ coalesce(1) */ (id * 7919) % 1000 as id, named_struct('city', concat('c', id % 7)) as place from range(1000)
"""
COLUMNS = "id bigint, place struct<city: string>"


def delta_spark(folder: Path, *statements: str) -> list[list[dict[str, Any]]]:
    """Runs statements with delta-spark; returns their rows."""
    folder.mkdir(exist_ok=True)
    (folder / "statements.json").write_text(json.dumps(statements))
    python, script = os.environ.get(PYTHON) or sys.executable, delta_spark_process.__file__
    subprocess.run([python, script, os.environ[JARS], str(folder)], check=True, cwd=folder, env=_environment())
    answers: list[list[dict[str, Any]]] = json.loads((folder / "answers.json").read_text())
    return answers


def files(log: DeltaLog) -> list[AddFile]:
    return list(log.snapshot().add_files())


def cubes(log: DeltaLog) -> set[str | None]:
    return {(each.tags or {}).get("ZCUBE_ID") for each in files(log)}


def test_each_engine_continues_the_clustering_of_the_other(spark: SparkSession, tmp_path: Path) -> None:
    house = House(Warehouse(spark.newSession(), str(tmp_path / "house")), tmp_path)
    house.sql(f"create table ours cluster by (id, place.city) as {QUERY}")
    house.sql(f"insert into ours {QUERY}")
    house.sql("optimize ours")
    [cube] = cubes(house.log("ours"))
    ours, theirs = f"delta.`{house.location('ours')}`", f"delta.`{tmp_path / 'theirs'}`"

    answers = delta_spark(
        tmp_path / "first",
        f"describe detail {ours}",
        f"insert into {ours} {QUERY}",
        f"optimize {ours}",
        f"select count(*) as n, sum(id) as total from {ours}",
        f"create table {theirs} ({COLUMNS}) using delta cluster by (id, place.city)",
        *[f"insert into {theirs} {QUERY}"] * 2,
        f"optimize {theirs}",
    )
    assert answers[0][0]["clusteringColumns"] == ["id", "place.city"]
    assert answers[3] == [{"n": 3000, "total": 3 * 499_500}]
    log = house.log("ours")
    assert house.rows("select count(*), sum(id) from ours") == [(3000, 3 * 499_500)]
    assert len(cubes(log)) == 1 and cubes(log) != {cube}  # below 100 GiB, delta-spark merges all cubes

    other = house.warehouse.catalog.table_at(str(tmp_path / "theirs"))
    domains = [each.snapshot().domains["delta.clustering"].configuration for each in (log, other)]
    assert domains[0] == domains[1]
    [kept] = cubes(other)
    for table in ("ours", theirs):
        assert house.fetched(f"optimize {table}")[0].metrics.numFilesRemoved == 0
        house.sql(f"insert into {table} values (1, named_struct('city', 'x'))")
        house.sql(f"insert into {table} values (2, named_struct('city', 'y'))")
        assert house.fetched(f"optimize {table}")[0].metrics.numFilesRemoved == 2
    assert kept in cubes(other) and len(cubes(other)) == 2
    assert house.rows(f"select count(*) from {theirs}") == [(2002,)]

    again = delta_spark(
        tmp_path / "second",
        f"optimize {theirs}",
        f"select count(*) as n from {theirs}",
        f"alter table {theirs} cluster by none",
        f"optimize {ours} full",
        f"select count(*) as n from {ours}",
    )
    assert [again[1], again[4]] == [[{"n": 2002}], [{"n": 3002}]]
    assert house.rows("select count(*) from ours") == [(3002,)]
    assert house.fetched(f"describe detail {theirs}")[0].clusteringColumns == []
