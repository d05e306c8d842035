"""Processes of dbt: one is killed between the commit of a node and its post-hook; a source is restored between two."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.files import write_files

HOOKS = (
    "select reflect('java.lang.Thread', 'sleep', ms) from main.pauses",
    "insert into {{ target.schema }}.hooked select '{{ this.identifier }}', count(*) from {{ this }}",
)
CONFIG = "{{ config(materialized='MADE', unique_key='id', post_hook=" + json.dumps(HOOKS) + ") }} "
FILES = {
    "dbt_project.yml": "{name: shop, profile: shop, version: '1.0', models: {shop: {+reuse: unchanged}}, "
    "on-run-start: 'create table if not exists main.hooked (name string, n bigint)', "
    "flags: {send_anonymous_usage_stats: false}}",
    "models/made.sql": CONFIG + "select * from values (1, 'a'), (2, 'b') as t(id, name)",
    "models/below.sql": "{{ config(materialized='table') }} select count(*) as n from {{ ref('made') }}",
}
PROFILE = {"type": "silt", "warehouse": "warehouse", "master": "local[1]", "spark_conf": {"spark.driver.memory": "1g"}}


@dataclass(frozen=True)
class Shop:
    """A project in a folder; each command is a process."""

    root: Path

    def copied(self, root: Path) -> Shop:
        shutil.copytree(self.root, root)
        return Shop(root)

    def start(self, run_id: str, target: str = "target") -> subprocess.Popen[str]:
        places = ("--project-dir", ".", "--profiles-dir", ".", "--target-path", target)
        program = str(Path(sys.executable).with_name("dbt"))
        return subprocess.Popen(
            [program, "--no-use-colors", "run", "--vars", f"silt_run_id: {run_id}", *places],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, run_id: str, target: str = "target") -> str:
        process = self.start(run_id, target)
        output = process.communicate(timeout=500)[0]
        assert process.returncode == 0, output
        return output

    def is_committed(self) -> bool:
        """Whether the model has been committed, on a branch or in its log."""
        warehouse = self.root / "warehouse"
        found = [*warehouse.glob("main/made/_delta_log/*.json"), *warehouse.glob("_branches/*/main/made*/0*.json")]
        return any(each.name[0].isdigit() for each in found)

    def set_pauses(self, milliseconds: list[int]) -> None:
        rows = pa.table({"ms": pa.array(milliseconds, pa.int64())})
        write_deltalake(str(self.root / "warehouse" / "main" / "pauses"), rows, mode="overwrite")

    def rows(self, table: str) -> list[list[object]]:
        """Returns the rows of a table as another engine reads them."""
        rows = DeltaTable(str(self.root / "warehouse" / "main" / table)).to_pyarrow_table().to_pylist()
        return sorted([*each.values()] for each in rows)


def killed(root: Path, materialized: str, profile: Mapping[str, object]) -> Shop:
    """Returns a shop whose run `night` was killed while the first hook of the model was waiting."""
    shop = Shop(root)
    files = {name: text.replace("MADE", materialized) for name, text in FILES.items()}
    profiles = json.dumps({"shop": {"target": "dev", "outputs": {"dev": {**PROFILE, **profile}}}})
    write_files(root, {**files, "profiles.yml": profiles})
    shop.set_pauses([600_000])
    process = shop.start("night")
    while not shop.is_committed():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    shop.set_pauses([])
    return shop


@pytest.mark.parametrize(
    ("materialized", "profile"),
    [
        ("table", {}),
        pytest.param("incremental", {}, marks=pytest.mark.long),
        pytest.param("table", {"publish": "after_run"}, marks=pytest.mark.long),
    ],
    ids=["table", "incremental", "published"],
)
def test_the_next_run_runs_the_hook(tmp_path: Path, materialized: str, profile: Mapping[str, object]) -> None:
    shop = killed(tmp_path / "shop", materialized, profile)
    same = shop.copied(tmp_path / "same")
    output = shop.run("day", target="other")
    assert profile or "not all of its hooks have run since its last build" in output, output
    assert shop.rows("hooked") == [["made", 2]], "a run with another id builds the node again"
    same.run("night")
    assert same.rows("hooked") == [["made", 2]], "the same run runs the hook alone"
    output = same.run("later")
    assert output.count("reused: unchanged") == 2, output
    assert same.rows("hooked") == [["made", 2]]
    assert shop.rows("below") == same.rows("below") == [[2]]


def test_a_source_that_was_restored_from_a_copy_is_read_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    models = {
        "models/total.sql": "{{ config(materialized='table') }} select sum(v) as s from main.src",
        "models/keyed.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', "
        "unique_key='k') }} select k, sum(v) as s from main.src group by k",
    }
    profiles = json.dumps({"shop": {"target": "dev", "outputs": {"dev": PROFILE}}})
    write_files(tmp_path, {"dbt_project.yml": FILES["dbt_project.yml"], "profiles.yml": profiles, **models})
    source = tmp_path / "warehouse" / "main" / "src"
    for key, value in (("a", 1), ("b", 5)):
        if source.exists():
            shutil.copytree(source, tmp_path / "copy")
        write_deltalake(str(source), pa.table({"k": [key], "v": [value]}), mode="append")
    shop.run("monday")
    assert shop.rows("total") == [[6]] and shop.rows("keyed") == [["a", 1], ["b", 5]]
    shutil.rmtree(source)
    shutil.copytree(tmp_path / "copy", source)
    write_deltalake(str(source), pa.table({"k": ["z"], "v": [100]}), mode="append")
    output = shop.run("tuesday")
    assert output.count("restored from a copy") >= 2, output
    assert shop.rows("total") == [[101]] and shop.rows("keyed") == [["a", 1], ["z", 100]]
