"""A cluster is checked before a statement waits for it."""

from __future__ import annotations

import re
import socket

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import SparkUnavailableError
from dbt.adapters.silt.session import cluster


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _closed_port() -> int:
    with _listening() as server:
        return int(server.getsockname()[1])


def test_a_missing_master_is_reported_at_once() -> None:
    with pytest.raises(SparkUnavailableError, match=r"no Spark master answers at spark://127\.0\.0\.1"):
        cluster.check_master(f"spark://127.0.0.1:{_closed_port()}")


def test_one_reachable_master_of_several_is_enough() -> None:
    with _listening() as server:
        cluster.check_master(f"spark://127.0.0.1:{_closed_port()},127.0.0.1:{server.getsockname()[1]}")


def test_a_master_without_a_port_is_refused_with_the_expected_form() -> None:
    with pytest.raises(SparkUnavailableError, match="spark://host:port"):
        cluster.check_master("spark://cluster.example")


@pytest.mark.parametrize("master", ["yarn", "k8s://https://cluster.example:6443", "local-cluster[2,1,1024]"])
def test_masters_of_other_kinds_are_not_checked(master: str) -> None:
    cluster.check_master(master)  # passes if no error is raised


def test_executors_of_the_same_version_pass(spark: SparkSession) -> None:
    cluster.check_executors(spark, "spark://cluster.example:7077")  # passes if no error is raised


def test_waiting_for_executors_is_limited_and_the_job_cancelled(spark: SparkSession) -> None:
    with pytest.raises(SparkUnavailableError, match=r"has provided no executor in 0 seconds.*spark\.driver\.host"):
        cluster.check_executors(spark.newSession(), "spark://cluster.example:7077", longest_seconds=0)


def test_a_rejected_application_is_reported_with_the_versions() -> None:
    error = cluster.not_taken("spark://cluster.example:7077", PySparkException("Cannot call methods on a stopped one"))
    assert re.search(
        r"did not accept this application \(Cannot call .* stopped one\)\. Check that it runs Spark 4\.", str(error)
    )
