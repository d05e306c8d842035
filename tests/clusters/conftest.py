"""A cluster, and a project whose models its executors run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clusters import standalone
from tests.clusters.standalone import Cluster
from tests.files import write_files

_RUN_SECONDS = 300
FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodels: {shop: {+materialized: table}}\n",
    "seeds/colours.csv": "id,colour\n0,red\n1,green\n2,\n",
    "models/raw.sql": "select id, id % 3 as colour, id * 2 as amount from range(0, 1000, 1, 4)",
    "models/orders.sql": "{{ config(materialized='incremental', unique_key='id', partition_by='colour') }} "
    "select * from {{ ref('raw') }}",
    "models/events.sql": "{{ config(materialized='incremental') }} select count(*) as orders from {{ ref('orders') }}",
    "models/named.sql": "{{ config(materialized='view') }} select o.id, c.colour "
    "from {{ ref('orders') }} o join {{ ref('colours') }} c on o.colour = c.id",
    "models/largest.py": "def model(dbt, session):\n    return dbt.ref('orders').orderBy('amount', ascending=False)"
    ".limit(3)\n",
    "snapshots/kept.yml": "snapshots: [{name: kept, relation: \"ref('orders')\", "
    "config: {unique_key: id, strategy: check, check_cols: all}}]\n",
}


@dataclass(frozen=True)
class Project:
    """A project in a folder, with a method that runs dbt."""

    folder: Path

    def use(self, **fields: Any) -> None:
        """Writes the profile, with these fields in its target."""
        output = {"type": "silt", "threads": 2, **fields}
        profile = {"shop": {"target": "dev", "outputs": {"dev": output}}}
        write_files(self.folder, {"profiles.yml": yaml.safe_dump(profile)})

    def dbt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", *arguments, "--profiles-dir", str(self.folder)],
            cwd=self.folder,
            env={**os.environ},
            capture_output=True,
            text=True,
            timeout=_RUN_SECONDS,
            check=False,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers."""
    with standalone.running(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_files(tmp_path, FILES)
    return Project(tmp_path)


def conf_of(**more: str) -> Mapping[str, str]:
    """Returns Spark's settings for a driver of this machine."""
    return {**standalone.SMALL, "spark.sql.shuffle.partitions": "4", **more}
