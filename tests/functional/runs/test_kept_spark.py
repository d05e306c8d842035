"""dbt over a kept Spark: a killed command commits nothing, and the next command resumes the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dbt.adapters.silt.kept_spark import listing
from dbt.adapters.silt.kept_spark.listing import KeptSpark
from tests.conftest import INTERPRETED, SPARK_SETTINGS

_PATIENCE_SECONDS = 240
_MODELS = {
    **{f"small_{number}.sql": f"select {number} as id, current_timezone() as zone" for number in range(8)},
    "merged.sql": "{{ config(materialized='incremental', unique_key='id') }} select id from range(10)",
    "doubled.py": "def model(dbt, session):\n"
    "    merged = dbt.ref('merged')\n"
    "    frame = merged.df() if hasattr(merged, 'df') else merged.toPandas()\n"
    "    frame['twice'] = frame['id'] * 2\n"
    "    return session.createDataFrame(frame)\n",
    "endless.sql": "{{ config(materialized='table') }} "
    "select sum(hash(id)) as answer from range(0, 1000000000000000, 1, 2)",
}


class Project:
    """A project with a kept Spark, whose dbt commands are separate processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        (folder / "models").mkdir()
        for name, text in _MODELS.items():
            (folder / "models" / name).write_text(text)
        project = {
            "name": "shop",
            "version": "1.0.0",
            "profile": "shop",
            "flags": {"send_anonymous_usage_stats": False},
        }
        conf = SPARK_SETTINGS | INTERPRETED
        target = {"type": "silt", "master": "local[2]", "threads": 8, "keep_alive": "10 minutes", "spark_conf": conf}
        larger = {**target, "spark_conf": {**conf, "spark.sql.shuffle.partitions": "3"}}
        profiles = {"shop": {"target": "dev", "outputs": {"dev": target, "larger": larger}}}
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
        (folder / "profiles.yml").write_text(yaml.safe_dump(profiles))

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("dbt")), "--no-use-colors", *words],
            cwd=self.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def dbt(self, *words: str) -> tuple[int, str]:
        with self.begin(*words) as process:
            said, _ = process.communicate(timeout=_PATIENCE_SECONDS)
        return process.returncode, said

    def by_another_name(self, *words: str, cwd: str = ".") -> str:
        """Runs a module by another name of this Python, in a folder of the project."""
        name = next(each for each in ("python", "python3") if each != Path(sys.executable).name)
        program = [str(Path(sys.executable).with_name(name)), "-m", *words]
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}
        return subprocess.check_output(
            program, cwd=self.folder / cwd, env=environment, text=True, timeout=_PATIENCE_SECONDS
        )

    def begin_endless(self) -> subprocess.Popen[str]:
        """Starts a command whose model does not end."""
        process = self.begin("run", "-s", "endless")
        assert process.stdout is not None
        for line in process.stdout:
            if "START" in line:
                time.sleep(3)  # Spark is running the statement
                return process
        raise AssertionError(f"dbt ended with {process.wait()}")

    @property
    def spark(self) -> KeptSpark:
        [found] = listing.running(self.cache / "dbt-silt" / "spark")
        return found

    def wait_until_unused(self, name: str = "") -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        found = self.cache / "dbt-silt" / "spark"
        while any(each.idle_since is None for each in listing.running(found) if name in ("", each.name)):
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def commits(self, table: str) -> int:
        return len(list((self.folder / "warehouse").glob(f"main/{table}/_delta_log/*.json")))


@pytest.fixture(scope="class")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("shop"))
    yield project
    for each in listing.running(project.cache / "dbt-silt" / "spark"):
        listing.stop(each, force=True)


@pytest.mark.long
class TestKeptSpark:
    def test_eight_threads_and_a_python_model_run_twice_on_one_spark(self, shop: Project) -> None:
        code, said = shop.dbt("run", "--exclude", "endless")
        assert code == 0, said
        assert "PASS=10" in said
        java = shop.spark.record.java
        code, said = shop.dbt("run", "--exclude", "endless")
        assert code == 0, said
        assert shop.spark.record.java == java
        code, said = shop.dbt(
            "show", "--inline", "select * from {{ ref('doubled') }}", "--output", "json", "-q", "--limit", "100"
        )
        rows = json.loads(said)["show"]
        assert sorted((row["id"], row["twice"]) for row in rows) == [(number, 2 * number) for number in range(10)]
        code, said = shop.dbt("show", "--inline", "select current_timezone() as zone", "--output", "json", "-q")
        assert json.loads(said)["show"][0]["zone"] == SPARK_SETTINGS["spark.sql.session.timeZone"]

    def test_a_script_with_another_name_of_python_and_a_shell_in_a_subfolder_use_the_same_spark(
        self, shop: Project
    ) -> None:
        java = shop.spark.record.java
        said = shop.by_another_name("dbt.cli.main", "run", "-s", "merged")
        assert "Another Spark starts" not in said
        asked = "select sum(a.id + b.id) as total from main.merged a join main.merged b using (id)"
        place = ("--profiles-dir", str(shop.folder))
        said = shop.by_another_name("dbt.adapters.silt.cli", "sql", asked, "--csv", "-", *place, cwd="models")
        assert said.split() == ["total", "90"]
        assert shop.spark.record.java == java

    def test_a_command_that_starts_another_spark_says_which_setting_differs(self, shop: Project) -> None:
        kept = shop.spark
        code, said = shop.dbt("run", "-s", "merged", "--target", "larger")
        assert code == 0, said
        said = " ".join(said.split())
        assert (
            f"Another Spark starts next to the kept Spark {kept.name} of this folder: it has another value of" in said
        )
        assert "`spark_conf: spark.sql.shuffle.partitions`" in said
        [other] = [each for each in listing.running(kept.folder.parent) if each.name != kept.name]
        shop.wait_until_unused(other.name)
        listing.stop(other)

    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
    def test_a_killed_or_stopped_command_leaves_spark_to_the_next_command(
        self, shop: Project, how: signal.Signals
    ) -> None:
        java = shop.spark.record.java
        with shop.begin_endless() as process:
            process.send_signal(how)
            process.communicate(timeout=_PATIENCE_SECONDS)
        assert process.returncode != 0
        shop.wait_until_unused()
        assert shop.commits("endless") == 0
        before = shop.commits("merged")
        code, said = shop.dbt("run", "-s", "merged")  # both cores are free: the killed command's jobs were cancelled
        assert code == 0, said
        assert shop.commits("merged") == before + 1
        assert shop.spark.record.java == java

    def test_a_spark_killed_during_a_model_is_reported_and_the_next_command_starts_another(self, shop: Project) -> None:
        java = shop.spark.record.java
        with shop.begin_endless() as process:
            os.kill(java, signal.SIGKILL)
            said, _ = process.communicate(timeout=_PATIENCE_SECONDS)
        assert process.returncode == 1
        assert "SILT_SPARK_ENDED" in said
        assert shop.commits("endless") == 0
        code, said = shop.dbt("run", "-s", "merged")
        assert code == 0, said
        assert shop.spark.record.java != java

    def test_a_killed_keeper_ends_its_java_too(self, shop: Project) -> None:
        record = shop.spark.record
        os.kill(record.keeper, signal.SIGKILL)
        code, said = shop.dbt("run", "-s", "merged")
        assert code == 0, said
        assert shop.spark.record.java != record.java
        assert not Path(f"/proc/{record.java}").exists()
