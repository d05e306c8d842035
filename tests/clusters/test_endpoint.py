"""`silt endpoint` with the Spark of a cluster and with a Spark Connect server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive
from TCLIService.ttypes import TOperationState

from tests import connect_server
from tests.clusters.conftest import Project, conf_of
from tests.clusters.standalone import Cluster
from tests.functional.endpoint.served import TOKEN, endpoint

pytestmark = pytest.mark.long
LOCAL = {"spark.driver.memory": "1g", "spark.sql.catalogImplementation": "in-memory", "spark.ui.enabled": "false"}
SLOW = "insert into t select count(*) from range(10000000) a cross join range(1000000) b"
CLIENT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.sql("insert into main.t values (3)")
print(spark.table("main.t").selectExpr("sum(id)").first()[0])
"""


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with an existing warehouse."""
    (project.folder / "warehouse" / "main").mkdir(parents=True)
    return project


def rows(connection: hive.Connection, text: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []


def use_thrift(served: dict[str, Any]) -> None:
    """Writes, reads, cancels and describes by HiveServer2's protocol."""
    with hive.connect("127.0.0.1", served["port"], auth="LDAP", username="ann", password=TOKEN) as ann:
        rows(ann, "create table t (id bigint)")
        rows(ann, "create temporary view v as select id * 2 as id from range(2)")
        assert rows(ann, "insert into t select id from v")[0][:2] == ("WRITE", 1)
        assert sorted(rows(ann, "select id + 1 from t")) == [(1,), (3,)]
        cursor = ann.cursor()
        cursor.execute(SLOW, async_=True)
        while cursor.poll(get_progress_update=False).operationState != TOperationState.RUNNING_STATE:
            pass
        cursor.cancel()
        assert cursor.poll().operationState == TOperationState.CANCELED_STATE
        assert rows(ann, "select count(*) from t") == [(2,)]
        assert rows(ann, "describe t")[0][:2] == ("id", "bigint")


def test_the_executors_of_a_cluster_run_the_statements_of_the_thrift_door(cluster: Cluster, shop: Project) -> None:
    shop.use(master=cluster.master, warehouse="warehouse", spark_conf=conf_of())
    with endpoint(None, project=shop.folder) as served:
        use_thrift(served)
        assert cluster.executors()


def test_a_cluster_without_a_server_has_no_connect_door(shop: Project) -> None:
    shop.use(master="spark://127.0.0.1:7077", warehouse="warehouse", spark_conf=conf_of())
    done = subprocess.run(
        [sys.executable, "-m", "dbt.adapters.silt.cli", "endpoint", "--port", "0", "--connect-port", "0"],
        cwd=shop.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "does not serve Spark Connect. Start a Spark Connect server there, and name it by `remote`" in done.stderr


def test_both_doors_serve_the_spark_of_a_server(shop: Project, tmp_path: Path) -> None:
    with connect_server.running(tmp_path / "server", LOCAL) as behind:
        shop.use(remote=behind, warehouse="warehouse")
        with endpoint(None, "--connect-port", "0", project=shop.folder) as served:
            use_thrift(served)
            told = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", CLIENT, f"{served['connect']}/;token={TOKEN}"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert told.stdout.split() == ["5"], told.stderr
