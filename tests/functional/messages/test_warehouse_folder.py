"""A warehouse that cannot be created or written is refused before the command waits for Spark."""

from __future__ import annotations

import json
import os

import pytest

from tests.files import write_files
from tests.unprivileged import run_unprivileged

TARGETS = {
    "a_file": "a_file",
    "below_a_file": "a_file/house",
    "no_parent": "missing/house",
    "read_only_parent": "read_only/house",
    "of_another_user": "of_another_user",
    "schema_of_another_user": "house",
    "no_file_system": "/proc/house",
}
SPARK = "sc://127.0.0.1:1"
"""A server that does not exist: a command that waits for Spark fails with its address."""

PROGRAM = f"""
import json
from dbt.cli.main import dbtRunner

told = {{}}
for target in {list(TARGETS)!r}:
    done = dbtRunner().invoke(["--quiet", "run", "--target", target])
    results = getattr(done.result, "results", None) or []
    told[target] = " ".join([str(done.exception or ""), *(str(each.message) for each in results)])
print("TOLD" + json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("folders")
    outputs = {name: {"type": "silt", "remote": SPARK, "warehouse": place} for name, place in TARGETS.items()}
    write_files(
        folder,
        {
            "dbt_project.yml": "{name: shop, version: '1.0', profile: shop}",
            "profiles.yml": json.dumps({"shop": {"target": "a_file", "outputs": outputs}}),
            "models/orders.sql": "{{ config(materialized='table') }} select 1 as id",
            "a_file": "",
            "house/main/_schema.json": "{}",
        },
    )
    for name in ("read_only", "of_another_user"):
        (folder / name).mkdir()
    for each in (folder / "read_only", folder / "of_another_user", folder / "house" / "main"):
        each.chmod(0o555 if each.name == "read_only" or os.geteuid() else 0o755)
    if os.geteuid() == 0:
        for each in (folder / "of_another_user", folder / "house" / "main"):
            os.chown(each, 12345, 12345)
    done = run_unprivileged(PROGRAM, folder)
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout.partition("TOLD")[2])
    return answers


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("a_file", "a_file is a file, not a folder"),
        ("below_a_file", "a_file is a file, not a folder"),
        ("no_parent", "missing does not exist"),
        ("read_only_parent", "read_only/house failed: Permission denied"),
        ("of_another_user", "of_another_user is not writable (Permission denied)"),
        ("schema_of_another_user", "main is not writable (Permission denied)"),
        ("no_file_system", "the warehouse /proc/house cannot be created or written"),
    ],
)
def test_the_reason_and_a_remedy_are_given_instead_of_a_start_of_spark(
    told: dict[str, str], target: str, reason: str
) -> None:
    assert reason in told[target]
    assert "SILT_" in told[target] and SPARK.removeprefix("sc://") not in told[target]
