"""A local Spark is started with a secret for its ports, which every user of the machine can reach."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.session.spark import SessionSettings, _launch_conf


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]", "local[2, 4]"])
def test_a_local_spark_requires_a_secret_on_its_ports(master: str) -> None:
    assert _launch_conf(SessionSettings(master=master), "/tmp", [])["spark.authenticate"] == "true"


def test_the_profiles_setting_of_the_secret_takes_precedence() -> None:
    settings = SessionSettings(spark_conf={"spark.authenticate": False})
    assert _launch_conf(settings, "/tmp", [])["spark.authenticate"] == "false"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_a_clusters_authentication_setting_is_not_changed(master: str) -> None:
    assert "spark.authenticate" not in _launch_conf(SessionSettings(master=master), "/tmp", [])
