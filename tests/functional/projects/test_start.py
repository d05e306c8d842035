"""The modules that a command loads: without a statement neither Spark nor Arrow is loaded, and Java is not started."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.files import write_files

PROJECT = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: shop, models: {+materialized: table}}",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: silt}}}",
    "models/orders.sql": """
{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge', pre_hook="select 1") }}
select id from {{ source('raw', 'orders') }} {% if is_incremental() %} where id > (select max(id) from {{ this }})
{% endif %}""",
    "models/models.yml": """
models: [{name: orders, columns: [{name: id, data_tests: [unique, not_null]}]}]
sources:
  - name: raw
    meta: {external_location: 'landing/{name}.csv'}
    tables: [{name: orders, columns: [{name: id, data_type: bigint}]}]
unit_tests:
  - name: one
    model: orders
    overrides: {macros: {is_incremental: false}}
    given: [{input: "source('raw', 'orders')", rows: [{id: 1}]}]
    expect: {rows: [{id: 1}]}
""",
    "models/scored.py": "def model(dbt, session):\n    return dbt.ref('orders')\n",
    "snapshots/kept.yml": """
snapshots: [{name: kept, relation: ref('orders'), config: {unique_key: id, strategy: check, check_cols: all}}]
""",
    "seeds/days.csv": "id\n1\n",
}
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner

for command in json.loads(sys.argv[1]):
    done = dbtRunner().invoke(command)
    assert done.success, (command, done.exception)
print(json.dumps(sorted(sys.modules)))
"""
OURS = "dbt.adapters.silt."
HEAVY = frozenset(("pyspark", "py4j", "pyarrow", "pandas", "numpy", "sqlglot", "pyroaring", "grpc"))
OF_THE_ENGINE = frozenset(
    (
        "catalog.names.locations",
        "catalog.names.relation_names",
        "commands.spark.file_formats",
        "commands.spark.shown_settings",
        "kernel.errors",
        "kernel.file_locks",
        "kernel.foreign_json",
        "kernel.identifiers",
        "kernel.lengths_of_time",
        "kernel.near_names",
        "kernel.owned_folders",
        "kernel.printable",
        "kernel.storage.settings",
        "kernel.storage.urls",
        "kernel.table.collations",
        "kernel.table.properties",
        "kernel.table.schema",
        "kernel.write_counts",
        "sql.portable_types",
        "sql.tokens",
    )
)
"""The modules of the engine that a command without a statement loads, apart from their packages."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules that are loaded after commands without a statement."""
    folder = tmp_path_factory.mktemp("shop")
    write_files(folder, PROJECT)
    commands = [["parse"], ["parse", "--no-partial-parse"], ["ls"], ["ls", "--select", "source:*"], ["deps"], ["clean"]]
    command = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert not (folder / "warehouse").exists()
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_a_command_without_a_statement_loads_no_spark_no_arrow_and_no_parser(loaded: set[str]) -> None:
    assert OURS + "impl" in loaded
    assert not HEAVY & {name.split(".")[0] for name in loaded}


def test_only_names_locations_and_errors_of_the_engine_are_loaded(loaded: set[str]) -> None:
    engine = {name.removeprefix(OURS + "engine.") for name in loaded if name.startswith(OURS + "engine.")}
    packages = {each.rpartition(".")[0] for each in OF_THE_ENGINE} | {"commands", "kernel", "sql", "catalog"}
    assert engine - packages == OF_THE_ENGINE
