"""Shared fixtures: one Spark session a process, and tables in a temporary folder."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import random
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import hypothesis
import pyspark
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.storage.urls import parse_url
from dbt.adapters.silt.session import accelerator as accelerators
from dbt.adapters.silt.session import jars, kept, local_spark
from dbt.adapters.silt.session.accelerator import Accelerator
from dbt.adapters.silt.session.jars import SparkStorage
from dbt.adapters.silt.session.spark import stop_spark
from tests import kept_sparks
from tests.cloud import install
from tests.cloud.servers import ObjectServer, running_azure, running_s3
from tests.clusters import standalone
from tests.connect_server import running
from tests.examples import DEFAULT, examples

pytest_plugins = ["tests.durations", "tests.gate.plugin", "tests.skips"]

SPARK_SETTINGS = {
    # Tests run many small jobs, each with generated code of its own: quick compilation matters more than quick code.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xms1g -Xmn600m -XX:MetaspaceSize=256m"
    ),
    # A statement with few rows fills none of the pages of up to 64 MiB that each of its sorts and groupings clears.
    "spark.buffer.pageSize": "1m",
    "spark.driver.memory": "2g",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
"""Makes Spark interpret the plans of the tests' statements, which have few rows: compiling each plan takes longer."""

SERVER, KEPT, CLUSTER = "server", "kept", "cluster"
"""Where the tests run: over Spark Connect, on a server started for them or a Spark that the package keeps; or in an
embedded driver, on a standalone cluster started for them.
"""

# A shell lets the commands that it starts in the background ignore Ctrl-C, and the processes of tests would too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Each process that a test starts would otherwise compile all of its imports again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The Python of Spark's workers is the tests' Python, not the first on the path.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# Commands that tests run leave no process behind that builds a class archive.
os.environ.setdefault("SILT_CLASS_ARCHIVE", "off")
SAME_EXAMPLES = os.environ.get("CI") == "true"
"""Whether each run draws the same examples: CI judges the change, and other runs look for new failures."""
# The time that an example takes depends on the machine, not on the rule.
hypothesis.settings.register_profile("rules", deadline=None, derandomize=SAME_EXAMPLES, max_examples=examples(DEFAULT))
hypothesis.settings.load_profile("rules")


_CLOUDS = {"s3": running_s3, "azure": running_azure}


def pytest_addoption(parser: pytest.Parser) -> None:
    over = {"dest": "connect", "action": "store_const"}
    parser.addoption("--connect", **over, const=SERVER, help="run Spark's tests over a Spark Connect server for them")
    parser.addoption("--kept", **over, const=KEPT, help="run Spark's tests over a kept Spark (`keep_alive`)")
    parser.addoption("--cluster", **over, const=CLUSTER, help="run Spark's tests on a standalone cluster for them")
    parser.addoption(
        "--endpoint", action="store_true", help="with --connect: run the engine's statements through `silt endpoint`"
    )
    parser.addoption("--silt-dbt", action="store_true", help="run the commands of dbt's suite as `silt dbt`")
    parser.addoption(
        "--cloud",
        choices=sorted(_CLOUDS),
        help="run tests/cloud, and put the engine's warehouses on an object store, on a server started for the tests",
    )
    parser.addoption("--accelerator", choices=["comet"], help="run Spark's tests with the accelerator")
    parser.addoption("--without-spark", action="store_true", help="leave out the tests that use the tests' Spark")
    parser.addoption("--compiled", action="store_true", help="have Spark compile each statement, as it does for users")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves tests/cloud out unless a server is requested."""
    return True if collection_path.name == "cloud" and config.getoption("--cloud") is None else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that use Spark (`--without-spark`), or that use no object store or only
    folders (`--cloud`).
    """
    if config.getoption("--without-spark"):
        _keep(config, items, [item for item in items if "spark" not in getattr(item, "fixturenames", ())])
    if config.getoption("--cloud") is None:
        return
    _keep(config, items, [item for item in items if "cloud" in getattr(item, "fixturenames", ())])
    for item in items:
        if (of_folders := item.get_closest_marker("in_folders")) is not None:
            item.add_marker(pytest.mark.skip(f"about a warehouse in folders: {of_folders.args[0]}"))


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    deselected = set(items).difference(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in deselected])
    items[:] = kept


@pytest.fixture
def seed() -> int:
    """Returns the first seed of a test that draws its own examples."""
    return 0 if SAME_EXAMPLES else random.randrange(1 << 30)


@pytest.fixture(scope="session")
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer | None]:
    """The object store of `--cloud`; None without the option."""
    name = request.config.getoption("--cloud")
    if name is None:
        yield None
        return
    with contextlib.ExitStack() as servers:
        try:
            server = servers.enter_context(_CLOUDS[name](tmp_path_factory.mktemp(name)))  # type: ignore[operator]
        except install.NotInstalled as reason:
            pytest.skip(f"no server for {name}: {reason}")
        yield server


@pytest.fixture(scope="session")
def cloud_settings(cloud: ObjectServer | None) -> dict[str, str]:
    """Spark's settings for the object store of `--cloud`."""
    if cloud is None:
        return {}
    lacking = SparkStorage({}, (parse_url(cloud.base).service,))
    return {**jars.settings(lacking, {}, Path(pyspark.__file__).parent), **cloud.hadoop}


@pytest.fixture(scope="session")
def cluster_conf(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings that the tests' Spark starts with for `--cluster`; empty without the option."""
    return dict(standalone.SMALL) if request.config.getoption("--connect") == CLUSTER else {}


@pytest.fixture(scope="session")
def master(
    request: pytest.FixtureRequest, cloud: ObjectServer | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The master of the tests' Spark: a cluster, or the number of tasks that run at once in the driver.

    Only one task at once on S3: versitygw deletes folders that it finds empty, and refuses an object that another task
    of the job begins to write there at that moment, which no S3 without folders does (409, "Existing Object is a
    directory").
    """
    if request.config.getoption("--connect") != CLUSTER:
        yield "local[1]" if cloud is not None and cloud.files is not None else "local[2]"
        return
    cluster = contextlib.ExitStack()
    atexit.register(cluster.close)  # after the driver has ended
    yield cluster.enter_context(standalone.running(tmp_path_factory.mktemp("cluster"))).master


@pytest.fixture(scope="session")
def code_generation(request: pytest.FixtureRequest) -> dict[str, str]:
    """Spark's settings for `--compiled` or without it."""
    return {} if request.config.getoption("--compiled") else INTERPRETED


@pytest.fixture(scope="session")
def accelerator(request: pytest.FixtureRequest) -> str | None:
    """The accelerator of the tests' Spark; None without `--accelerator`."""
    name: str | None = request.config.getoption("--accelerator")
    return name


@pytest.fixture(scope="session")
def spark_settings(
    code_generation: dict[str, str],
    cloud_settings: dict[str, str],
    cluster_conf: dict[str, str],
    master: str,
    accelerator: str | None,
) -> dict[str, str]:
    """The settings of the tests' Spark, wherever it runs."""
    found = SPARK_SETTINGS | code_generation | cloud_settings | cluster_conf
    return found | (accelerators.settings(Accelerator(accelerator), found, master, ()) if accelerator else {})


@pytest.fixture(scope="session")
def connect_server(
    request: pytest.FixtureRequest, spark_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str | None]:
    """The address of the Spark Connect server that all tests of this process share; None without `--connect`."""
    if request.config.getoption("--connect") != SERVER:
        yield None
        return
    servers = contextlib.ExitStack()
    atexit.register(servers.close)  # after the clients have ended: they would try for minutes to reach a stopped server
    yield servers.enter_context(running(tmp_path_factory.mktemp("connect-server"), spark_settings))


@pytest.fixture(scope="session")
def keep_alive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> timedelta | None:
    """How long the tests' Spark is kept after its last use; None without `--kept`."""
    if request.config.getoption("--connect") != KEPT:
        return None
    folders = kept_sparks.of_their_own(tmp_path_factory.mktemp("kept-sparks"))
    atexit.register(folders.close)  # after the clients have ended
    return timedelta(minutes=10)


@pytest.fixture(scope="session")
def spark(
    connect_server: str | None,
    keep_alive: timedelta | None,
    master: str,
    spark_settings: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    """A session in a time zone other than the machine's, so that a forgotten zone shows."""
    logging.getLogger("SQLQueryContextLogger").disabled = True
    if keep_alive is not None:
        session = kept.session(master, spark_settings, keep_alive.total_seconds())
    elif connect_server is None:
        session = _embedded(master, spark_settings, tmp_path_factory.mktemp("spark-warehouse"))
    else:
        session = SparkSession.builder.remote(connect_server).create()
    yield session
    session.stop()


def _embedded(master: str, settings: dict[str, str], folder: Path) -> SparkSession:
    stop_spark()  # a test of this process may have started the product's, which has other settings
    builder = SparkSession.builder.master(master).appName("dbt-silt tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if master.startswith("local"):
        local_spark.remove_hadoop_defaults(session.sparkContext)
    return session


@pytest.fixture
def warehouse(tmp_path: Path, cloud: ObjectServer | None) -> Path:
    """An empty folder whose name needs quoting in a URI and in a file pattern; with `--cloud`, a
    folder of the server.
    """
    above = tmp_path if cloud is None or cloud.files is None else cloud.files / tmp_path.name
    folder = above / "ware [house] %é"
    folder.mkdir(parents=True)
    return folder
