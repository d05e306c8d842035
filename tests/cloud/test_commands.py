"""The commands of dbt and of `silt`, on two databases: one in the object store, one in a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cloud import project
from tests.cloud.project import Project
from tests.cloud.servers import ObjectServer
from tests.files import write_files
from tests.shells import exercise, typing

FILES = {
    "seeds/customers.csv": "id,name\n1,Ann\n2,Bob\n",
    "models/orders.sql": "{{ config(materialized='incremental', unique_key='id') }}\n"
    'select id, id % 2 + 1 as customer, \'{{ var("state", "new") }}\' as state from range(10)',
    "models/framed.py": "def model(dbt, session):\n"
    "    dbt.config(materialized='table')\n"
    "    frame = dbt.ref('orders').toPandas()\n"
    "    return frame.groupby('customer', as_index=False).agg(n=('id', 'count'))\n",
    "models/near.sql": "{{ config(database='near', materialized='table') }}\n"
    "select c.name, count(*) as n from {{ ref('orders') }} o join {{ ref('customers') }} c on o.customer = c.id\n"
    "group by 1",
    "models/back.sql": "{{ config(materialized='incremental', incremental_strategy='append') }}\n"
    "select * from {{ ref('near') }}",
    "models/shown.sql": "select * from {{ ref('back') }}",
    "models/checked.sql": "{{ config(materialized='table') }}\nselect cast('{{ var(\"number\", \"x\") }}' as int) as n",
    "models/schema.yml": "models: [{name: orders, columns: [{name: id, data_tests: [unique]}]}]",
    "snapshots/states.sql": "{% snapshot states %}\n"
    "{{ config(unique_key='id', strategy='check', check_cols=['state']) }}\n"
    "select id, state from {{ ref('orders') }}{% endsnapshot %}",
}
NAMES = ["near.main.near", *(f"silt.main.{name}" for name in "back checked customers framed orders states".split())]


@pytest.fixture
def shop(server: ObjectServer, tmp_path: Path) -> Project:
    server.make_bucket("others")
    return project.made(server, tmp_path, FILES, databases={"near": str(tmp_path / "near")})


def said(shop: Project, *arguments: str) -> Any:
    return json.loads(shop.silt(*arguments, "--json"))


def test_build_retry_show_check_and_rollback_work_over_two_storages(shop: Project) -> None:
    shop.dbt("build", "--vars", "{silt_run_id: monday}", fails=True)
    assert {name for name, message in shop.results().items() if message.startswith("error")} == {"checked"}
    shop.dbt("retry", "--vars", "{silt_run_id: monday, number: 5}")
    assert shop.results() == {"checked": "success: v0: 1 inserted in 1 file"}
    shop.dbt("build", "--vars", "{silt_run_id: tuesday, number: 6, state: old}")
    results = shop.results()
    assert results["orders"] == "success: v1: 10 updated in 1 file"
    assert results["states"].startswith("success: v1: 10 inserted, 10 updated")
    runs = {each["run_id"]: each for each in said(shop, "runs")["runs"]}
    assert runs["tuesday"]["tables"] == NAMES and runs["monday"]["tables"] == NAMES
    assert [each["table"] for each in said(shop, "run", "tuesday")["commits"] if each["version"] != 1] == []
    assert [each["run_id"] for each in said(shop, "history", "orders")["versions"]] == ["tuesday", "monday"]
    orders = said(shop, "show", "main.orders")
    assert (orders["rows"], orders["columns"][2]["max"]) == (10, "old")
    assert orders["location"].startswith(f"{shop.base}/house/main/orders/")
    assert said(shop, "check", "--data")["problems"] == 0
    assert [each["table"] for each in said(shop, "rollback", "tuesday", "--dry-run")["tables"]] == NAMES
    assert {each["version"] for each in said(shop, "rollback", "tuesday")["tables"]} == {2}
    assert said(shop, "show", "main.orders")["columns"][2]["max"] == "new"
    assert said(shop, "show", "near.main.near@v2")["rows"] == 2
    checked = said(shop, "check")
    assert (checked["problems"], len(checked["tables"])) == (0, len(NAMES))


@pytest.mark.long
def test_the_shell_runs_queries_and_statements_on_a_bucket(shop: Project) -> None:
    with typing(shop.folder, shop.folder, environment={"DBT_PROFILES_DIR": str(shop.folder)}) as shell:
        exercise(shell)


def test_silt_opens_a_table_by_its_url_with_the_storage_settings_of_the_profile(
    server: ObjectServer, shop: Project
) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    for bucket in (server.base, server.base.replace("warehouse", "others", 1)):
        url = f"{bucket}/theirs"
        deltalake.write_deltalake(url, rows, storage_options=dict(server.delta_rs))
        assert said(shop, "show", url)["rows"] == 3
        assert len(said(shop, "history", url)["versions"]) == 1
        assert said(shop, "check", url, "--data")["problems"] == 0


SOURCES = """
sources:
  - name: house
    schema: main
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: orders}]
  - name: local
    database: near
    schema: main
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: customers}]
  - name: raw
    meta: {external_location: "BASE/raw/{name}", format: delta}
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: loads}]
"""
STATEMENTS = (
    "convert to delta parquet.`BASE/raw/loads` partitioned by (p int)",
    "create schema if not exists near.main",
    "create table near.main.customers deep clone main.customers",
    "create table main.copied shallow clone near.main.customers",
    "insert into main.copied select id + 10, name from near.main.customers",
    "insert into near.main.customers select id + 10, name from main.copied",
    "optimize near.main.customers",
    "optimize main.orders",
    "delete from main.orders where id = 3",
    "restore table main.orders to version as of 0",
    "set silt.retentionDurationCheck.enabled = false",
    "vacuum main.orders retain 0 hours",
    "vacuum near.main.customers",
    "describe history main.orders",
    "describe detail main.orders",
    "alter table main.copied rename to main.renamed",
    "select * from information_schema.tables",
)


def test_statements_docs_clones_and_freshness_work_over_two_storages(server: ObjectServer, shop: Project) -> None:
    write_files(
        shop.folder,
        {
            "models/sources.yml": SOURCES.replace("BASE", shop.base),
            "macros/execute.sql": "{% macro execute_all(statements) %}{% for each in statements %}"
            "{% do run_query(each) %}{% endfor %}{% endmacro %}",
        },
    )
    for number in range(2):
        data = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [number]}), data)
        server.store(f"{shop.folder.name} é%20").put(f"raw/loads/p={number}/part.parquet", data.getvalue().to_pybytes())
    shop.dbt("build", "--exclude", "framed", "states", "--vars", "{number: 5}")
    statements = [each.replace("BASE", shop.base) for each in STATEMENTS]
    shop.dbt("run-operation", "execute_all", "--args", json.dumps({"statements": statements}))
    assert said(shop, "show", f"{shop.base}/raw/loads")["rows"] == 2
    assert said(shop, "show", "near.main.customers")["rows"] == 6
    assert said(shop, "show", "main.renamed")["rows"] == 4
    operations = {each["operation"] for each in said(shop, "history", "main.orders")["versions"]}
    assert operations >= {"DELETE", "RESTORE", "VACUUM END"}
    assert said(shop, "check", "--data")["problems"] == 0

    shop.dbt("source", "freshness")
    freshness = json.loads((shop.folder / "target/sources.json").read_text())["results"]
    assert [each["status"] for each in freshness] == ["pass"] * 3
    shop.dbt("docs", "generate")
    catalog = json.loads((shop.folder / "target/catalog.json").read_text())
    assert not catalog["errors"]
    described = {name.split(".")[2] for name in catalog["nodes"]}
    assert described >= {"orders", "customers", "near", "back", "shown", "checked"}
    assert len(catalog["sources"]) == 3

    shutil.copytree(shop.folder / "target", shop.folder / "state")
    shop.dbt("clone", "--select", "orders", "near", "--state", "state", "--target", "other")
    assert said(shop, "show", "dev2.orders")["rows"] == 10
    assert said(shop, "show", "near.dev2.near")["rows"] == 2
