"""dbt over a warehouse in an object store: killed builds, and the number of requests of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from tests.cloud import project
from tests.cloud.servers import ObjectServer

_BUDGET = 40
_RUN_SECONDS = 300
_KILLS_AFTER = (6.0, 8.0, 10.0, 12.0)
FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodels: {shop: {+materialized: table}}\n",
    "models/raw.sql": "select id, id * 2 as amount from range(1000)",
    "models/orders.sql": "{{ config(materialized='incremental', unique_key='id') }} select * from {{ ref('raw') }}",
    "models/log.sql": "{{ config(materialized='incremental') }} select count(*) as orders from {{ ref('orders') }}",
    "models/paid.sql": "{{ config(materialized='view') }} select * from {{ ref('orders') }} where amount > 10",
}


@pytest.fixture
def shop(server: ObjectServer, tmp_path: Path) -> Path:
    return project.made(server, tmp_path, FILES).folder


def start_dbt(shop: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dbt.cli.main", *arguments, "--profiles-dir", str(shop)]
    with (shop / "dbt.log").open("ab") as log:
        return subprocess.Popen(command, cwd=shop, stdout=log, stderr=log, start_new_session=True)


def dbt(shop: Path, *arguments: str) -> None:
    assert start_dbt(shop, *arguments).wait(_RUN_SECONDS) == 0, (shop / "dbt.log").read_text()[-4000:]


def catalog_of(server: ObjectServer, shop: Path) -> Catalog:
    return Catalog({"silt": server.store(f"{shop.name} é%20/house")})


def named(identifier: str) -> RelationName:
    return RelationName("silt", "main", identifier)


def test_a_run_of_an_incremental_model_sends_few_requests_apart_from_its_data(server: ObjectServer, shop: Path) -> None:
    dbt(shop, "run")
    with server.counted() as counted:
        dbt(shop, "run", "--select", "orders")
    if server.name == "azure":
        pytest.skip("Azurite's log does not say which client asked")
    assert len(counted.of_kernel()) <= _BUDGET, counted.of_kernel().listed()


def test_a_repeatedly_killed_build_applies_every_model_once(server: ObjectServer, shop: Path) -> None:
    dbt(shop, "run")
    run_id = json.dumps({"silt_run_id": "the-second"})
    for seconds in _KILLS_AFTER:
        process = start_dbt(shop, "run", "--vars", run_id)
        time.sleep(seconds)  # at an arbitrary point of the run
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    dbt(shop, "run", "--vars", run_id)
    catalog = catalog_of(server, shop)
    kinds = {each.name.identifier: each.kind for each in catalog.relations("silt", "main")}
    assert kinds == dict.fromkeys(("log", "orders", "raw"), RelationKind.TABLE) | {"paid": RelationKind.VIEW}
    for name in ("log", "orders", "raw"):
        log = catalog.table(named(name))
        units = [
            action.app_id
            for commit in log.commits()
            for action in commit.actions
            if isinstance(action, SetTransaction) and "the-second" in action.app_id
        ]
        assert len(units) == 1, (name, units)
