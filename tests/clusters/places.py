"""Builds the sample project in each environment that it supports, and shows times and whether the tables are equal.

Two months, a `dbt build` each. Spark is embedded, on a standalone cluster of two workers, or a Spark Connect server;
the warehouse is a folder, or in an S3 service of this machine.

python -m tests.clusters.places
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import yaml
from deltalake import DeltaTable, QueryBuilder

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.storage.urls import parse_url
from dbt.adapters.silt.session import jars
from dbt.adapters.silt.session.jars import SparkStorage
from sample_project import land
from tests import connect_server
from tests.cloud.servers import ObjectServer, running_s3
from tests.clusters import standalone

SPARKS: Final = ("embedded", "cluster", "connect")
STORAGES: Final = ("folder", "s3")
_LEFT_BY_RUNS = shutil.ignore_patterns("landing", "warehouse", "target", "logs", "__pycache__", ".user.yml")
_MONTHS: Final = (1, 2)
_RUN_SECONDS: Final = 900
_TABLES: Final = (
    "airlines",
    "airports",
    "carriers",
    "daily_summary",
    "flights",
    "route_performance",
    "weather_observations",
)
"""The tables whose rows do not depend on the clock; a snapshot stamps its rows with it."""


@dataclass(frozen=True)
class Place:
    """An environment that the project runs in.

    Attributes:
        target: the fields of its profile.
        catalog: of the warehouse.
        options: how delta-rs reaches its tables.
    """

    name: str
    target: Mapping[str, Any]
    catalog: Catalog
    options: Mapping[str, str]


@dataclass(frozen=True)
class Built:
    """The results of the builds.

    Attributes:
        passed, nodes: of the last build.
        rows: of each table at the end.
    """

    place: str
    seconds: Sequence[float]
    passed: int
    nodes: int
    rows: Mapping[str, collections.Counter[tuple[object, ...]]]


@contextlib.contextmanager
def place(spark: str, storage: str, folder: Path) -> Iterator[Place]:
    """Runs the servers of an environment during the block."""
    with contextlib.ExitStack() as servers:
        server = servers.enter_context(running_s3(folder / "objects")) if storage == "s3" else None
        target: dict[str, Any] = {"type": "silt", "threads": 2, "warehouse": str(folder / "warehouse")}
        store: Store = LocalStore(str(folder / "warehouse"))
        if server is not None:
            target |= {"warehouse": f"{server.base}/house", "storage": server.profile}
            store = server.store("house")
        if spark == "cluster":
            cluster = servers.enter_context(standalone.running(folder / "cluster"))
            target |= {"master": cluster.master, "spark_conf": dict(standalone.SMALL)}
        elif spark == "connect":
            address = connect_server.running(folder / "connect", _settings_of_server(server))
            target |= {"remote": servers.enter_context(address)}
        options = {} if server is None else server.delta_rs
        yield Place(f"{spark}, {storage}", target, Catalog({"silt": store}), options)


def _settings_of_server(server: ObjectServer | None) -> dict[str, str]:
    conf = {"spark.sql.catalogImplementation": "in-memory", "spark.ui.enabled": "false", "spark.driver.memory": "2g"}
    if server is None:
        return conf
    lacking = SparkStorage({}, (parse_url(server.base).service,))
    return conf | dict(jars.settings(lacking, {}, Path(pyspark.__file__).parent)) | dict(server.hadoop)


def built(where: Place, folder: Path) -> Built:
    """Builds the project's months there, in an empty warehouse."""
    project = folder / "project"
    shutil.copytree(Path(land.__file__).parent, project, ignore=_LEFT_BY_RUNS)
    profile = {"flights": {"target": "dev", "outputs": {"dev": dict(where.target)}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profile))
    seconds = []
    for month in _MONTHS:
        land.land(month, project / "landing")
        began = time.monotonic()
        _dbt(project, "build", "--vars", json.dumps({"silt_run_id": f"month {month}"}))
        seconds.append(time.monotonic() - began)
    results = json.loads((project / "target/run_results.json").read_text())["results"]
    passed = sum(each["status"] in ("success", "pass") for each in results)
    return Built(where.name, seconds, passed, len(results), {name: _rows(where, name) for name in _TABLES})


def _dbt(project: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", *arguments, "--profiles-dir", "."]
    done = subprocess.run(
        command, cwd=project, env={**os.environ}, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False
    )
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)


def _rows(where: Place, name: str) -> collections.Counter[tuple[object, ...]]:
    root = where.catalog.table(RelationName("silt", "main", name)).store.root
    table = DeltaTable(root, storage_options=dict(where.options))
    found = pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
    kept = found.drop_columns([column for column in found.column_names if column.startswith(("dbt_", "_"))])
    return collections.Counter(zip(*(column.to_pylist() for column in kept.columns), strict=True))


def shown(results: Sequence[Built]) -> str:
    """Returns a line for each environment."""
    first = results[0]
    lines = ["| Spark, warehouse | first month | second month | nodes | tables |", "|---|---|---|---|---|"]
    for each in results:
        unequal = [name for name in _TABLES if each.rows[name] != first.rows[name]]
        seconds = " | ".join(f"{time_:.0f} s" for time_ in each.seconds)
        state = f"differ: {', '.join(unequal)}" if unequal else f"{len(_TABLES)} equal"
        lines.append(f"| {each.place} | {seconds} | {each.passed} of {each.nodes} | {state} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Returns 1 if a node failed or a table differs, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.clusters.places", description=__doc__)
    parser.add_argument("--spark", nargs="*", choices=SPARKS, default=SPARKS)
    parser.add_argument("--storage", nargs="*", choices=STORAGES, default=STORAGES)
    chosen = parser.parse_args(arguments)
    results = []
    for storage in chosen.storage:
        for spark in chosen.spark:
            with tempfile.TemporaryDirectory() as folder, place(spark, storage, Path(folder)) as where:
                results.append(built(where, Path(folder)))
                print(f"{where.name}: {results[-1].seconds}", file=sys.stderr, flush=True)
    print(shown(results))
    is_equal = all(each.rows == results[0].rows and each.passed == each.nodes for each in results)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
