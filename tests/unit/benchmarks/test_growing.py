"""The benchmark of growing data, on few rows: its merge corrects rows and adds no rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.growing.__main__ import measure
from dbt.adapters.silt import engine


@pytest.mark.long
def test_each_command_is_measured_and_the_merge_corrects_one_row_in_a_thousand(tmp_path: Path) -> None:
    found = list(measure(tmp_path, 4_000, "1g"))
    assert [each.name for each in found] == ["first build", "merge of 0.1 %", "join and totals"]
    assert all(each.clock > 0 and each.peak.memory > 2**27 for each in found)
    orders = engine.read(str(tmp_path / "warehouse/main/orders"))
    assert orders.num_rows == 4_000
