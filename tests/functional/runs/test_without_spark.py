"""Commands that only read are answered from the log and by Arrow; without a Java they fail only if they need Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from tests.files import write_files

PROJECT = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: shop}",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: silt}}}",
    "models/orders.sql": "select 1 as id",
    "models/lately.sql": """
{% if execute %}{% set last = run_query('select max(id) as last from ' ~ ref('orders')).columns[0][0] %}{% endif %}
select id from {{ ref('orders') }} where id >= {{ last }}""",
    "models/customers.sql": "select 1 as id",
    "models/models.yml": """
models:
  - name: orders
    columns:
      - name: id
        data_tests:
          - unique
          - not_null: {config: {where: "id > 2", warn_if: "> 1", error_if: "> 3"}}
          - relationships: {arguments: {to: ref('customers'), field: id}}
      - name: name
        data_tests: [accepted_values: {arguments: {values: [name 0, name 1]}}]
""",
    "analyses/sums.sql": "select sum(id) as total from {{ ref('orders') }}",
}


@pytest.fixture(scope="module")
def project(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    write_files(folder, PROJECT)
    house = Warehouse(spark.newSession(), str(folder / "warehouse"))
    house.sql("create table orders as select id, concat('name ', id) as name from range(7)")
    house.sql("create table customers as select cast(id as int) as id from range(1, 9)")
    return folder


def dbt_without_java(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from dbt.cli.main import cli; cli()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=project,
        env={**os.environ, "JAVA_HOME": str(project / "no-java")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_show_of_rows_under_a_condition_starts_no_spark(project: Path) -> None:
    shown = dbt_without_java(
        project, "show", "--inline", "select name, id from {{ ref('orders') }} where id > 4", "--limit", "5"
    )
    assert shown.returncode == 0, shown.stdout
    assert "| name   | id |" in shown.stdout and "| name 6 |  6 |" in shown.stdout
    assert "name 4" not in shown.stdout


def test_queries_of_macros_in_a_compiled_model_start_no_spark(project: Path) -> None:
    compiled = dbt_without_java(project, "compile", "--select", "lately")
    assert compiled.returncode == 0, compiled.stdout
    assert "where id >= 6" in compiled.stdout


def test_the_four_data_tests_of_dbt_start_no_spark(project: Path) -> None:
    tested = dbt_without_java(project, "test", "--no-use-colors")
    assert "PASS=2 WARN=0 ERROR=2 SKIP=0" in tested.stdout, tested.stdout
    assert re.search(r"FAIL 1 relationships_orders_id__id__ref_customers_", tested.stdout)
    assert re.search(r"FAIL 5 accepted_values_orders_name", tested.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(
            ("test", "--store-failures", "--select", "test_name:unique"), marks=pytest.mark.long, id="stored failures"
        ),
        pytest.param(("show", "--select", "sums"), id="a sum"),
        pytest.param(
            ("show", "--inline", "select id from {{ ref('orders') }} where absent = 1"),
            marks=pytest.mark.long,
            id="an error",
        ),
    ],
)
def test_any_other_query_starts_spark(project: Path, arguments: tuple[str, ...]) -> None:
    failed = dbt_without_java(project, *arguments)
    assert failed.returncode != 0
    assert "no-java) contains no Java, but Spark needs it" in failed.stdout
