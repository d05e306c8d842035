"""Locations of databases, as a profile or a program gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.layout import local_stores
from dbt.adapters.silt.engine.catalog.locations import is_local, local_path
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError


@pytest.mark.parametrize(
    ("location", "path"), [("/data/house", "/data/house"), ("file:///data/house", "/data/house"), ("house", "house")]
)
def test_a_local_location_is_a_path_with_or_without_its_scheme(location: str, path: str) -> None:
    assert is_local(location)
    assert local_path(location) == path


def test_each_database_has_the_store_of_its_folder(tmp_path: Path) -> None:
    stores = local_stores({"silt": str(tmp_path), "raw": f"file://{tmp_path}/raw"})
    assert {name: store.root for name, store in stores.items()} == {"silt": str(tmp_path), "raw": f"{tmp_path}/raw"}


def test_a_location_in_another_storage_is_refused_with_the_database_it_is_of() -> None:
    with pytest.raises(InvalidSettingError, match=r"the database raw at `s3://bucket/raw` is in no local"):
        local_stores({"silt": "/data/house", "raw": "s3://bucket/raw"})
