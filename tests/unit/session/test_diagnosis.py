"""The lines of `dbt debug` about a connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import StorageError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session import class_archive
from dbt.adapters.silt.session.diagnosis import check_writable, diagnose


def test_versions_and_databases_are_described(spark: SparkSession, warehouse: Path) -> None:
    catalog = Warehouse(spark, str(warehouse), databases={"raw": "/proc/self"}).catalog
    described = dict(diagnose(spark, catalog, "silt", {"silt": str(warehouse), "raw": "/proc/self"}, Storages()))
    assert described["spark"].startswith(f"{spark.version} on Java ")
    assert described["class-data archive"] == class_archive.state()
    assert described["time zone"] == "America/Los_Angeles"
    assert described["database silt"] == f"{warehouse} (writable; schemas: main)"
    assert described["database raw"].startswith("/proc/self (read-only: ")


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it() -> None:
    with pytest.raises(StorageError, match=r"nothing can be written to the warehouse /proc/self .*set `warehouse`"):
        check_writable("/proc/self")
