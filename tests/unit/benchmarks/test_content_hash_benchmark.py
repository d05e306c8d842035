"""The benchmark of the hash creates equal tables with and without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.content_hash.__main__ import creators, measured


def test_both_sessions_are_timed_in_turn(spark: SparkSession, tmp_path: Path) -> None:
    pair = creators(spark.newSession(), tmp_path / "house", 1_000)
    turns: list[int] = []
    found = measured(pair, 2, turns.append)
    assert [len(each) for each in found] == [2, 2] and turns == [0, 1, 2]
    assert all(timing.clock > 0 and timing.processor > 0 for each in found for timing in each)
    assert pair[0].house.sql("show tables").count() == 1, "only the stored table is left"


def test_a_creator_without_the_intended_hash_is_found(spark: SparkSession, tmp_path: Path) -> None:
    plain, hashed = creators(spark.newSession(), tmp_path / "house", 100)
    hashed.house.sql("create table texts as select parse_json('{}') as v")
    hashed.house.sql("drop table stored")
    hashed.house.sql("create table stored as select parse_json('1') as v")
    with pytest.raises(RuntimeError, match="in another way than intended"):
        replace(hashed).create(7)  # a variant has no exact hash
    assert plain.create(7).clock > 0
