"""The rows that `format("silt")` reads from tables that other engines wrote, compared with the manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from tests.corpus.corpus import CORPUS, needs_corpus
from tests.corpus.test_corpus_arrow import READ, VARIANTS, digest
from tests.unit.engine.datasource.tables import raises

__all__ = ["digest"]
pytestmark = [needs_corpus, pytest.mark.long]


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> SparkSession:
    silt.DataSource.register(spark)
    return spark


@pytest.mark.parametrize("entry", READ, ids=[entry["path"] for entry in READ])
def test_the_oldest_and_the_newest_version_have_the_rows_that_the_manifest_states(
    registered: SparkSession, digest: Callable[[pa.Table], dict[str, Any]], entry: Any
) -> None:
    known = [each for each in entry.get("versions") or [entry] if each["oracle"] != "log-only"]
    for each in {each["version"]: each for each in (known[0], known[-1])}.values():
        reader = registered.read.format("silt").option("versionAsOf", each["version"])
        frame = reader.load(str(CORPUS / entry["path"]))
        if "sha256_missing" in entry:
            assert frame.count() == each["rows"]
        else:
            expected = {key: each.get(key) for key in ("rows", "sha256")}
            assert digest(frame.toArrow()) == expected, each["version"]


@pytest.mark.parametrize("path", VARIANTS)
def test_a_variant_column_is_refused(registered: SparkSession, path: str) -> None:
    with raises("SILT_UNSUPPORTED_FEATURE", "of the type variant"):
        registered.read.format("silt").load(str(CORPUS / path)).collect()
