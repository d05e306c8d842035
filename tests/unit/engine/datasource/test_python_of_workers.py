"""A Spark whose Python lacks this package is refused when the data source is registered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from pyspark.sql import SparkSession
from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for _ in range(2):
    try:
        silt.DataSource.register(spark)
    except InvalidSettingError as error:
        print("refused:", error)
"""


@pytest.mark.in_folders("starts a Spark of its own")
def test_a_python_without_the_package_is_refused_with_the_variable_that_names_another(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys._base_executable} "$@"\n')  # type: ignore[attr-defined]
    python.chmod(0o755)
    # The first Python on the PATH, as if the program were run by its full path.
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    environment.pop("PYSPARK_PYTHON", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("refused:")]
    assert len(said) == 2, done.stdout + done.stderr
    for each in said:
        assert "SILT_INVALID_SETTING" in each
        assert "No module named 'dbt'" in each
        assert f"PYSPARK_PYTHON, which is `python3` by default, to {sys.executable}" in each
