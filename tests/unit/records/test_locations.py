"""Which folders of a profile's databases do not exist yet."""

from __future__ import annotations

from pathlib import Path

from dbt.adapters.silt.records.locations import new_folders


def test_a_folder_is_new_if_it_is_missing_and_its_parent_exists(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    places = {
        "silt": str(tmp_path / "warehouse"),
        "raw": str(tmp_path / "there"),
        "marts": str(tmp_path / "missing" / "marts"),
        "cloud": "s3://bucket/warehouse",
    }
    assert new_folders(places) == {"silt": str(tmp_path / "warehouse")}
