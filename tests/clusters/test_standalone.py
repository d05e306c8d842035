"""dbt on a standalone cluster of a master and two workers: the same project, the same tables."""

from __future__ import annotations

import socket
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.clusters.conftest import Project, conf_of
from tests.clusters.standalone import Cluster

_BY_CLOCK = ("dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to")


def tables(warehouse: Path) -> dict[str, list[str]]:
    """Returns the rows of each table, without the times that snapshots read from the clock."""
    found = {}
    for log in warehouse.glob("main/*/_delta_log"):
        table = QueryBuilder().register("t", DeltaTable(str(log.parent))).execute("select * from t").read_all()
        columns = pa.table(table).drop_columns([name for name in _BY_CLOCK if name in table.schema.names])
        found[log.parent.name] = sorted(map(repr, columns.to_pylist()))
    return found


def test_the_executors_of_a_cluster_run_the_models(cluster: Cluster, project: Project) -> None:
    project.use(master=cluster.master, warehouse="warehouse", spark_conf=conf_of())
    done = project.dbt("run", "--select", "raw", "orders")
    assert done.returncode == 0, done.stdout
    expected = sorted(repr({"id": id_, "colour": id_ % 3, "amount": id_ * 2}) for id_ in range(1000))
    assert tables(project.folder / "warehouse") == {"raw": expected, "orders": expected}


@pytest.mark.long
def test_two_builds_on_a_cluster_leave_the_tables_of_an_embedded_spark(cluster: Cluster, project: Project) -> None:
    project.use(master="local[2]", warehouse="embedded")
    for _ in range(2):
        done = project.dbt("build")
        assert done.returncode == 0, done.stdout
    project.use(master=cluster.master, warehouse="on-cluster", spark_conf=conf_of())
    for _ in range(2):
        done = project.dbt("build")
        assert done.returncode == 0, done.stdout
    expected = tables(project.folder / "embedded")
    assert len(expected) == 6
    assert tables(project.folder / "on-cluster") == expected


@pytest.mark.long
def test_a_missing_master_is_reported_at_once(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    project.use(master=f"spark://127.0.0.1:{port}")
    done = project.dbt("run")
    assert done.returncode != 0
    assert f"no Spark master answers at spark://127.0.0.1:{port}" in done.stdout, done.stdout
