"""The rows of tables that other engines wrote, in every version that their logs contain, compared with the manifest."""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from tests.corpus.corpus import CORPUS, needs_corpus, readable

pytestmark = needs_corpus

_VERSION = "corpus version"
WITH_ROWS = [entry for entry in readable() if entry["oracle"] != "log-only"]
WITHOUT_ROWS = [entry for entry in readable() if entry["oracle"] == "log-only"]


@pytest.fixture(scope="module")
def digest() -> Callable[[pa.Table], dict[str, Any]]:
    """The corpus' own checksum of rows."""
    spec = importlib.util.spec_from_file_location("corpus_check", CORPUS / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.digest


@pytest.mark.parametrize("entry", WITH_ROWS, ids=[entry["path"] for entry in WITH_ROWS])
def test_every_version_has_the_rows_that_the_manifest_states(
    spark: SparkSession, digest: Callable[[pa.Table], dict[str, Any]], log_at: Callable[[str], DeltaLog], entry: Any
) -> None:
    log = log_at(entry["path"])
    listed = entry.get("versions") or [entry]
    expected = {each["version"]: each for each in listed if each["oracle"] != "log-only"}
    if "sha256_missing" in entry:
        # These tables are too long to hash, or have columns without a text form.
        assert {version: _count(spark, log, version) for version in expected} == {
            version: each["rows"] for version, each in expected.items()
        }
        return
    for version, rows in _rows_of(spark, log, list(expected)):
        expected_digest = {key: expected[version].get(key) for key in ("rows", "sha256")}
        assert {"version": version, **digest(rows)} == {"version": version, **expected_digest}


@pytest.mark.parametrize("entry", WITHOUT_ROWS, ids=[entry["path"] for entry in WITHOUT_ROWS])
def test_missing_data_files_are_reported(spark: SparkSession, log_at: Callable[[str], DeltaLog], entry: Any) -> None:
    log = log_at(entry["path"])
    with pytest.raises(DataFileMissingError, match=r"is (missing|not there)"), errors.mapped():
        scan.read(spark, log, log.snapshot()).toArrow()


def _count(spark: SparkSession, log: DeltaLog, version: int) -> int:
    """Returns the number of rows, and reads each row completely."""
    frame = scan.read(spark, log, log.snapshot_at(version))
    return frame.select(F.to_json(F.struct("*")).alias("row")).filter("row is not null").count()


def _rows_of(spark: SparkSession, log: DeltaLog, versions: list[int]) -> Iterator[tuple[int, pa.Table]]:
    """Returns the rows of each version, in one job for all versions of the same schema."""
    snapshots = [log.snapshot_at(version) for version in versions]
    for _, alike in itertools.groupby(snapshots, lambda snapshot: snapshot.schema):
        group = list(alike)
        frames = [scan.read(spark, log, each).withColumn(_VERSION, F.lit(each.version)) for each in group]
        found = functools.reduce(DataFrame.unionAll, frames).toArrow()
        for each in group:
            of_version = found.filter(pc.equal(found[_VERSION], each.version))
            yield each.version, of_version.drop_columns([_VERSION])
