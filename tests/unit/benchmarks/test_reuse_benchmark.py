"""The benchmark of the decision about reuse runs on a small warehouse, in which every node is reused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.reuse.__main__ import from_facts, from_logs, main, timed
from benchmarks.reuse.warehouse import make, opened
from dbt.adapters.silt.engine.builds.decision import Reused
from dbt.adapters.silt.engine.builds.present import last_build


def test_every_node_of_the_warehouse_is_reused_with_either_way_of_reading(tmp_path: Path) -> None:
    nodes = make(tmp_path / "house", 5, 3)
    for prepared in (from_logs, from_facts):
        decisions, clock, _ = timed(prepared, tmp_path / "house", nodes)
        assert [type(each) for each in decisions] == [Reused] * 5
        assert clock > 0


def test_a_node_of_the_warehouse_depends_on_earlier_nodes(tmp_path: Path) -> None:
    nodes = make(tmp_path / "house", 5, 3)
    found = last_build(opened(tmp_path / "house").table(nodes[4].table), nodes[4].build.owner)
    assert found is not None
    assert list(found.facts.tables) == [str(nodes[each].table) for each in (2, 3)]


def test_the_benchmark_prints_both_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes", "2", "--inputs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "with the reading of all logs" in printed and "from facts in memory" in printed
