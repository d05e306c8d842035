"""The benchmark of rebuilds to the same rows builds equal tables with and without the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.content_hash.__main__ import TURN, builders, measured


def test_both_sessions_are_timed_in_turn(spark: SparkSession, tmp_path: Path) -> None:
    pair = builders(spark.newSession(), tmp_path / "house", 1_000)
    turns: list[int] = []
    found = measured(pair, 1, turns.append)
    assert [[len(turn) for turn in each] for each in found] == [[len(TURN)], [len(TURN)]] and turns == [0, 1]
    assert all(timing.clock > 0 and timing.processor > 0 for each in found for turn in each for timing in turn)
    assert pair[0].house.sql("show tables").count() == 1, "only the stored table is left"


def test_a_comparison_in_another_way_than_intended_is_found(spark: SparkSession, tmp_path: Path) -> None:
    plain, compared = builders(spark.newSession(), tmp_path / "house", 100)
    compared.house.sql("drop table stored")
    compared.house.sql("create table stored as select 1 as id, parse_json('1') as v")
    with pytest.raises(RuntimeError, match="in another way than intended"):
        compared.turn(7)  # a variant has no exact hash
    assert len(plain.turn(7)) == len(TURN)
