"""Profiles with an accelerator: on a Spark that has none, and in the lane `accelerated` on a Spark with Comet."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.session import accelerator as accelerators
from dbt.adapters.silt.session.jars import version_of
from dbt.adapters.silt.session.java_launch import spark_home

MODELS = {
    "orders.sql": "{{ config(materialized='table', tblproperties={'delta.enableDeletionVectors': 'true'}) }} "
    "select id, id % 3 as customer, cast(id as decimal(10, 2)) as amount from range(60)",
    "totals.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='customer') }}"
    " select customer, count(*) as n, sum(amount) as total from {{ ref('orders') }} group by customer",
}
TOTALS = [(0, 20, 570), (1, 20, 590), (2, 20, 610)]


PROJECT = "{name: shop, profile: shop, version: '1.0', models: {shop: {+materialized: table}}}"
PROFILE = """
shop:
  target: dev
  outputs:
    dev: &dev
      type: silt
      warehouse: warehouse
      master: "local[1]"
      reuse: unchanged
      spark_conf: {spark.driver.memory: 2g}
      accelerator: comet
    alone: {<<: *dev, accelerator_required: false}
    "off": {<<: *dev, accelerator: off}
    kept: {<<: *dev, keep_alive: 5 seconds}
"""


def has_a_release() -> bool:
    try:
        accelerators.release_for(version_of("spark-core_2.13", spark_home()))
    except InvalidSettingError:
        return False
    return True


def dbt(folder: Path, *words: str) -> tuple[int, str]:
    """Runs a command in a process of its own, and returns its code and what it prints."""
    command = [str(Path(sys.executable).with_name("dbt")), "--no-use-colors", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with a model, which is run by commands of their own processes."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "numbers.sql").write_text("select id, id * 2 as twice from range(10)")
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    (tmp_path / "profiles.yml").write_text(PROFILE)
    return tmp_path


@pytest.fixture
def needs_accelerator(accelerator: str | None) -> None:
    if accelerator is None:
        pytest.skip("in the lane with an accelerator")


@pytest.mark.skipif(has_a_release(), reason="this Spark can be accelerated")
class TestAnotherSpark:
    def test_a_command_fails_with_the_versions_that_can_be_accelerated(self, shop: Path) -> None:
        code, said = dbt(shop, "debug")
        assert code != 0
        assert "its jars are for Spark 4.1" in said and "set `accelerator_required: false`" in said

    def test_spark_runs_alone_with_one_warning_if_the_profile_says_so(self, shop: Path) -> None:
        code, said = dbt(shop, "run", "--target", "alone")
        assert code == 0, said
        assert said.count("Spark runs without the accelerator: Comet has no jar for Spark") == 1, said


@pytest.mark.usefixtures("needs_accelerator")
class TestAccelerated:
    """Changed keys and deletion vectors on a Spark with Comet."""

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return MODELS

    def test_it_is_active_and_its_rows_are_sparks(self, project: Any) -> None:
        _, said = run_dbt_and_capture(["debug"])
        assert "accelerator: comet 1.2.0 is active" in said
        run_dbt(["run"])
        project.run_sql("delete from {schema}.orders where id in (1, 2)")
        run_dbt(["run", "--select", "totals"])
        assert project.run_sql("select * from {schema}.totals order by 1", fetch="all") == [
            TOTALS[0],
            (1, 19, 589),
            (2, 19, 608),
        ]


@pytest.mark.usefixtures("needs_accelerator")
class TestSwitched:
    """A command with an accelerator, without it, and over a kept Spark (`keep_alive`) that has it."""

    def test_the_rows_that_it_has_built_are_reused_until_it_is_switched(self, shop: Path) -> None:
        for target, is_reused in (("dev", False), ("dev", True), ("off", False), ("off", True), ("dev", False)):
            code, said = dbt(shop, "run", "--target", target)
            assert code == 0 and ("reused: unchanged since" in said) == is_reused, said

    def test_a_kept_spark_has_it(self, shop: Path) -> None:
        code, said = dbt(shop, "debug", "--target", "kept")
        assert code == 0 and "accelerator: comet 1.2.0 is active" in said, said
