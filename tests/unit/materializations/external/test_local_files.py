"""The files that concurrent runs with the same external location leave."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from dbt.adapters.silt.materializations.external import files
from dbt.adapters.silt.materializations.external.target import target_of
from tests.unit.engine.house import side_by_side


@pytest.mark.parametrize("place", ["folder", "one.parquet"])
def test_eight_concurrent_runs_leave_the_same_files_as_one_run(place: str, tmp_path: Path) -> None:
    model = {"unique_id": "model.shop.exported", "config": {}}
    (tmp_path / "out").mkdir()

    def write() -> None:
        for _ in range(30):
            target = target_of(model, f"out/{place}", str(tmp_path), [])
            files.check(target)
            written = tmp_path / uuid.uuid4().hex
            written.mkdir()
            (written / "part-0.parquet").write_bytes(b"rows")
            files.put_in_place(written, target)

    side_by_side([write] * 8)
    found = tmp_path / "out" / place
    assert (found / "part-0.parquet" if found.is_dir() else found).read_bytes() == b"rows"
    assert [each.name for each in (tmp_path / "out").iterdir()] == [place], "nothing is left next to it"
