"""This engine's tables, read by delta-rs, Polars and delta-spark: the same rows, or a refusal that names the feature.

delta-spark takes part if SILT_DELTA_JARS names the folder of its jars and their dependencies, or its Maven
coordinates, as in the lane spark-4.2. SILT_DELTA_PYTHON may name a Python with a PySpark for these jars, if this
Python's does not fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import polars
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from tests.interop import delta_spark_process
from tests.interop.feature_tables import FEATURE_TABLES, FeatureTable
from tests.interop.rows import as_rows
from tests.unit.engine.house import House

JARS, PYTHON = "SILT_DELTA_JARS", "SILT_DELTA_PYTHON"
WITH_FEED = ("change data feed", "change data feed and deletion vectors")

REFUSED_BY_DELTA_RS = {"type widening": r"Unsupported table features required: \[TypeWidening\]"}
"""The features that delta-rs does not read, with its messages."""

_NO_MAPPING = "column mapping|columnMapping"
REFUSED_BY_POLARS = {
    "column mapping": _NO_MAPPING,
    "deletion vectors and column mapping": _NO_MAPPING,
    "V2 checkpoint": "v2Checkpoint",
    "type widening": "typeWidening",
    "variant": "LogicalType union has no variant set",
    "shallow clone": "No such file",
}
"""The features that Polars does not read, with its messages."""

MISREAD_BY_POLARS = ("deletion vectors in partitions",)
"""Polars does not find the vector of a file whose path contains a character that a URL quotes, and shows the deleted
rows.
"""

REFUSED_BY_DELTA_SPARK: dict[str, str] = {}

each_table = pytest.mark.parametrize("table", FEATURE_TABLES, ids=lambda table: table.name)
needs_delta_spark = pytest.mark.skipif(not os.environ.get(JARS), reason=f"{JARS} names no jars: run make test-long")

Row = Mapping[str, Any]


@dataclass
class Tables:
    """The tables, each in its own warehouse, created on first use."""

    spark: SparkSession
    root: Path
    built: dict[str, House] = field(default_factory=dict)

    def house(self, table: FeatureTable) -> House:
        if table.name not in self.built:
            root = self.root / table.name.replace(" ", "_")
            root.mkdir()
            self.built[table.name] = House(Warehouse(self.spark.newSession(), str(root)), root)
            table.build(self.built[table.name])
        return self.built[table.name]

    def folder(self, table: FeatureTable) -> Path:
        return self.house(table).root / "main" / "t"

    def rows(self, table: FeatureTable) -> list[Row]:
        return as_rows(self.house(table).warehouse.table("t").toArrow())  # type: ignore[return-value]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(spark, tmp_path_factory.mktemp("features"))


@each_table
def test_delta_rs_reads_the_same_rows_as_this_engine(table: FeatureTable, tables: Tables) -> None:
    ours = tables.rows(table)
    assert ours
    if table.name in REFUSED_BY_DELTA_RS:
        with pytest.raises(DeltaError, match=REFUSED_BY_DELTA_RS[table.name]):
            read_with_delta_rs(tables.folder(table))
    else:
        assert as_rows(read_with_delta_rs(tables.folder(table))) == ours


@pytest.mark.parametrize(
    "table", [each for each in FEATURE_TABLES if each.name not in MISREAD_BY_POLARS], ids=lambda t: t.name
)
def test_polars_reads_the_same_rows_as_this_engine(table: FeatureTable, tables: Tables) -> None:
    ours = tables.rows(table)
    if table.name in REFUSED_BY_POLARS:
        with pytest.raises(Exception, match=REFUSED_BY_POLARS[table.name]):
            polars.read_delta(str(tables.folder(table)))
    else:
        assert as_rows(polars.read_delta(str(tables.folder(table))).to_arrow()) == ours


@pytest.mark.parametrize("table", [each for each in FEATURE_TABLES if each.name in WITH_FEED], ids=lambda t: t.name)
def test_delta_rs_reads_the_same_changes_as_this_engine(table: FeatureTable, tables: Tables) -> None:
    theirs = pa.table(deltalake.DeltaTable(tables.folder(table)).load_cdf(starting_version=0).read_all())
    assert without_times(theirs) == our_changes(tables.house(table))


@pytest.fixture(scope="module")
def delta_spark(tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the rows that delta-spark read before and after it appended to the tables."""
    folder = tmp_path_factory.mktemp("delta-spark")
    before = {table.name: tables.rows(table) for table in FEATURE_TABLES}
    changes = {name: our_changes(tables.house(table)) for table in FEATURE_TABLES if (name := table.name) in WITH_FEED}
    (folder / "ours.json").write_text(json.dumps({"rows": before, "changes": changes}, default=repr))
    (folder / "tables.json").write_text(json.dumps({each.name: str(tables.folder(each)) for each in FEATURE_TABLES}))
    python, script = os.environ.get(PYTHON) or sys.executable, delta_spark_process.__file__
    subprocess.run([python, script, os.environ[JARS], str(folder)], check=True, cwd=folder, env=_environment())
    return folder


@needs_delta_spark
@each_table
def test_delta_spark_reads_the_same_rows_as_this_engine(table: FeatureTable, delta_spark: Path) -> None:
    if table.name in REFUSED_BY_DELTA_SPARK:
        assert REFUSED_BY_DELTA_SPARK[table.name] in (delta_spark / f"{table.name}.rows.error").read_text()
    else:
        assert as_text(found(delta_spark, f"{table.name}.rows")) == ours(delta_spark, "rows")[table.name]


@needs_delta_spark
@pytest.mark.parametrize("name", WITH_FEED)
def test_delta_spark_reads_the_same_changes_as_this_engine(name: str, delta_spark: Path) -> None:
    theirs = without_times(found(delta_spark, f"{name}.changes"))
    assert json.loads(json.dumps(theirs, default=repr)) == ours(delta_spark, "changes")[name]


@needs_delta_spark
@each_table
def test_this_engine_reads_the_rows_that_delta_spark_appends(
    table: FeatureTable, tables: Tables, delta_spark: Path
) -> None:
    if table.name not in REFUSED_BY_DELTA_SPARK:
        added = as_rows(found(delta_spark, f"{table.name}.added"))
        assert tables.rows(table) == added
        assert len(added) == 2 * len(ours(delta_spark, "rows")[table.name])


def read_with_delta_rs(folder: Path) -> pa.Table:
    """Returns all rows, by delta-rs' query engine, which reads more features than its other reader."""
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(folder))
    return pa.table(reader.execute("select * from t"))


def our_changes(house: House) -> list[Row]:
    return without_times(house.sql("select * from table_changes('main.t', 0)").toArrow())


def without_times(changes: pa.Table) -> list[Row]:
    """Returns rows of a change data feed without the commit's time, which readers take from different sources."""
    return as_rows(changes.drop_columns(["_commit_timestamp"]))  # type: ignore[return-value]


def found(folder: Path, name: str) -> pa.Table:
    """Returns the rows that delta-spark read."""
    error = folder / f"{name}.error"
    assert not error.exists(), error.read_text()
    with pa.OSFile(str(folder / name)) as source:
        return pa.ipc.open_stream(source).read_all()


def ours(folder: Path, kind: str) -> Any:
    return json.loads((folder / "ours.json").read_text())[kind]


def as_text(rows: pa.Table) -> Any:
    return json.loads(json.dumps(as_rows(rows), default=repr))


def _environment() -> dict[str, str]:
    """Returns this process's environment without the variables that would make another Python import this Python's
    packages.
    """
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
