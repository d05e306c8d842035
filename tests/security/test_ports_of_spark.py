"""A local Spark is started with a secret for its ports, which every user of the machine can reach."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.session.spark import SessionSettings, _launch_conf


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]", "local[2, 4]"])
def test_a_spark_of_this_machine_asks_for_a_secret(master: str) -> None:
    assert _launch_conf(SessionSettings(master=master), "/tmp", [])["spark.authenticate"] == "true"


def test_the_setting_of_the_profile_wins() -> None:
    given = SessionSettings(spark_conf={"spark.authenticate": False})
    assert _launch_conf(given, "/tmp", [])["spark.authenticate"] == "false"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_a_clusters_own_setting_stands(master: str) -> None:
    assert "spark.authenticate" not in _launch_conf(SessionSettings(master=master), "/tmp", [])
