"""dbt-spark builds a project through the endpoint by its method `thrift`, unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pyhive import hive

from tests.functional.endpoint.served import TOKEN, endpoint

FILES = {
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
models:
  +file_format: delta
seeds:
  +file_format: delta
""",
    "seeds/raw.csv": "id,name\n1,a\n2,b\n",
    "models/view.sql": "select id, name from {{ ref('raw') }}",
    "models/total.sql": "{{ config(materialized='table') }} select id, count(*) n from {{ ref('view') }} group by id",
    "models/merged.sql": "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}"
    " select id, name from {{ ref('view') }}",
    "snapshots/kept.sql": "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all',"
    " target_schema='main', file_format='delta') }} select * from {{ ref('raw') }}{% endsnapshot %}",
    "models/tests.yml": """
models:
  - name: total
    columns:
      - name: id
        data_tests: [unique, not_null]
""",
}


def profile(port: int) -> str:
    login = {"host": "127.0.0.1", "port": port, "auth": "LDAP", "user": "ann", "password": TOKEN, "schema": "main"}
    settings = {"server_side_parameters": {"silt.run_id": "nightly-1"}}
    dev = {"type": "spark", "method": "thrift", "threads": 2, **login, **settings}
    return json.dumps({"shop": {"target": "dev", "outputs": {"dev": dev}}})


def test_dbt_spark_builds_seeds_models_snapshots_and_tests_twice(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "warehouse").mkdir()
    with endpoint(tmp_path / "warehouse") as served:
        (tmp_path / "profiles.yml").write_text(profile(served["port"]))
        for _ in range(2):
            built = subprocess.run(
                [sys.executable, "-m", "dbt.cli.main", "build", "--profiles-dir", str(tmp_path)],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=300,
                env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
                check=False,
            )
            assert built.returncode == 0 and "PASS=7 WARN=0 ERROR=0" in built.stdout, built.stdout
        login = {"auth": "LDAP", "username": "ann", "password": TOKEN}
        with hive.connect("127.0.0.1", served["port"], **login) as connection, connection.cursor() as cursor:
            for table in ("raw", "view", "total", "merged", "kept"):
                cursor.execute(f"select count(*) from {table}")
                assert cursor.fetchall() == [(2,)], table
