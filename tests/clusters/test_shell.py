"""The shell of `silt sql` on a cluster, over a server, and with a kept Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dbt.adapters.silt.kept_spark import listing
from tests import connect_server, kept_sparks
from tests.clusters.conftest import Project, conf_of
from tests.clusters.standalone import Cluster
from tests.shells import NEVER_ENDS, PROMPT, RUNNING, START_SECONDS, exercise, typing

pytestmark = pytest.mark.long
LOCAL = {"spark.driver.memory": "1g", "spark.sql.catalogImplementation": "in-memory", "spark.ui.enabled": "false"}


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with an existing warehouse."""
    (project.folder / "warehouse").mkdir()
    return project


@pytest.fixture
def kept_spark_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    yield kept_sparks.folder(cache)
    kept_sparks.stop_all(cache)


def test_the_executors_of_a_cluster_run_the_shells_statements(cluster: Cluster, shop: Project) -> None:
    shop.use(master=cluster.master, warehouse="warehouse", spark_conf=conf_of())
    with typing(shop.folder, shop.folder) as shell:
        exercise(shell)


def test_the_next_shell_uses_the_spark_that_the_first_shell_kept(shop: Project, kept_spark_folder: Path) -> None:
    shop.use(master="local[2]", warehouse="warehouse", keep_alive="5 minutes")
    for _ in range(2):
        with typing(shop.folder, shop.folder) as shell:
            exercise(shell)
            shell.type("\x04", "\n")
            assert shell.process.wait(START_SECONDS) == 0
    assert len(list(listing.running(kept_spark_folder))) == 1


def test_the_shell_continues_on_a_new_server_after_the_first_has_stopped(shop: Project) -> None:
    with ExitStack() as shells:
        with connect_server.running(shop.folder / "first", LOCAL) as remote:
            shop.use(remote=remote, warehouse="warehouse")
            shell = shells.enter_context(typing(shop.folder, shop.folder))
            exercise(shell)
            shell.answer("create table kept as select 1 as id")
            shell.answer("set spark.sql.shuffle.partitions = 3")
            shell.type(f"select sum(id % 7) from {NEVER_ENDS};\n", RUNNING, START_SECONDS)
        assert "[SILT_SPARK_ENDED]" in shell.shown(rf"\n{PROMPT}$", START_SECONDS)
        port = {"spark.connect.grpc.binding.port": remote.rpartition(":")[2]}
        with connect_server.running(shop.folder / "second", {**LOCAL, **port}):
            assert "the statement was not run" in shell.answer("select id + 1 as n from kept")
            assert "\n2\n" in shell.answer("select id + 1 as n from kept", START_SECONDS)
