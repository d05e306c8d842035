"""dbt over a Spark Connect server that stops during a model."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from deltalake import DeltaTable

from tests import connect_server
from tests.clusters.conftest import Project
from tests.conftest import SPARK_SETTINGS
from tests.files import write_files

_SLOW = (
    "select id, length(aggregate(sequence(1, 2000), cast(id as string), (text, _) -> sha2(text, 256))) as size "
    "from range(10000) where id >= (select min(id) from {{ ref('small') }})"
)
_FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodels: {shop: {+materialized: table}}\n",
    "models/small.sql": "select id from range(10)",
    "models/slow.sql": _SLOW,
}
_WAIT_SECONDS = 300
_GONE = re.compile(
    r"\[SILT_SPARK_UNAVAILABLE\] the connection to the Spark Connect server \S+ was lost during a statement"
    r"|\[SILT_SPARK_ENDED\] Spark was stopped while a statement used it"
)
"""The first error is of a server that stopped before it answered, the second of a server that announced its stop."""


def write_begins(table: Path) -> bool:
    return table.is_dir() and any(path.is_dir() and path.name != "_delta_log" for path in table.iterdir())


@pytest.mark.long
def test_a_model_fails_if_its_server_stops_and_a_retry_on_a_new_server_completes_it(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    write_files(project.folder, _FILES)
    with ExitStack() as servers:
        address = servers.enter_context(connect_server.running(tmp_path / "first", SPARK_SETTINGS))
        project.use(remote=address, warehouse="warehouse")

        def end_in_the_model() -> None:
            deadline = time.monotonic() + _WAIT_SECONDS
            while not write_begins(project.folder / "warehouse/main/slow") and time.monotonic() < deadline:
                time.sleep(0.05)
            servers.close()

        ending = Thread(target=end_in_the_model)
        ending.start()
        done = project.dbt("run")
        ending.join()
    assert done.returncode != 0
    assert _GONE.search(done.stdout), done.stdout
    assert "run `dbt retry`" in done.stdout, done.stdout
    with connect_server.running(tmp_path / "second", SPARK_SETTINGS) as address:
        project.use(remote=address, warehouse="warehouse")
        done = project.dbt("retry")
    assert done.returncode == 0, done.stdout
    tables = {name: DeltaTable(str(project.folder / "warehouse/main" / name)) for name in ("small", "slow")}
    assert {name: table.version() for name, table in tables.items()} == {"small": 0, "slow": 0}
    assert tables["slow"].to_pyarrow_table().num_rows == 10_000
