"""Locations of databases, as a profile or a program gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.names.locations import check_locations, is_local, local_path, table_location
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError, InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings, storages

KEYS = StorageSettings(endpoint="http://127.0.0.1:1", access_key_id="a", secret_access_key="b", region="us-east-1")


@pytest.mark.parametrize(
    ("location", "path"), [("/data/house", "/data/house"), ("file:///data/house", "/data/house"), ("house", "house")]
)
def test_a_local_location_is_a_path_with_or_without_its_scheme(location: str, path: str) -> None:
    assert is_local(location)
    assert local_path(location) == path


def test_each_database_has_the_store_of_its_place_whatever_its_storage(tmp_path: Path) -> None:
    locations = {"silt": str(tmp_path), "raw": f"file://{tmp_path}/raw", "cloud": "s3://bucket/a b%20é/"}
    stores = open_databases(locations, storages(locations, KEYS)).stores
    assert {name: store.root for name, store in stores.items()} == {
        "silt": str(tmp_path),
        "raw": f"{tmp_path}/raw",
        "cloud": "s3://bucket/a b%20é",
    }


@pytest.mark.parametrize("location", ["memory:///", "hdfs://host/raw", "az://container/raw", "s3://", "s3://a/b//c"])
def test_a_location_in_another_storage_is_refused_with_the_database_it_is_of(location: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"the database raw: "):
        check_locations({"silt": "/data/house", "raw": location})


def test_a_path_in_sql_may_be_a_url_and_has_no_slash_at_its_end(tmp_path: Path) -> None:
    assert table_location(f"{tmp_path}/") == str(tmp_path)
    assert table_location("s3a://bucket/a/b/") == "s3a://bucket/a/b"
    with pytest.raises(InvalidNameError, match="abfss://container@account"):
        table_location("wasbs://container@account.blob.core.windows.net/t")
