"""The shell of `silt sql` with its own Spark: the effect of Ctrl-C, and the messages after Spark is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError
from dbt.adapters.silt.session.registration import HiveMetastore
from dbt.adapters.silt.session.statement_process import _Answers
from tests import derby
from tests.files import write_files
from tests.shells import NEVER_ENDS, PROMPT, RUNNING, START_SECONDS, Typing, exercise, typing

SPARK = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an empty warehouse."""
    profile = {"type": "silt", "warehouse": "warehouse", "master": "local[2]", "spark_conf": SPARK}
    write_files(
        tmp_path,
        {
            "dbt_project.yml": "name: shop\nprofile: shop\n",
            "profiles.yml": yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": profile}}}),
        },
    )
    (tmp_path / "warehouse").mkdir()
    return tmp_path


@pytest.fixture
def shell(project: Path) -> Iterator[Typing]:
    with typing(project, project) as begun:
        yield begun


def kill_spark(shell: Typing) -> None:
    """Kills the process of the shell's Spark, and its Java."""
    (python,) = children(shell.process.pid)
    os.killpg(python, signal.SIGKILL)


def children(process: int) -> list[int]:
    """Returns the running children of a process."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for each in found for child in each.read_text().split()]


@pytest.mark.long
def test_statements_are_run_and_cancelled(shell: Typing) -> None:
    exercise(shell)


@pytest.mark.long
def test_the_shell_survives_a_killed_spark_and_reports_the_outcome_of_the_statement(shell: Typing) -> None:
    shell.answer("create schema other", START_SECONDS)
    shell.answer("create table other.t as select 1 as id", START_SECONDS)
    shell.answer("use other")
    shell.type(f"insert into t select id from {NEVER_ENDS};\n", RUNNING, START_SECONDS)
    kill_spark(shell)
    assert "[SILT_COMMIT_STATE_UNKNOWN]" in (said := shell.shown(rf"\n{PROMPT}$"))
    assert "may be committed. Before you run it again, check whether it was committed" in said
    assert "the statement was not run" in shell.answer("delete from t")  # which would now mean another `t`
    assert "silt.main.t: the table or view does not exist" in shell.answer("select id from t", START_SECONDS)
    shell.type(f"select sum(id % 7) from {NEVER_ENDS};\n", RUNNING, START_SECONDS)
    kill_spark(shell)
    assert "[SILT_SPARK_ENDED]" in shell.shown(rf"\n{PROMPT}$")
    assert "\n 2\n" in shell.answer("select id + 1 as n2 from other.t", START_SECONDS)


@pytest.mark.long
def test_a_second_ctrl_c_ends_spark_and_reports_whether_a_commit_is_possible(shell: Typing) -> None:
    shell.answer("create table t as select 1 as id", START_SECONDS)
    shell.type(f"insert into t select id from {NEVER_ENDS};\n", RUNNING, START_SECONDS)
    (python,) = children(shell.process.pid)
    for java in children(python):
        os.kill(java, signal.SIGSTOP)  # nothing is left for it to stop
    shell.type("\x03", "press Ctrl-C again to end Spark")
    said = shell.type("\x03", rf"\n{PROMPT}$")
    assert "[SILT_COMMIT_STATE_UNKNOWN]" in said and "may be committed" in said
    assert re.search(r"\n *1\n", shell.answer("select count(*) from t"))
    assert "t@v1: 1 inserted" in shell.answer("insert into t values (2)", START_SECONDS)


def test_after_a_commit_with_unknown_outcome_the_user_is_asked_to_check() -> None:
    out = BytesIO()
    _Answers(out).failed(CommitStateUnknownError("the storage gave no answer", table="main.t"), None)
    said = out.getvalue().decode()
    assert "main.t: the storage gave no answer. Before you run it again" in said
    assert "run id" not in said


@pytest.mark.long
class TestAMetastore:
    @pytest.fixture
    def hive(self, project: Path, connect_server: str | None, keep_alive: object) -> dict[str, str]:
        if connect_server or keep_alive:
            pytest.skip("the driver is in another process")
        return derby.settings(project / "derby")

    def run(self, project: Path, hive: dict[str, str], text: str) -> subprocess.CompletedProcess[str]:
        profile = {
            "type": "silt",
            "warehouse": "warehouse",
            "master": "local[2]",
            "catalog": "hive",
            "spark_conf": {**SPARK, **{f"spark.hadoop.{name}": value for name, value in hive.items()}},
        }
        outputs = {"shop": {"target": "dev", "outputs": {"dev": profile}}}
        write_files(project, {"profiles.yml": yaml.safe_dump(outputs)})
        command = [sys.executable, "-m", "dbt.adapters.silt.cli", "sql", text]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done

    def test_tables_that_statements_create_are_registered_in_the_metastore(
        self, project: Path, hive: dict[str, str], spark: SparkSession
    ) -> None:
        done = self.run(
            project,
            hive,
            "create schema shell; create table shell.a as select 1 as id; create table shell.b as select 1 as id; "
            "alter table shell.a rename to shell.c; create schema gone; create table gone.a as select 1 as id; "
            "drop table shell.b; drop schema gone cascade",
        )
        assert "metastore" not in done.stderr
        with derby.hadoop_settings(spark, hive):
            metastore = HiveMetastore(spark)
            assert [each.name for each in metastore.tables("shell")] == ["c"]
            assert [each.name for each in metastore.tables("gone")] == []

    def test_an_unreachable_metastore_causes_only_a_warning(self, project: Path, hive: dict[str, str]) -> None:
        nowhere = {"javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={project}/nothing"}
        text = "create table a as select 1 as id; create table b as select 1 as id"
        done = self.run(project, {**hive, **nowhere}, text)
        assert "a@v0: 1 inserted" in done.stdout and "b@v0: 1 inserted" in done.stdout
        assert done.stderr.count("metastore is not updated; the same is true of the other tables") == 1
        assert "[SILT_REGISTRATION]" in done.stderr
