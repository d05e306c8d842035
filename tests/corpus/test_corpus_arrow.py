"""Arrow's rows of tables that other engines wrote, in every version, compared with the manifest."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.arrow.read import TableRead
from dbt.adapters.silt.engine.kernel.errors import DataFileMissingError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.rows.file_read import read_file
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.table.schema import primitive_types
from tests.corpus.corpus import CORPUS, REFUSED, log_of, needs_corpus, readable

pytestmark = needs_corpus

VARIANTS = ("delta-rs/spark-shredded-variant-preview-delta", "delta-rs/spark-variant-checkpoint")
READ = [entry for entry in readable() if entry["oracle"] != "log-only" and entry["path"] not in VARIANTS]
WITHOUT_FILES = [
    entry
    for entry in readable()
    if entry["oracle"] == "log-only" and not any(column["type"] == "variant" for column in entry["schema"])
]


@pytest.fixture(scope="module")
def digest() -> Callable[[pa.Table], dict[str, Any]]:
    """The corpus' own checksum of rows."""
    spec = importlib.util.spec_from_file_location("corpus_check", CORPUS / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.digest


@pytest.mark.parametrize("entry", READ, ids=[entry["path"] for entry in READ])
def test_every_version_has_the_rows_that_the_manifest_states(
    digest: Callable[[pa.Table], dict[str, Any]], log_at: Callable[[str], DeltaLog], entry: Any
) -> None:
    log = log_at(entry["path"])
    for each in entry.get("versions") or [entry]:
        if each["oracle"] != "log-only":
            rows = digest(rows_of(log, each["version"]))
            keys = ("rows",) if "sha256_missing" in entry else ("rows", "sha256")
            assert {key: rows[key] for key in keys} == {key: each.get(key) for key in keys}, each["version"]


def rows_of(log: DeltaLog, version: int) -> pa.Table:
    snapshot = log.snapshot_at(version)
    scan = pickle.loads(pickle.dumps(ArrowScan.of(snapshot)))
    together = pa.Table.from_batches(TableRead(log, snapshot, scan).batches(), scan.schema)
    apart = [batch for file in scan.files for batch in read_file(scan, file, log.store)]
    assert pa.Table.from_batches(apart, scan.schema).equals(together)
    return together


@pytest.mark.parametrize("entry", WITHOUT_FILES, ids=[entry["path"] for entry in WITHOUT_FILES])
def test_missing_data_files_are_reported(log_at: Callable[[str], DeltaLog], entry: Any) -> None:
    log = log_at(entry["path"])
    with pytest.raises(DataFileMissingError, match="is missing"):
        rows_of(log, log.snapshot().version)


@pytest.mark.parametrize("path", VARIANTS)
def test_a_variant_column_is_refused_and_can_be_left_out(path: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"the column `v` has the type variant.*Leave it out"):
        silt.read(str(CORPUS / path))
    schema = log_of(path).snapshot().schema
    names = [column.name for column in schema if "variant" not in {each.name for each in primitive_types(column.type)}]
    assert silt.read(str(CORPUS / path), columns=names).num_rows > 0


@pytest.mark.parametrize("path", sorted(REFUSED))
def test_an_unsupported_table_is_refused_with_the_reason(path: str) -> None:
    kind, names = REFUSED[path]
    with pytest.raises(kind, match=names):
        silt.read(str(CORPUS / path))
